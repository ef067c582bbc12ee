// The options of `orrery demo` on the command line (docs/operations/demo.md).
//
// Names are --name or -name, as those of the start options.

import { parseArgs } from 'node:util'
import { usageOf } from '../config/commands.js'
import { didYouMean } from '../config/nearest.js'
import { options } from '../config/options.js'

export interface DemoOrder {
  readonly port: number
  /** The address to listen on. */
  readonly host: string
  /** The data directory, which must be missing or empty; undefined: a temporary one. */
  readonly directory: string | undefined
  /** Decides all that the city leaves to chance. */
  readonly seed: number
}

export type DemoReading =
  | { readonly kind: 'run'; readonly order: DemoOrder }
  | { readonly kind: 'refuse'; readonly lines: readonly string[] }

/** Other machines cannot reach the demo unless the user asks for it. */
export const hostDefault = '127.0.0.1'

const text = { type: 'string' } as const
const known = { port: text, localIp: text, dataDir: text, seed: text } as const

/** Reads the words behind the name of the command. */
export function readDemoArguments(argv: readonly string[]): DemoReading {
  const faults: string[] = []
  const { values, tokens } = parseArgs({
    args: argv.map(word => (/^-[^-]/.test(word) ? `-${word}` : word)),
    options: known,
    strict: false,
    tokens: true,
  })
  for (const token of tokens) {
    if (token.kind === 'positional') faults.push(`${JSON.stringify(token.value)}: belongs to no option`)
    else if (token.kind === 'option' && !Object.hasOwn(known, token.name))
      faults.push(`-${token.name}: unknown option${didYouMean(token.name, Object.keys(known), name => `-${name}`)}`)
    else if (token.kind === 'option' && (token.value ?? '') === '') faults.push(`-${token.name}: needs a value`)
  }
  const textOf = (name: keyof typeof known): string | undefined => {
    const value = values[name]
    return typeof value === 'string' && value !== '' ? value : undefined
  }
  const numberOf = (name: keyof typeof known, least: number, most: number, otherwise: number): number => {
    const written = textOf(name)
    if (written === undefined) return otherwise
    const value = Number(written)
    if (!/^\d{1,10}$/.test(written) || value < least || value > most)
      faults.push(`-${name}: ${JSON.stringify(written)} is not a whole number from ${least} to ${most}`)
    return value
  }
  const order: DemoOrder = {
    port: numberOf('port', 1, 65_535, options.port.byDefault),
    host: textOf('localIp') ?? hostDefault,
    directory: textOf('dataDir'),
    seed: numberOf('seed', 0, 2 ** 32 - 1, 1),
  }
  return faults.length > 0 ? { kind: 'refuse', lines: [usageOf('demo'), '', ...faults] } : { kind: 'run', order }
}
