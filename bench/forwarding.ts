// Forwarding: the effect of a provider that never answers on clients that read local entities.
//
// The provider accepts connections and sends nothing. As many clients as read the stock ask, each again and again, for
// an entity that only the provider has, and get "not found" after the timeout. They begin one after the other, like
// independent clients. The other reads are measured beside these, and beside as many clients that ask at the same pace
// for an entity without a provider. So the two sides differ in the provider only. Both use one server, in turn, which
// has the registration.

import { rmSync } from 'node:fs'
import { type AddressInfo, createServer, type Server as NetServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Connection } from './connection.js'
import { drive } from './generator.js'
import { load, loadStock } from './loader.js'
import { cpuSeconds } from './machine.js'
import type { RateOptions } from './rate-options.js'
import { atMost, type Finding, information, median, progress, rate, thousands } from './report.js'
import { start } from './servers.js'
import { reads, stockSize, type Template, upserts, wire } from './workloads.js'

const needed = { withSilentTimes: 1.2 }

/** Short, so that many run into it. */
const timeoutMs = 1_000

const registration = (url: string): Template => ({
  method: 'POST',
  path: '/v2/registrations',
  body: JSON.stringify({ dataProvided: { entities: [{ id: 'Far', type: 'Far' }] }, provider: { http: { url } } }),
})

/**
 * Requests to the provider take the timeout; requests without a provider are answered at once and repeated after the
 * same time.
 */
const targets = {
  provider: { path: '/v2/entities/Far?type=Far', pauseMs: 0 },
  noProvider: { path: '/v2/entities/Nowhere?type=Far', pauseMs: timeoutMs },
} as const
type Target = keyof typeof targets

export async function forwarding(options: RateOptions): Promise<Finding[]> {
  const { subject, folder, seconds, rounds, warmUpSeconds, connections } = options
  const dataDir = join(folder, 'forwarding')
  const provider = await silentProvider()
  const server = await start(subject, dataDir, 'server', { args: ['-httpTimeout', String(timeoutMs)] })
  await loadStock([server.url], upserts[0]!.template, '', stockSize)
  await load({ urls: [server.url], count: 1, request: () => wire(registration(provider.url), '') })
  const driven = { urls: [server.url], workload: reads, connections, tenant: '', place: 'generator' as const }
  await drive({ ...driven, seconds: warmUpSeconds })

  const p99 = { noProvider: [] as number[], provider: [] as number[] }
  const perCpuSecond = { noProvider: [] as number[], provider: [] as number[] }
  let notFound = 0
  for (let round = 1; round <= rounds; round++)
    for (const kind of round % 2 === 1
      ? (['noProvider', 'provider'] as const)
      : (['provider', 'noProvider'] as const)) {
      const repeated = await requestRepeatedly(server.url, connections, kind)
      const cpuBefore = cpuSeconds(server.pid)
      const { latencyMs, requests, seconds: took } = await drive({ ...driven, seconds })
      const answered = repeated.end()
      if (kind === 'provider') notFound += answered
      p99[kind].push(latencyMs.p99)
      perCpuSecond[kind].push(requests / (cpuSeconds(server.pid) - cpuBefore))
      progress(
        `round ${round}, reads beside clients of ${kind === 'provider' ? 'the provider' : 'nobody'}: ${thousands(requests / took)}/s, ${thousands(perCpuSecond[kind].at(-1)!)} per CPU second, ` +
          `p50 ${latencyMs.p50.toFixed(2)} ms, p99 ${latencyMs.p99.toFixed(2)} ms`,
      )
    }
  await server.stop()
  provider.close()
  rmSync(dataDir, { recursive: true })

  const [without, withSilent] = [median(p99.noProvider), median(p99.provider)]
  const found = `${(withSilent / without).toFixed(2)}: p99 ${withSilent.toFixed(2)} ms, of nobody ${without.toFixed(2)} ms`
  return [
    atMost(
      `reads beside ${connections} of a silent provider`,
      found,
      withSilent / without,
      needed.withSilentTimes,
      'times',
    ),
    information(
      'reads per CPU second, of the provider and of nobody',
      `${rate(perCpuSecond.provider)}, ${rate(perCpuSecond.noProvider)}`,
    ),
    information('of those, answered with 404', thousands(notFound)),
  ]
}

/**
 * Requests a missing entity over this number of connections, and resolves when the last of them has begun. `end`
 * returns the number of "not found" answers; any other answer fails.
 */
async function requestRepeatedly(url: string, connections: number, target: Target): Promise<{ end(): number }> {
  const { path, pauseMs } = targets[target]
  const open = await Promise.all(Array.from({ length: connections }, () => Connection.open(url)))
  const request = wire({ method: 'GET', path, body: '' }, '')
  let answered = 0
  let hasEnded = false
  const repeat = async (connection: Connection): Promise<void> => {
    while (!hasEnded) {
      const { head, body } = await connection.ask(request)
      if (!head.startsWith('HTTP/1.1 404'))
        throw new Error(`${url} knows what a silent provider has:\n${head}\n${body}`)
      answered += 1
      if (pauseMs > 0) await delay(pauseMs)
    }
  }
  for (const connection of open) {
    repeat(connection).catch(error => {
      if (!hasEnded) throw error
    })
    await delay(timeoutMs / connections)
  }
  return {
    end() {
      hasEnded = true
      for (const connection of open) connection.close()
      return answered
    },
  }
}

async function silentProvider(): Promise<{ readonly url: string; close(): void }> {
  const sockets = new Set<Socket>()
  const server: NetServer = createServer(socket => {
    sockets.add(socket)
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    socket.resume()
  })
  await new Promise<void>(listening => server.listen(0, '127.0.0.1', listening))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
