// The options of `orrery export` and `orrery import` on the command line.
//
// Names are -name or --name, like those of the start options. Shared names have the same kinds and environment
// variables.

import { parseArgs } from 'node:util'
import { usageOf } from '../config/commands.js'
import { workersFor } from '../config/cores.js'
import { didYouMean } from '../config/nearest.js'
import { envPrefixes, options } from '../config/options.js'
import { refusalText } from '../domain/refusal.js'
import { parseServicePaths, parseTenant } from '../domain/scope.js'
import type { MoveSelection } from './selection.js'

export type Verb = 'export' | 'import'

export interface MoveOrder {
  readonly verb: Verb
  readonly from: MoveEndpoint
  readonly to: MoveEndpoint
  readonly selection: MoveSelection
  readonly token: string | undefined
  readonly overwrites: boolean
  readonly skipsBad: boolean
  /** Workers of a new data directory; when given, an existing one is divided among them. undefined: 1, or no change. */
  readonly workers: number | undefined
  readonly state: string | undefined
  readonly tls: { readonly insecure: boolean; readonly caFile: string | undefined }
}

export type MoveEndpoint =
  | { readonly kind: 'directory'; readonly path: string }
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'broker'; readonly url: string }

export type MoveReading =
  | { readonly kind: 'run'; readonly order: MoveOrder }
  | { readonly kind: 'refuse'; readonly lines: readonly string[] }

const text = { type: 'string' } as const
const several = { type: 'string', multiple: true } as const
const flag = { type: 'boolean' } as const
const known = {
  export: { dataDir: text, from: text, to: text },
  import: { dataDir: text, from: text, to: text, file: text, workers: text, overwrite: flag },
} as const
const common = {
  tenant: several,
  path: several,
  token: text,
  state: text,
  skipBad: flag,
  insecureNotif: flag,
  notifCaFile: text,
} as const

/** Reads the words after the verb. */
export function readArguments(
  verb: Verb,
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): MoveReading {
  const faults = unknownIn(verb, argv)
  if (faults.length > 0) return { kind: 'refuse', lines: [usageOf(verb), '', ...faults] }
  let values: ReturnType<typeof parse>
  try {
    values = parse(verb, argv)
  } catch (error) {
    return { kind: 'refuse', lines: [usageOf(verb), '', (error as Error).message] }
  }
  const order = orderOf(verb, values, env, faults)
  return faults.length > 0 ? { kind: 'refuse', lines: [usageOf(verb), '', ...faults] } : { kind: 'run', order }
}

interface Given {
  readonly [name: string]: string | boolean | string[] | undefined
}

function parse(verb: Verb, argv: readonly string[]): Given {
  return parseArgs({ args: argsOf(argv), options: optionsOf(verb), strict: true, allowPositionals: false })
    .values as Given
}

const optionsOf = (verb: Verb) => ({ ...known[verb], ...common })

/** One dash begins a name here, and `-` alone is a value. */
const argsOf = (argv: readonly string[]): string[] => argv.map(word => (/^-[^-]/.test(word) ? `-${word}` : word))

/** A line for each option that the command does not know. */
function unknownIn(verb: Verb, argv: readonly string[]): string[] {
  const names = Object.keys(optionsOf(verb))
  const { tokens } = parseArgs({ args: argsOf(argv), options: optionsOf(verb), strict: false, tokens: true })
  return tokens
    .flatMap(token => (token.kind === 'option' && !names.includes(token.name) ? [token.name] : []))
    .map(name => `-${name}: unknown option${didYouMean(name, names, near => `-${near}`)}`)
}

function orderOf(
  verb: Verb,
  given: Given,
  env: Readonly<Record<string, string | undefined>>,
  faults: string[],
): MoveOrder {
  const wordOf = (name: 'dataDir' | 'notifCaFile' | 'workers' | 'insecureNotif'): string | undefined => {
    const variable = envPrefixes.map(prefix => prefix + options[name].env).find(key => env[key])
    const word = given[name] ?? (variable && env[variable])
    return word === true ? 'true' : (word as string | undefined)
  }
  const read = <T>(
    name: 'dataDir' | 'workers' | 'insecureNotif',
    kind: { readonly form: string; read(text: string): T | undefined },
  ) => {
    const word = wordOf(name)
    const value = word === undefined ? undefined : kind.read(word)
    if (word !== undefined && value === undefined) faults.push(`-${name}: ${JSON.stringify(word)} is not ${kind.form}`)
    return value
  }
  const directory: MoveEndpoint = {
    kind: 'directory',
    path: read('dataDir', options.dataDir.kind) ?? options.dataDir.byDefault,
  }
  const textOf = (name: string): string | undefined => given[name] as string | undefined
  const broker = (name: 'from' | 'to'): MoveEndpoint | undefined => {
    const url = textOf(name)
    if (url === undefined || (verb === 'export' && name === 'to')) return undefined
    if (!isHttp(url)) faults.push(`-${name}: ${JSON.stringify(url)} is not a URL with http or https`)
    return { kind: 'broker', url }
  }
  const source = broker('from')
  const target = broker('to')
  if (source && textOf('file') !== undefined) faults.push('-file: excludes -from')
  if (verb === 'export' && source && given.dataDir !== undefined) faults.push('-dataDir: excludes -from')
  if (verb === 'import' && target && given.dataDir !== undefined) faults.push('-dataDir: excludes -to')
  const isExport = verb === 'export'
  const workers = isExport ? undefined : read('workers', options.workers.kind)
  return {
    verb,
    from: source ?? (isExport ? directory : { kind: 'file', path: textOf('file') ?? '-' }),
    to: isExport ? { kind: 'file', path: textOf('to') ?? '-' } : (target ?? directory),
    selection: {
      tenants: tenantsOf(given.tenant as string[] | undefined, faults),
      paths: pathsOf(given.path as string[] | undefined, faults),
    },
    token: textOf('token'),
    overwrites: given.overwrite === true,
    skipsBad: given.skipBad === true,
    workers: workers && workersFor(workers),
    state: textOf('state'),
    tls: { insecure: read('insecureNotif', options.insecureNotif.kind) ?? false, caFile: wordOf('notifCaFile') },
  }
}

function isHttp(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, search, hash, username } = new URL(text)
  return /^https?:$/.test(protocol) && search === '' && hash === '' && username === ''
}

function tenantsOf(names: readonly string[] | undefined, faults: string[]): string[] | undefined {
  const tenants = names?.map(name => {
    const tenant = parseTenant(name)
    if (!tenant.ok) faults.push(`-tenant: ${refusalText(tenant.refusal)}`)
    return tenant.ok ? tenant.value : ''
  })
  return tenants && [...new Set(tenants)]
}

function pathsOf(names: readonly string[] | undefined, faults: string[]): string[] | undefined {
  return names?.map(name => {
    const paths = parseServicePaths(name)
    const [path, ...others] = paths.ok ? paths.value : []
    if (!paths.ok) faults.push(`-path: ${refusalText(paths.refusal)}`)
    else if (path === undefined || others.length > 0 || path.endsWith('#'))
      faults.push(`-path: ${JSON.stringify(name)} is not one path`)
    return path ?? '/'
  })
}
