// MQTT brokers for tests: aedes in this process, and mosquitto from Debian's packages, each with a record of the
// published messages.

import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { createServer as createTls } from 'node:tls'
import { Aedes } from 'aedes'
import { connectAsync } from 'mqtt'
import type { Test } from 'tap'
import { accepts, freePort } from '../support/broker-process.js'
import { root } from '../support/project.js'
import type { Certificate } from './receivers.js'
import { until } from './receivers.js'

export interface Published {
  readonly topic: string
  readonly payload: string
  readonly qos: number
  readonly retain: boolean
}

export interface Broker {
  readonly port: number
  readonly aedes: Aedes
  readonly published: Published[]
  /** Sockets accepted so far. */
  readonly connections: number
  /** Sockets open now. */
  readonly open: number
  /** Stops the broker, with all its sockets. */
  stop(): Promise<void>
}

export interface BrokerSetting {
  readonly port?: number
  readonly tls?: Certificate
  readonly passwords?: Readonly<Record<string, string>>
  /** Publications are not acknowledged. */
  readonly isDeaf?: boolean
}

export async function aedesBroker(t: Test, { port = 0, tls, passwords, isDeaf }: BrokerSetting = {}): Promise<Broker> {
  const published: Published[] = []
  const aedes = await Aedes.createBroker({
    authorizePublish: (_client, _packet, done) => {
      if (!isDeaf) done(null)
    },
    ...(passwords && {
      authenticate: (_client, user, password, done) =>
        done(null, user !== undefined && passwords[user] === `${password}`),
    }),
  })
  aedes.on('publish', ({ topic, payload, qos, retain }, client) => {
    if (client) published.push({ topic, payload: payload.toString(), qos, retain })
  })
  const sockets = new Set<Socket>()
  let connections = 0
  const onSocket = (socket: Socket): void => {
    connections++
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    aedes.handle(socket)
  }
  const server: Server = tls ? createTls({ key: tls.key, cert: tls.cert }, onSocket) : createServer(onSocket)
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  let stopped: Promise<void> | undefined
  const stop = (): Promise<void> => {
    stopped ??= new Promise(resolve => {
      for (const socket of sockets) socket.destroy()
      server.close(() => aedes.close(() => resolve()))
    })
    return stopped
  }
  t.teardown(stop)
  return {
    port: (server.address() as AddressInfo).port,
    aedes,
    published,
    get connections() {
      return connections
    },
    get open() {
      return sockets.size
    },
    stop,
  }
}

/** Whether mosquitto is installed, or could be. */
export function hasMosquitto(): boolean {
  try {
    execFileSync(join(root, 'test/support/need-debian.sh'), ['mosquitto'], { stdio: 'ignore', env: mosquittoEnv })
    return true
  } catch {
    return false
  }
}

// Debian installs servers outside the path of ordinary users.
const mosquittoEnv = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` }

/** A mosquitto that requires a user and a password; returns its port, and all published messages. */
export async function mosquitto(t: Test, user: string, password: string): Promise<{ port: number; seen: Published[] }> {
  const folder = t.testdir({})
  const [port, passwords, config] = [await freePort(), join(folder, 'passwords'), join(folder, 'mosquitto.conf')]
  execFileSync('mosquitto_passwd', ['-b', '-c', passwords, user, password], { stdio: 'ignore', env: mosquittoEnv })
  const lines = [
    `listener ${port} 127.0.0.1`,
    'allow_anonymous false',
    `password_file ${passwords}`,
    'persistence false',
  ]
  // If mosquitto is started as root, it gives up its rights, and then cannot read the file any more.
  if (process.getuid?.() === 0) lines.push('user root')
  writeFileSync(config, `${lines.join('\n')}\n`)
  const server = spawn('mosquitto', ['-c', config], { stdio: 'ignore', env: mosquittoEnv })
  const ended = once(server, 'exit')
  t.teardown(async () => {
    server.kill()
    await ended
  })
  let isUp = false
  while (!isUp && server.exitCode === null) isUp = await accepts(port)
  const seen: Published[] = []
  const witness = await connectAsync(`mqtt://127.0.0.1:${port}`, { username: user, password })
  t.teardown(() => witness.endAsync(true))
  witness.on('message', (topic, payload, { qos, retain }) =>
    seen.push({ topic, payload: payload.toString(), qos, retain }),
  )
  await witness.subscribeAsync('#', { qos: 2 })
  return { port, seen }
}

export const untilPublished = (list: readonly Published[], count: number): Promise<void> =>
  until(() => list.length >= count, `${count} publications`)
