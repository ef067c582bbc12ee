// `orrery tenants list` and `orrery tenants delete`: an operator's requests to a running broker about whole tenants
// (docs/operations/tenants.md). Without --from it is the broker on this machine (config/own-broker.ts).
//
// Exit status: 0 when there is an answer, or the deletion has begun. 1 when the broker could not be asked or has
// refused, or when the arguments are wrong; the reason is on standard error.

import { parseArgs } from 'node:util'
import { type CommandName, usageOf } from '../config/commands.js'
import { ownBrokerUrl } from '../config/own-broker.js'
import {
  type OperatorTarget,
  operatorJson,
  operatorOptions,
  operatorTarget,
  withOperatorClient,
} from './operator-client.js'

type Verb = 'list' | 'delete'

const text = { type: 'string' } as const
const flag = { type: 'boolean' } as const
const common = { ...operatorOptions, from: text } as const
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
  readonly target: OperatorTarget
  readonly name: string
  readonly confirm: string
  readonly asJson: boolean
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
    return fail(`orrery tenants ${verb}: ${order.target.url.origin}: ${(error as Error).message}`)
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
    const target = operatorTarget('--from', String(values.from ?? ownBrokerUrl(env)), values, env)
    if (typeof target === 'string') return target
    const [name = '', ...more] = positionals
    if (verb === 'list' && name !== '') return `${JSON.stringify(name)}: a list has all tenants`
    if (verb === 'delete' && (name === '' || more.length > 0)) return 'one tenant has to be named'
    const confirm = String(values.confirm ?? '')
    if (verb === 'delete' && confirm !== name) return `a deletion has to name the tenant twice: add --confirm ${name}`
    return { verb, target, name, confirm, asJson: values.json === true }
  } catch (error) {
    return (error as Error).message
  }
}

/** Returns the text to print. */
const carriedOut = ({ verb, target, name, confirm, asJson }: Order): Promise<string> =>
  withOperatorClient(target, answerMsMax, async ask => {
    const base = '/admin/tenants'
    if (verb === 'delete') {
      const path = `${base}/${encodeURIComponent(name)}?confirm=${encodeURIComponent(confirm)}`
      const tenant = operatorJson(await ask('DELETE', path)) as Shown
      return `tenant ${tenant.name} is being deleted, with ${tenant.entities} entities\n`
    }
    const all: Shown[] = []
    for (;;) {
      const page = operatorJson(await ask('GET', `${base}?limit=${pageLength}&offset=${all.length}`)) as Shown[]
      all.push(...page)
      if (page.length < pageLength) break
    }
    return asJson ? `${JSON.stringify(all)}\n` : `${table(all)}\n`
  })

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
