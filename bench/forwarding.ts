// Forwarding: what a provider that never answers does to those who ask for what is here.
//
// The provider accepts connections and says nothing. As many clients as read the stock ask, each again and again, for an entity that only it has,
// and are told after the timeout that there is none. They begin one after the other, as clients do that know nothing of each other. The other
// reads are measured alone and beside these, on one server and in turn, so that having a registration costs both the same.

import { rmSync } from 'node:fs'
import { type AddressInfo, createServer, type Server as NetServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Connection } from './connection.js'
import { drive } from './generator.js'
import { load, loadStock } from './loader.js'
import { cpuSeconds } from './machine.js'
import { atMost, type Finding, median, progress, rate, thousands, told } from './report.js'
import { type Subject, start } from './servers.js'
import { reads, stockSize, type Template, upserts, wire } from './workloads.js'

export interface ForwardingOptions {
  readonly subject: Subject
  readonly folder: string
  readonly seconds: number
  readonly rounds: number
  readonly warmUpSeconds: number
  readonly connections: number
}

const needed = { besideSilentTimes: 1.2 }

/** Short, so that many run into it. */
const timeoutMs = 1_000

const registration = (url: string): Template => ({
  method: 'POST',
  path: '/v2/registrations',
  body: JSON.stringify({ dataProvided: { entities: [{ id: 'Far', type: 'Far' }] }, provider: { http: { url } } }),
})

const ofProvider: Template = { method: 'GET', path: '/v2/entities/Far?type=Far', body: '' }

export async function forwarding(options: ForwardingOptions): Promise<Finding[]> {
  const { subject, folder, seconds, rounds, warmUpSeconds, connections } = options
  const dataDir = join(folder, 'forwarding')
  const provider = await silentProvider()
  const server = await start(subject, dataDir, 'server', { args: ['-httpTimeout', String(timeoutMs)] })
  await loadStock([server.url], upserts[0]!.template, '', stockSize)
  await load({ urls: [server.url], count: 1, request: () => wire(registration(provider.url), '') })
  const driven = { urls: [server.url], workload: reads, connections, tenant: '', place: 'generator' as const }
  await drive({ ...driven, seconds: warmUpSeconds })

  const p99 = { alone: [] as number[], beside: [] as number[] }
  const perCpuSecond = { alone: [] as number[], beside: [] as number[] }
  let toldOfNone = 0
  for (let round = 1; round <= rounds; round++)
    for (const kind of round % 2 === 1 ? (['alone', 'beside'] as const) : (['beside', 'alone'] as const)) {
      const asking = kind === 'beside' ? await askAgainAndAgain(server.url, connections) : undefined
      const cpuBefore = cpuSeconds(server.pid)
      const { latencyMs, requests, seconds: took } = await drive({ ...driven, seconds })
      toldOfNone += asking?.end() ?? 0
      p99[kind].push(latencyMs.p99)
      perCpuSecond[kind].push(requests / (cpuSeconds(server.pid) - cpuBefore))
      progress(
        `round ${round}, reads ${kind}: ${thousands(requests / took)}/s, ${thousands(perCpuSecond[kind].at(-1)!)} per CPU second, ` +
          `p50 ${latencyMs.p50.toFixed(2)} ms, p99 ${latencyMs.p99.toFixed(2)} ms`,
      )
    }
  await server.stop()
  provider.close()
  rmSync(dataDir, { recursive: true })

  const [alone, beside] = [median(p99.alone), median(p99.beside)]
  const found = `${(beside / alone).toFixed(2)}: p99 ${beside.toFixed(2)} ms, alone ${alone.toFixed(2)} ms`
  return [
    atMost(
      `reads beside ${connections} of a silent provider`,
      found,
      beside / alone,
      needed.besideSilentTimes,
      'times',
    ),
    told('reads per CPU second, beside and alone', `${rate(perCpuSecond.beside)}, ${rate(perCpuSecond.alone)}`),
    told('of those, told that there is none', thousands(toldOfNone)),
  ]
}

/**
 * Asks for what the provider has over so many connections, and comes back when the last of them has begun. `end` gives how often they were told
 * that there is none; any other answer fails.
 */
async function askAgainAndAgain(url: string, connections: number): Promise<{ end(): number }> {
  const open = await Promise.all(Array.from({ length: connections }, () => Connection.open(url)))
  const request = wire(ofProvider, '')
  let told = 0
  let hasEnded = false
  const askOn = async (connection: Connection): Promise<void> => {
    while (!hasEnded) {
      const { head, body } = await connection.ask(request)
      if (!head.startsWith('HTTP/1.1 404'))
        throw new Error(`${url} knows what a silent provider has:\n${head}\n${body}`)
      told += 1
    }
  }
  for (const connection of open) {
    askOn(connection).catch(error => {
      if (!hasEnded) throw error
    })
    await delay(timeoutMs / connections)
  }
  return {
    end() {
      hasEnded = true
      for (const connection of open) connection.close()
      return told
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
