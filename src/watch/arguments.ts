// The options of `orrery watch` on the command line, and the message with which a watch begins
// (docs/interface/live.md#orrery-watch).
//
// Names are --name or -name, as those of the start options. The word behind an option that takes a value is its value,
// also when it begins with a dash: coordinates may be negative.
//
// Not here: whether a filter is right. The broker checks that, with the texts that it has for every client.

import { parseArgs } from 'node:util'
import { usageOf } from '../config/commands.js'
import { didYouMean } from '../config/nearest.js'
import { envPrefixes, options } from '../config/options.js'
import type { JsonObject } from '../domain/json.js'
import { refusalText } from '../domain/refusal.js'
import { parseServicePaths, parseTenant } from '../domain/scope.js'
import { watchEntitiesMax } from '../domain/streams/watch.js'

/** `json`: an event in each line. `keyValues`: the same in the simplified form. `table`: the latest states. */
export type WatchFormat = 'json' | 'keyValues' | 'table'
const formats: readonly WatchFormat[] = ['json', 'keyValues', 'table']

export interface WatchOrder {
  /** The address of the broker, without `/v2/stream`. */
  readonly url: URL
  readonly format: WatchFormat
  /** The members of the message that do not change when the watch is resumed. */
  readonly members: JsonObject
  /** Whether the reader wants the entities that match at the beginning, and after a gap. */
  readonly hasSnapshot: boolean
  /** The cursor after which the first watch begins. */
  readonly from: string | undefined
  /** Headers of the request that opens the connection. They may be secret. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly tls: { readonly insecure: boolean; readonly caFile: string | undefined }
}

export type WatchReading =
  | { readonly kind: 'run'; readonly order: WatchOrder }
  | { readonly kind: 'refuse'; readonly lines: readonly string[] }

/** The id of the only watch of the connection. */
export const watchId = 'watch'

const text = { type: 'string' } as const
const several = { type: 'string', multiple: true } as const
const flag = { type: 'boolean' } as const

/** Options that become a member of the message, with the same name. */
const filters: readonly string[] = [
  ...['id', 'type', 'idPattern', 'typePattern', 'q', 'mq', 'georel', 'geometry', 'coords'],
  ...['attrs', 'metadata', 'conditionAttrs', 'alterationTypes'],
]
/** Options in milliseconds that become a member of the message, a number with the same name. */
const times = ['minInterval', 'gather'] as const
/** Options that become a word of `options`. */
const words = ['snapshot', 'leave', 'onlyChangedAttrs', 'sysAttrs'] as const

const known = {
  url: text,
  format: text,
  ...Object.fromEntries(filters.map(name => [name, text])),
  ...Object.fromEntries(times.map(name => [name, text])),
  from: text,
  ...Object.fromEntries(words.map(name => [name, flag])),
  tenant: text,
  path: text,
  token: text,
  header: several,
  notifCaFile: text,
  insecureNotif: flag,
}

interface Given {
  readonly [name: string]: string | boolean | string[] | undefined
}

/** Reads the words behind the name of the command. */
export function readWatchArguments(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): WatchReading {
  const faults: string[] = []
  const given = parse(argv, faults)
  const order = orderOf(given, env, faults)
  return faults.length > 0 ? { kind: 'refuse', lines: [usageOf('watch'), '', ...faults] } : { kind: 'run', order }
}

/** The message with which a watch begins. `from`: the cursor after which it continues. */
export const watchMessage = ({ members }: Pick<WatchOrder, 'members'>, from: string | undefined): string =>
  JSON.stringify({ op: 'watch', id: watchId, ...members, ...(from !== undefined && { from }) })

function parse(argv: readonly string[], faults: string[]): Given {
  const { values, tokens } = parseArgs({
    args: withValues(argv, faults),
    options: known,
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  let unknownAt = -2
  for (const token of tokens) {
    if (token.kind === 'option' && !Object.hasOwn(known, token.name)) {
      unknownAt = token.index
      faults.push(`${shownName(token.name)}: unknown option${didYouMean(token.name, Object.keys(known), shownName)}`)
    } else if (token.kind === 'option' && isFlag(token.name) && token.inlineValue === true) {
      faults.push(`${shownName(token.name)}: takes no value`)
      // The word itself is not shown: it may be a part of a header that lacks its quotes. After an unknown option it is
      // most likely the value of that.
    } else if (token.kind === 'positional' && token.index !== unknownAt + 1)
      faults.push('a word belongs to no option: a value with spaces needs quotes')
  }
  return values as Given
}

const shownName = (name: string): string => (name.length === 1 ? `-${name}` : `--${name}`)

const isFlag = (name: string): boolean => (known as Record<string, { type: string }>)[name]?.type === 'boolean'

/** The words with each value joined to its option, and two dashes before each option. */
function withValues(argv: readonly string[], faults: string[]): string[] {
  const joined: string[] = []
  for (let at = 0; at < argv.length; at++) {
    const word = argv[at] as string
    const name = /^--?([A-Za-z]+)$/.exec(word)?.[1]
    if (name === undefined || !Object.hasOwn(known, name) || isFlag(name)) {
      joined.push(/^-[^-]/.test(word) ? `-${word}` : word)
      continue
    }
    const value = argv[at + 1]
    if (value === undefined || isOption(value)) faults.push(`${shownName(name)}: needs a value`)
    else {
      joined.push(`--${name}=${value}`)
      at++
    }
  }
  return joined
}

const isOption = (word: string): boolean => {
  const name = /^--?([A-Za-z]+)(?:=.*)?$/s.exec(word)?.[1]
  return name !== undefined && Object.hasOwn(known, name)
}

function orderOf(given: Given, env: Readonly<Record<string, string | undefined>>, faults: string[]): WatchOrder {
  const textOf = (name: string): string | undefined => given[name] as string | undefined
  const format = (textOf('format') ?? 'json') as WatchFormat
  if (!formats.includes(format))
    faults.push(`--format: ${JSON.stringify(format)} is not json, keyValues or table${didYouMean(format, formats)}`)
  const isTable = format === 'table'
  // An event of the two would have a part of an entity, or come without the state before it.
  for (const name of ['onlyChangedAttrs', 'from'])
    if (isTable && given[name] !== undefined) faults.push(`--${name}: excludes --format table`)
  const timesGiven = times.flatMap(name => {
    const given = textOf(name)
    return given === undefined ? [] : [[name, given] as const]
  })
  for (const [name, given] of timesGiven)
    if (!/^\d{1,15}$/.test(given))
      faults.push(`--${name}: ${JSON.stringify(given)} is not a whole number of milliseconds`)
  for (const name of filters) if (given[name] === '') faults.push(`${shownName(name)}: needs a value`)
  for (const name of ['id', 'type'])
    if (given[name] !== undefined && given[`${name}Pattern`] !== undefined)
      faults.push(`--${name}Pattern: excludes --${name}`)

  const wanted = words.filter(word => given[word] === true || (isTable && (word === 'snapshot' || word === 'leave')))
  const listed = [...(format === 'json' ? [] : ['keyValues']), ...wanted]
  const caVariable = envPrefixes.map(prefix => env[prefix + options.notifCaFile.env]).find(one => one)
  return {
    url: urlOf(textOf('url') ?? `http://localhost:${options.port.byDefault}`, faults),
    format,
    members: {
      ...membersOf(given as Readonly<Record<string, string | undefined>>, faults),
      // Entities of several service paths may have the same id.
      ...(isTable && { attrs: `${textOf('attrs') ?? '*'},servicePath` }),
      ...Object.fromEntries(timesGiven.map(([name, given]) => [name, Number(given)])),
      ...(listed.length > 0 && { options: listed }),
    },
    hasSnapshot: wanted.includes('snapshot'),
    from: textOf('from'),
    headers: headersOf(given, faults),
    tls: { insecure: given.insecureNotif === true, caFile: textOf('notifCaFile') ?? caVariable },
  }
}

/**
 * The filters as members of a message. There `id` is the name of the watch, so entities with ids are elements of
 * `entities`, one for each pair of an id and a type.
 */
function membersOf(given: Readonly<Record<string, string | undefined>>, faults: string[]): JsonObject {
  const members: Readonly<Record<string, string>> = Object.fromEntries(
    filters.flatMap(name => (given[name] === undefined ? [] : [[name, given[name]]])),
  )
  const { id, type, typePattern, ...others } = members
  if (id === undefined) return members
  const ids = id.split(',')
  const types = type === undefined ? [typePattern === undefined ? {} : { typePattern }] : type.split(',').map(typed)
  const count = ids.length * types.length
  if (count <= watchEntitiesMax)
    return { entities: ids.flatMap(one => types.map(other => ({ id: one, ...other }))), ...others }
  faults.push(`--id: with --type it names ${count} entities, and a watch has at most ${watchEntitiesMax}`)
  return {}
}

const typed = (type: string): JsonObject => ({ type })

function urlOf(written: string, faults: string[]): URL {
  const url = URL.canParse(written) ? new URL(written) : undefined
  const isFit = url !== undefined && /^https?:$/.test(url.protocol) && url.search === '' && url.hash === ''
  // A URL with a user may hold a password, which is not shown.
  if (written.includes('@')) faults.push("--url: takes no user; write --header 'Authorization: ...'")
  else if (!isFit) faults.push(`--url: ${JSON.stringify(written)} is not a URL with http or https`)
  return isFit ? url : new URL('http://localhost')
}

/**
 * The headers that open the connection: those for the scope and the token, as `orrery export` sends them, and others.
 */
function headersOf(given: Given, faults: string[]): readonly (readonly [string, string])[] {
  const { tenant: tenantGiven, path: pathGiven, token } = given as Readonly<Record<string, string | undefined>>
  const headers: (readonly [string, string])[] = []
  const tenant = parseTenant(tenantGiven ?? '')
  if (!tenant.ok) faults.push(`--tenant: ${refusalText(tenant.refusal)}`)
  else if (tenant.value !== '') headers.push(['Ctx-Service', tenant.value], ['Fiware-Service', tenant.value])
  const paths = parseServicePaths(pathGiven ?? '')
  if (!paths.ok) faults.push(`--path: ${refusalText(paths.refusal)}`)
  else if (paths.value.length > 1) faults.push(`--path: ${JSON.stringify(pathGiven)} is not one path`)
  else for (const path of paths.value) headers.push(['Ctx-ServicePath', path], ['Fiware-ServicePath', path])
  if (token !== undefined) {
    if (isValue(token)) headers.push(['X-Auth-Token', token], ['Authorization', `Bearer ${token}`])
    else faults.push('--token: has characters that a header cannot have')
  }
  for (const line of (given.header as string[] | undefined) ?? []) {
    const [, name = '', value = ''] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*)$/s.exec(line) ?? []
    if (name === '' || !isValue(value)) faults.push("--header: has not the form 'Name: value'")
    else if (ownHeaders.test(name)) faults.push(`--header: ${name} belongs to the connection itself`)
    else headers.push([name, value])
  }
  return headers
}

const ownHeaders = /^(connection|upgrade|transfer-encoding|content-length|expect|te|trailer|sec-websocket-.*)$/i

const isValue = (value: string): boolean => /^[\t\x20-\x7e\x80-\xff]+$/.test(value)
