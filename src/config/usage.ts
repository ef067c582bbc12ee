// The usage texts, made from the table of options: what -u, -U and --help print, and what follows a refused start.

import { envPrefixes, type Option, optionNames, options, type Standing, sections } from './options.js'

const lineLengthMax = 100

/** The options that have an effect, in a few lines. */
export function shortUsage(): string {
  const words = optionNames
    .filter(name => options[name].standing === 'now')
    .map(name => `[${call(name, options[name])}]`)
  return [
    ...wrap('Usage: orrery ', [...words, '[-u]', '[-U]', '[--help]', '[--version]']),
    '-U explains these options and those accepted for the sake of existing start scripts.',
  ].join('\n')
}

/** All options with their environment variables, limits and defaults. */
export function longUsage(): string {
  const [prefix, alias] = envPrefixes
  const lines = [
    'Usage: orrery [option ...]',
    '       orrery config check [option ...]   what these options come to, without starting',
    '       orrery export [option ...]         writes what a data directory or a running broker has; -help tells more',
    '       orrery import [option ...]         brings that in again, or what a running broker has',
    '       orrery cluster status|drain|resume [URL]   asks a node of a cluster; -help tells more',
    '',
    'Write an option as -name value, --name value or --name=value. The command line wins over the environment,',
    `where ${prefix}NAME wins over ${alias}NAME, and a flag is TRUE, true, FALSE or false.`,
    '',
    'Help',
    '  -u           short usage',
    '  -U, --help   this text',
    '  --version    the version',
  ]
  for (const [title, section] of Object.entries(sections)) {
    lines.push('', title)
    for (const [name, option] of Object.entries(section)) {
      lines.push(`  ${call(name, option)}`, `      ${remark[option.standing]}${option.help}`)
      lines.push(`      ${prefix}${option.env}${defaultOf(option)}`)
    }
  }
  return lines.join('\n')
}

const remark = {
  now: '',
  later: '(Without effect in this version.) ',
  granted: '(Accepted.) ',
  ignored: 'Ignored: ',
} as const satisfies Record<Standing, string>

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
