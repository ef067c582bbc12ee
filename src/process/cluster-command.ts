// `orrery cluster`: what an operator asks of a running node of a cluster; and how a cluster begins with what a single node has, and ends as one.
//
// Exit status: 0 when it was done, 1 when the node could not be asked or has refused, and when the words are none.

import { request } from 'node:http'
import { options } from '../config/options.js'
import type { ClusterStatus } from '../messages/cluster-status.js'

const usage = [
  'Usage: orrery cluster status [URL]   who is there, who owns what, and how far copies are behind',
  '       orrery cluster drain [URL]    has a node give its shards away, and take none',
  '       orrery cluster resume [URL]   has it take shards again',
  '       orrery cluster init --from DIR <options of the first node>',
  '                                     begins a cluster with the data directory of a single node',
  '       orrery cluster leave --from DIR -dataDir NEW <options of the node>',
  '                                     makes that of a node of a cluster the data directory of a single node',
  '',
  `URL is that of the node, by default http://localhost:${options.port.byDefault}.`,
].join('\n')

const methods = { status: 'GET', drain: 'POST', resume: 'DELETE' } as const

/** How long a node may take to give its shards away. */
const waitMs = 30_000

/** Runs the command; gives the exit status. */
export async function runCluster(
  words: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  if (words[0] === 'init' || words[0] === 'leave')
    return (await import('./cluster-directories.js')).runOnDirectory(words[0], words.slice(1), env)
  const [verb = '', url = `http://localhost:${options.port.byDefault}`, ...more] = words
  if (!Object.hasOwn(methods, verb) || more.length > 0 || !URL.canParse(url)) {
    const isHelp = verb === '-help' || verb === '--help'
    process[isHelp ? 'stdout' : 'stderr'].write(`${usage}\n`)
    return isHelp ? 0 : 1
  }
  const known = verb as keyof typeof methods
  try {
    const { status, text } = await send(
      methods[known],
      new URL(known === 'status' ? '/cluster' : '/cluster/drain', url),
    )
    if (status === 404) throw new Error('it is not a node of a cluster')
    if (status >= 400) throw new Error(description(text))
    process.stdout.write(known === 'status' ? `${table(JSON.parse(text) as ClusterStatus)}\n` : '')
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

/** The status in columns, and what is not as it should be. */
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
