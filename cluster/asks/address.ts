// Where nodes are found: `unix:/path` or `host:port`, and processes of one machine, without gRPC, at `socket:/path`.
//
// Addresses come from operators and from other nodes, which may say anything: what is none must not reach a library that would take it
// for a scheme of its own.
//
// Not here: who may listen at a path (unix-socket.ts).

import { isIPv4 } from 'node:net'
import type { Stream, StreamListener } from '../ports.js'
import { barePath, socketPath } from './unix-socket.js'

/** Characters of an address: a host name has 253, a path of a socket fewer. */
const addressLengthMax = 300

const form = /^(?:\[([0-9A-Fa-f:.]{2,45})\]|([A-Za-z0-9._-]{1,253})):([0-9]{1,5})$/

export interface HostPort {
  readonly host: string
  readonly port: number
}

/** Host and port of an address; undefined when it has none. Brackets around IPv6 are left out. */
export function hostPort(address: string): HostPort | undefined {
  const found = address.length > addressLengthMax ? null : form.exec(address)
  const host = found?.[1] ?? found?.[2]
  const port = Number(found?.[3])
  return host === undefined || port > 65_535 ? undefined : { host, port }
}

/** Whether one could connect there over gRPC. */
export function isAddress(address: string): boolean {
  const path = socketPath(address)
  return path === undefined ? (hostPort(address)?.port ?? 0) > 0 : isPath(path)
}

/** Whether one could connect there without gRPC. */
export const isBareAddress = (address: string): boolean => isPath(barePath(address) ?? '')

const isPath = (path: string): boolean => path.startsWith('/') && path.length <= addressLengthMax

/** Whether only processes of this machine can connect there. */
export function isLocal(address: string): boolean {
  if (socketPath(address) !== undefined) return true
  const host = hostPort(address)?.host
  if (host === undefined) return false
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'))
}

/** A stream to what is no address. */
export function nowhere(address: string, listener: StreamListener): Stream {
  const told = setImmediate(() => listener.onClosed(`not an address: ${JSON.stringify(address.slice(0, 100))}`))
  return { send: () => true, close: () => clearImmediate(told) }
}
