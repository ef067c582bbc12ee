// `orrery cluster status|drain|resume`: an operator's request to a running node of a cluster. Without a URL it goes to
// the node on this machine (config/own-broker.ts).
//
// Exit status: 0 when it was done, 1 when the node could not be asked or has refused, or when the arguments are wrong.

import { parseArgs } from 'node:util'
import { usageOf } from '../config/commands.js'
import { ownBrokerUrl } from '../config/own-broker.js'
import type { ClusterStatus } from '../messages/cluster-status.js'
import {
  type OperatorTarget,
  operatorJson,
  operatorOptions,
  operatorTarget,
  withOperatorClient,
} from '../move/operator-client.js'
import { clockInWords } from '../observe/clock-reporter.js'

type Verb = keyof typeof methods

const methods = { status: 'GET', drain: 'POST', resume: 'DELETE' } as const

/** How long the node may take to give its shards away. */
const waitMs = 30_000

/** Runs the command; returns the exit status. */
export async function runCluster(
  verb: Verb,
  words: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  const target = targetIn(words, env)
  if (typeof target === 'string') {
    process.stderr.write(`${usageOf(`cluster ${verb}`)}\n\n${target}\n`)
    return 1
  }
  try {
    process.stdout.write(await carriedOut(verb, target))
    return 0
  } catch (error) {
    process.stderr.write(`orrery cluster ${verb}: ${target.url.origin}: ${(error as Error).message}\n`)
    return 1
  }
}

/** Returns the node, or a sentence about the fault. */
function targetIn(
  words: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): OperatorTarget | string {
  try {
    const args = words.map(word => (/^-[^-]/.test(word) ? `-${word}` : word))
    const { values, positionals } = parseArgs({ args, options: operatorOptions, strict: true, allowPositionals: true })
    const [url = ownBrokerUrl(env), ...more] = positionals
    if (more.length > 0) return `${JSON.stringify(more[0])}: one URL is enough`
    return operatorTarget('the node', url, values, env)
  } catch (error) {
    return (error as Error).message
  }
}

/** Returns the text to print. */
const carriedOut = (verb: Verb, target: OperatorTarget): Promise<string> =>
  withOperatorClient(target, waitMs, async ask => {
    const answer = await ask(methods[verb], verb === 'status' ? '/cluster' : '/cluster/drain')
    const { status } = answer
    // There is no such path, or it is served at another port.
    if (status === 400 || status === 404)
      throw new Error('it is not a node of a cluster, or its operators have another port (-adminPort)')
    if (verb !== 'status' && status < 400) return ''
    return `${table(operatorJson(answer) as ClusterStatus)}\n`
  })

const stateInWords = { answers: 'answers', away: 'does not answer', full: 'is full' } as const

/** The status in columns, followed by a line for each problem. */
export function table({ node, cluster, log, engines = [], health, clock, members, shards }: ClusterStatus): string {
  const rows = [
    ['NODE', 'STATUS', 'SHARDS', 'REQUESTS/S', 'TAKES SHARDS', 'DOMAIN', 'ADDRESS'],
    ...members.map(({ name, status, owned, load, isJoined, domain, address }) => [
      name === node ? `${name} *` : name,
      status,
      String(owned),
      load === undefined ? '-' : String(load),
      isJoined ? 'yes' : 'no',
      domain || '-',
      address,
    ]),
  ]
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map(row => row[column]!.length)))
  const lines = rows.map(row =>
    row
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join('  ')
      .trimEnd(),
  )
  const orphans = shards.filter(({ owner }) => owner === undefined).map(({ shard }) => shard)
  const stopped = shards.filter(({ copy }) => copy === 'stopped').map(({ shard }) => shard)
  const copies = shards.filter(({ copy }) => copy === 'owned' || copy === 'following').length
  const lag = Math.max(0, ...shards.map(one => one.lag))
  return [
    `cluster ${cluster}, seen by ${node}`,
    '',
    ...lines,
    '',
    `${copies} of ${shards.length} shards have a copy here, the furthest ${lag} records behind`,
    ...engines.map(({ engine, shards, hasRegister, state }, place) => {
      const kept = hasRegister ? `${shards} shards, the register among them` : `${shards} shards`
      return `log engine ${place + 1}, ${engine}: ${kept}, ${stateInWords[state]}`
    }),
    ...(log.reason === undefined ? [] : [`${log.reason} (docs/operations/log-lost.md)`]),
    ...(log.reason === undefined && health.reason !== undefined
      ? [`not ready: ${health.reason} (docs/operations/cluster-health.md)`]
      : []),
    ...(clock.state === 'apart' ? [`${clockInWords(clock)} (docs/operations/cluster.md#clocks)`] : []),
    ...(orphans.length > 0 ? [`without an owner: ${orphans.join(', ')}`] : []),
    ...(stopped.length > 0 ? [`copies here that have stopped: ${stopped.join(', ')}`] : []),
  ].join('\n')
}
