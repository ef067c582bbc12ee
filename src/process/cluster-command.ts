// `orrery cluster status|drain|resume`: an operator's request to a running node of a cluster. Without a URL it goes to
// the node on this machine (config/own-broker.ts).
//
// Exit status: 0 when it was done, 1 when the node could not be asked or has refused, or when the arguments are wrong.

import { request } from 'node:http'
import { usageOf } from '../config/commands.js'
import { ownBrokerUrl } from '../config/own-broker.js'
import type { ClusterStatus } from '../messages/cluster-status.js'

const methods = { status: 'GET', drain: 'POST', resume: 'DELETE' } as const

/** How long the node may take to give its shards away. */
const waitMs = 30_000

/** Runs the command; returns the exit status. */
export async function runCluster(
  verb: keyof typeof methods,
  words: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  const [url = ownBrokerUrl(env), ...more] = words
  if (more.length > 0 || !URL.canParse(url)) {
    const fault =
      more.length > 0 ? `${JSON.stringify(more[0])}: one URL is enough` : `${JSON.stringify(url)}: not a URL`
    process.stderr.write(`${usageOf(`cluster ${verb}`)}\n\n${fault}\n`)
    return 1
  }
  try {
    const { status, text } = await send(methods[verb], new URL(verb === 'status' ? '/cluster' : '/cluster/drain', url))
    // There is no such path, or it is served at another port.
    if (status === 400 || status === 404)
      throw new Error('it is not a node of a cluster, or its operators have another port (-adminPort)')
    if (status >= 400) throw new Error(description(text))
    process.stdout.write(verb === 'status' ? `${table(JSON.parse(text) as ClusterStatus)}\n` : '')
    return 0
  } catch (error) {
    process.stderr.write(`orrery cluster ${verb}: ${url}: ${(error as Error).message}\n`)
    return 1
  }
}

function send(method: string, url: URL): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, timeout: waitMs }, response => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (part: string) => {
        text += part
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
      response.on('error', reject)
    })
    sent.on('timeout', () => sent.destroy(new Error('no answer')))
    sent.on('error', reject)
    sent.end()
  })
}

function description(text: string): string {
  try {
    return (JSON.parse(text) as { description?: string }).description ?? text
  } catch {
    return text
  }
}

/** The status in columns, followed by a line for each problem. */
export function table({ node, cluster, log, health, members, shards }: ClusterStatus): string {
  const rows = [
    ['NODE', 'STATUS', 'SHARDS', 'TAKES SHARDS', 'DOMAIN', 'ADDRESS'],
    ...members.map(({ name, status, owned, isJoined, domain, address }) => [
      name === node ? `${name} *` : name,
      status,
      String(owned),
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
    ...(log.reason === undefined ? [] : [`${log.reason} (docs/operations/log-lost.md)`]),
    ...(log.reason === undefined && health.reason !== undefined
      ? [`not ready: ${health.reason} (docs/operations/cluster-health.md)`]
      : []),
    ...(orphans.length > 0 ? [`without an owner: ${orphans.join(', ')}`] : []),
    ...(stopped.length > 0 ? [`copies here that have stopped: ${stopped.join(', ')}`] : []),
  ].join('\n')
}
