// The command line and the environment: the given texts, and the usage texts that -u, -U and --help print.
//
// node:util parseArgs finds options and values; `-name` becomes `--name` first, since it takes a single dash for a
// cluster of letters. A later option replaces an earlier one, the command line replaces the environment, and CTX_
// replaces ORION_. A replaced value is not checked. An empty variable counts as not set.
//
// Not here: valid values of an option (kinds.ts) and valid combinations of values (config.ts).

import { parseArgs } from 'node:util'
import { commandLines, commandNames, moreHelp } from './commands.js'
import { didYouMean, nearest } from './nearest.js'
import {
  envPrefixes,
  isOptionName,
  type Option,
  type OptionEffect,
  type OptionName,
  optionNames,
  options,
  sections,
} from './options.js'
import { variableOf } from './variables.js'

/** The given text of one option. */
export interface Given {
  readonly text: string
  /** The name for messages: `-port` or `CTX_PORT (-port)`. */
  readonly where: string
}

/** Options that print something instead of starting. */
export type Print = 'u' | 'U' | 'h' | 'help' | 'version'
const prints: readonly string[] = ['u', 'U', 'h', 'help', 'version'] satisfies Print[]
/** The same as single words without a dash. */
const printWords: Readonly<Record<string, Print>> = { help: 'help', version: 'version' }

export interface Parsed {
  readonly given: ReadonlyMap<OptionName, Given>
  /** The first one given. */
  readonly print: Print | undefined
  /** One line each. */
  readonly faults: readonly string[]
  /** The arguments, with secrets masked. */
  readonly shownArguments: readonly string[]
  /** Options taken from the environment, as docs/operations/options.md logs them. */
  readonly fromEnv: readonly string[]
}

export const mask = '******'

export function parse(argv: readonly string[], env: Readonly<Record<string, string | undefined>>): Parsed {
  const given = new Map<OptionName, Given>()
  const fromEnv: string[] = []
  const line = readCommandLine(argv)
  for (const name of optionNames) {
    const text = line.texts.get(name)
    const variable = variableOf(name, env)
    if (text !== undefined) {
      given.set(name, { text, where: `-${name}` })
    } else if (variable !== undefined) {
      const value = env[variable] as string
      given.set(name, { text: value, where: `${variable} (-${name})` })
      fromEnv.push(`env var ${variable} (-${name}): ${options[name].secret ? mask : value}`)
    }
  }
  return { given, print: line.print, faults: line.faults, shownArguments: line.shown, fromEnv }
}

interface CommandLine {
  readonly texts: Map<OptionName, string>
  readonly shown: string[]
  readonly faults: string[]
  print: Print | undefined
}

function readCommandLine(argv: readonly string[]): CommandLine {
  const line: CommandLine = { texts: new Map(), shown: [...argv], faults: [], print: undefined }
  const { rest, positions } = withoutUnanswered(argv, line.faults)
  let unknownAt = -2
  for (const token of tokensOf(rest)) {
    if (token.kind === 'positional') {
      const { value, index } = token
      if (index === 0 && Object.hasOwn(printWords, value)) line.print ??= printWords[value]
      // After an unknown option this is most likely its value: one line about the two is enough.
      else if (index !== unknownAt + 1) line.faults.push(strayWord(value, index))
    } else if (token.kind === 'option') {
      const { name, index } = token
      const inline = token.inlineValue === true
      if (prints.includes(name)) {
        line.print ??= name as Print
      } else if (!isOptionName(name)) {
        unknownAt = index
        line.faults.push(`-${name}: unknown option${didYouMean(name, knownNames, shownName)}`)
      } else if (isFlag(name)) {
        if (inline) line.faults.push(`-${name}: takes no value`)
        else line.texts.set(name, 'true')
      } else {
        // The original text: parseArgs got it with a second dash if it began with one.
        const text = inline ? token.value : rest[index + 1]
        if (text !== undefined) line.texts.set(name, text)
        if (options[name].secret) {
          const position = positions[index] as number
          if (inline) line.shown[position] = `-${name}=${mask}`
          else line.shown[position + 1] = mask
        }
      }
    }
  }
  return line
}

const knownNames: readonly string[] = [...optionNames, ...prints]
const shownName = (name: string): string => `-${name}`

/** The first word may be meant as a command, any word as an option without its dash. */
function strayWord(word: string, index: number): string {
  const what = index === 0 ? 'neither a command nor an option' : 'not an option'
  const names = [...(index === 0 ? commandNames : []), ...optionNames.map(shownName)]
  const near = nearest(word, names) ?? nearest(`-${word}`, names)
  return `${JSON.stringify(word)}: ${what}${near === undefined ? '' : `; did you mean ${near}?`}`
}

/** Removes options without a value, because another option or nothing follows: a fault each. */
function withoutUnanswered(argv: readonly string[], faults: string[]): { rest: string[]; positions: number[] } {
  const rest = [...argv]
  const positions = argv.map((_, index) => index)
  for (;;) {
    const unanswered = tokensOf(rest).find(
      token =>
        token.kind === 'option' &&
        isOptionName(token.name) &&
        !isFlag(token.name) &&
        token.inlineValue !== true &&
        (token.value === undefined || isOption(rest[token.index + 1])),
    )
    if (unanswered?.kind !== 'option') return { rest, positions }
    faults.push(`-${unanswered.name}: needs a value`)
    rest.splice(unanswered.index, 1)
    positions.splice(unanswered.index, 1)
  }
}

const tokensOf = (args: readonly string[]) =>
  parseArgs({
    args: args.map(argument => (/^-[^-]/.test(argument) ? `-${argument}` : argument)),
    options: Object.fromEntries(
      optionNames.map(name => [name, { type: isFlag(name) ? ('boolean' as const) : ('string' as const) }]),
    ),
    strict: false,
    allowPositionals: true,
    tokens: true,
  }).tokens

const isFlag = (name: OptionName): boolean => options[name].kind.placeholder === ''

const isOption = (argument: string | undefined): boolean => {
  const name = argument === undefined ? undefined : /^--?([A-Za-z0-9]+)(=.*)?$/s.exec(argument)?.[1]
  return name !== undefined && (isOptionName(name) || prints.includes(name))
}

// Usage texts, made from the table of options

const lineLengthMax = 100

/** The options that have an effect, in a few lines. */
export function shortUsage(): string {
  const words = optionNames.filter(name => options[name].effect === 'now').map(name => `[${call(name, options[name])}]`)
  return [
    ...wrap('Usage: orrery ', [...words, '[-u]', '[-U]', '[-h]', '[--version]']),
    '-U explains these options and those accepted for the sake of existing start scripts.',
  ].join('\n')
}

/** All options with their environment variables, limits and defaults. */
export function longUsage(): string {
  const [prefix, alias] = envPrefixes
  const lines = [
    'Usage: orrery [option ...]',
    '       orrery <command> ...',
    '',
    'Commands',
    ...commandLines(),
    moreHelp,
    '',
    'Write an option as -name value, --name value or --name=value. The command line wins over the environment,',
    `where ${prefix}NAME wins over ${alias}NAME, and a flag is TRUE, true, FALSE or false.`,
    '',
    'Help',
    '  -u                     short usage',
    '  -U, -h, --help, help   this text',
    '  --version, version     the version',
  ]
  for (const [title, section] of Object.entries(sections)) {
    lines.push('', title)
    for (const [name, option] of Object.entries(section)) {
      lines.push(`  ${call(name, option)}`, `      ${remark[option.effect]}${option.help}`)
      lines.push(`      ${prefix}${option.env}${defaultOf(option)}`)
    }
  }
  return lines.join('\n')
}

const remark = {
  now: '',
  granted: '(Accepted.) ',
  ignored: 'Ignored: ',
} as const satisfies Record<OptionEffect, string>

function call(name: string, { kind }: Option<unknown>): string {
  if (kind.placeholder === '') return `-${name}`
  return `-${name} <${kind.placeholder}${kind.unit && ` ${kind.unit}`}>`
}

function defaultOf({ kind, byDefault }: Option<unknown>): string {
  if (byDefault === undefined || byDefault === '') return ''
  const shown = typeof byDefault === 'boolean' ? (byDefault ? 'on' : 'off') : byDefault
  return `, default ${shown}${kind.unit && ` ${kind.unit}`}`
}

function wrap(head: string, words: readonly string[]): string[] {
  const lines: string[] = []
  let line = head
  for (const word of words) {
    if (line.length + word.length > lineLengthMax) {
      lines.push(line.trimEnd())
      line = ' '.repeat(head.length)
    }
    line += `${word} `
  }
  return [...lines, line.trimEnd()]
}
