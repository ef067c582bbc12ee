// `orrery tenants list` and `orrery tenants delete`: an operator's requests to a running broker about whole tenants
// (docs/operations/tenants.md). Without --from it is the broker on this machine (config/own-broker.ts).
//
// Exit status: 0 when there is an answer, or the deletion has begun. 1 when the broker could not be asked or has
// refused, or when the arguments are wrong; the reason is on standard error.

import { parseArgs } from 'node:util'
import type { Client } from 'undici'
import { type CommandName, usageOf } from '../config/commands.js'
import { envPrefixes, options } from '../config/options.js'
import { ownBrokerUrl } from '../config/own-broker.js'
import { connectorTo, openSockets, reasonOf } from '../deliver/sockets/sockets.js'
import { endpointOf, reasonIn } from './broker-client.js'

type Verb = 'list' | 'delete'

const text = { type: 'string' } as const
const flag = { type: 'boolean' } as const
const common = { from: text, notifCaFile: text, insecureNotif: flag } as const
const known: Readonly<Record<Verb, Readonly<Record<string, typeof text | typeof flag>>>> = {
  list: { ...common, json: flag },
  delete: { ...common, confirm: text },
}

/** Tenants per request. */
const pageLength = 1000
/** Time of an answer: for a list of many tenants the broker reads some entities of each. */
const answerMsMax = 60_000

interface Order {
  readonly verb: Verb
  readonly from: URL
  readonly name: string
  readonly confirm: string
  readonly asJson: boolean
  readonly tls: { readonly insecure: boolean; readonly caFile: string | undefined }
}

/** A tenant, as `GET /admin/tenants` shows it. */
interface Shown {
  readonly name: string
  readonly entities: number
  readonly subscriptions: number
  readonly registrations: number
  readonly bytes: number
  readonly lastChange?: string
  readonly state: string
}

/** Runs the command; returns the exit status. */
export async function runTenants(
  verb: Verb,
  words: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  const order = read(verb, words, env)
  if (typeof order === 'string') return fail(`${usageOf(`tenants ${verb}` satisfies CommandName)}\n\n${order}`)
  try {
    process.stdout.write(await carriedOut(order))
    return 0
  } catch (error) {
    return fail(`orrery tenants ${verb}: ${order.from.origin}: ${(error as Error).message}`)
  }
}

function fail(line: string): number {
  process.stderr.write(`${line}\n`)
  return 1
}

/** Returns the order, or a sentence about the fault. */
function read(verb: Verb, words: readonly string[], env: Readonly<Record<string, string | undefined>>): Order | string {
  try {
    const args = words.map(word => (/^-[^-]/.test(word) ? `-${word}` : word))
    const { values, positionals } = parseArgs({ args, options: known[verb], strict: true, allowPositionals: true })
    const from = String(values.from ?? ownBrokerUrl(env))
    if (!URL.canParse(from) || !/^https?:$/.test(new URL(from).protocol))
      return `--from: ${JSON.stringify(from)} is not a URL with http or https`
    const [name = '', ...more] = positionals
    if (verb === 'list' && name !== '') return `${JSON.stringify(name)}: a list has all tenants`
    if (verb === 'delete' && (name === '' || more.length > 0)) return 'one tenant has to be named'
    const confirm = String(values.confirm ?? '')
    if (verb === 'delete' && confirm !== name) return `a deletion has to name the tenant twice: add --confirm ${name}`
    const variable = envPrefixes.map(prefix => env[prefix + options.notifCaFile.env]).find(one => one)
    const caFile = (values.notifCaFile as string | undefined) ?? variable
    const tls = { insecure: values.insecureNotif === true, caFile }
    return { verb, from: new URL(from), name, confirm, asJson: values.json === true, tls }
  } catch (error) {
    return (error as Error).message
  }
}

/** Returns the text to print. */
async function carriedOut({ verb, from, name, confirm, asJson, tls }: Order): Promise<string> {
  const { Client } = await import('undici')
  const client = new Client(from.origin, {
    connect: connectorTo(endpointOf(from), openSockets(tls), () => {}),
    headersTimeout: answerMsMax,
    bodyTimeout: answerMsMax,
  })
  const base = `${from.pathname.replace(/\/+$/, '')}/admin/tenants`
  try {
    if (verb === 'delete') {
      const path = `${base}/${encodeURIComponent(name)}?confirm=${encodeURIComponent(confirm)}`
      const tenant = (await ask(client, 'DELETE', path)) as Shown
      return `tenant ${tenant.name} is being deleted, with ${tenant.entities} entities\n`
    }
    const all: Shown[] = []
    for (;;) {
      const page = (await ask(client, 'GET', `${base}?limit=${pageLength}&offset=${all.length}`)) as Shown[]
      all.push(...page)
      if (page.length < pageLength) break
    }
    return asJson ? `${JSON.stringify(all)}\n` : `${table(all)}\n`
  } finally {
    await client.destroy()
  }
}

async function ask(client: Client, method: 'GET' | 'DELETE', path: string): Promise<unknown> {
  const { statusCode, body } = await client.request({ method, path }).catch((error: Error) => {
    throw new Error(reasonOf(error))
  })
  const bytes = Buffer.from(await body.arrayBuffer())
  if (statusCode >= 400) throw new Error(`answered ${statusCode}: ${reasonIn({ body: bytes })}`)
  try {
    return JSON.parse(bytes.toString())
  } catch {
    throw new Error('the answer is not that of a broker')
  }
}

/** Tenants in columns. */
export function table(tenants: readonly Shown[]): string {
  const rows = [
    ['TENANT', 'STATE', 'ENTITIES', 'SUBSCRIPTIONS', 'REGISTRATIONS', 'BYTES', 'LAST CHANGE'],
    ...tenants.map(({ name, state, entities, subscriptions, registrations, bytes, lastChange = '-' }) => [
      ...[name, state],
      ...[entities, subscriptions, registrations, bytes].map(String),
      lastChange,
    ]),
  ]
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map(row => row[column]!.length)))
  return rows
    .map(row =>
      row
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
