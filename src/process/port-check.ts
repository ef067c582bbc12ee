// Checks whether a port can be listened on, without listening: a socket that listens would take connections of clients
// that wait for the broker, and reset them.
//
// A datagram socket shows whether the address is ours and the port permitted. A connection shows whether another
// process serves there already.

import { createSocket } from 'node:dgram'
import { lookup } from 'node:dns/promises'
import { connect, isIPv6 } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import type { Config } from '../config/config.js'
import type { OptionName } from '../config/options.js'
import { listenFailure } from '../http/front.js'

export interface PortToCheck extends Pick<Config['http'], 'host' | 'family'> {
  /** The option that sets the port. */
  readonly option: OptionName
  readonly port: number
}

/** How long the workers of a killed supervisor may still hold the port, and the pause between two tries. */
const portWaitMs = 2_000
const portRetryMs = 50

/**
 * Rejects with the server's sentence when the port cannot be listened on. `workers`: of this broker. With several, they
 * would share the port with another broker unnoticed, and those of a killed supervisor may hold it for a while.
 */
export async function assertListenable(listening: PortToCheck, workers: number): Promise<void> {
  const waitMs = workers > 1 ? portWaitMs : 0
  const failure = (await bindFailureOf(listening)) ?? (await failureIfTaken(listening, waitMs))
  if (!failure) return
  const { option } = listening
  const { message } = listenFailure(failure, listening)
  throw new Error(option === 'port' ? message : `-${option}: ${message}`)
}

/** The failure if the address is not ours or the port not permitted. */
async function bindFailureOf({ host, port, family }: PortToCheck): Promise<NodeJS.ErrnoException | undefined> {
  let failure: NodeJS.ErrnoException | undefined
  for (const place of await placesOf(host, family)) {
    failure = await datagramFailureOf(place, port)
    if (!failure || !isOfServersToo(failure, port)) return undefined
  }
  return failure
}

const privilegedPortMax = 1023

/** Whether a server would get the same failure: a policy of the system may forbid datagrams alone. */
const isOfServersToo = ({ code }: NodeJS.ErrnoException, port: number): boolean =>
  code === 'EADDRNOTAVAIL' || code === 'EAFNOSUPPORT' || (code === 'EACCES' && port <= privilegedPortMax)

/** Addresses to listen on. At least one of them must be available. */
async function placesOf(host: string | undefined, family: PortToCheck['family']): Promise<string[]> {
  if (host !== undefined) return [(await lookup(host)).address]
  return family === 'ipv4' ? ['0.0.0.0'] : family === 'ipv6' ? ['::'] : ['::', '0.0.0.0']
}

const datagramFailureOf = (address: string, port: number): Promise<NodeJS.ErrnoException | undefined> =>
  new Promise(resolve => {
    const socket = createSocket(isIPv6(address) ? 'udp6' : 'udp4')
    socket.once('error', error => {
      socket.close()
      resolve(error)
    })
    socket.bind(port, address, () => socket.close(() => resolve(undefined)))
  })

/** A failure when another process serves the port, and still does so after `waitMs`. */
async function failureIfTaken(
  { host, port, family }: PortToCheck,
  waitMs: number,
): Promise<NodeJS.ErrnoException | undefined> {
  if (port === 0) return undefined
  const served = (await placesOf(host, family)).flatMap(place => loopbackOf[place] ?? [place])
  const targets = family === 'ipv6' ? served.filter(isIPv6) : served
  const untilMs = performance.now() + waitMs
  while ((await Promise.all(targets.map(target => accepts(target, port)))).includes(true)) {
    if (performance.now() >= untilMs) return Object.assign(new Error('in use'), { code: 'EADDRINUSE' })
    await pause(portRetryMs)
  }
  return undefined
}

/** The addresses at which a server on all addresses answers. */
const loopbackOf: Readonly<Record<string, readonly string[]>> = { '0.0.0.0': ['127.0.0.1'], '::': ['::1', '127.0.0.1'] }

/** How long a connection to an address of this machine may take. */
const connectMsMax = 1_000

function accepts(host: string, port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect({ port, host, timeout: connectMsMax })
    const end = (isTaken: boolean): void => {
      socket.destroy()
      resolve(isTaken)
    }
    socket.once('connect', () => end(true))
    socket.once('timeout', () => end(false))
    socket.once('error', () => end(false))
  })
}
