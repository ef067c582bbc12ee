// Decides which targets messages may reach: notifications over HTTP and MQTT, their redirects, and requests to context
// providers (docs/operations/egress.md).
//
// The decision is made twice: on the URL when a subscription or registration is created, and on the resolved address of
// each connection. So a name that later points elsewhere gains nothing.
//
// Reserved are the engine of the log and the ports of the cluster, including those of members known only through
// gossip: a client that reaches them can change everything. No option opens them. A reserved endpoint that is given by
// a DNS name reserves its port on every host, since its addresses may change at any time. The broker's own port for
// operators is denied at every address of this machine.

import { BlockList, isIP, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { type EgressPattern, parseEgressPattern } from '../../domain/subscriptions/receiver-url.js'

export interface EgressOptions {
  /** Patterns; empty: everything but link-local addresses. */
  readonly allow: readonly string[]
  readonly deny: readonly string[]
  /** `host:port` that no message may reach. */
  readonly reserved: readonly string[]
  /** Ports where this broker listens for clients; `listensAt` may add more. */
  readonly ownPorts?: readonly number[]
  /** Ports where it listens for operators, which no message may reach; `listensForOperatorsAt` may add more. */
  readonly adminPorts?: readonly number[]
}

/** A connection was not opened because its target is denied here. */
export class EgressDenied extends Error {
  readonly code = 'ERR_EGRESS_DENIED'

  constructor() {
    super('the target is denied here')
  }
}

/** A request was not sent because this broker does not accept it from itself. */
export class OwnListenerDenied extends Error {
  readonly code = 'ERR_OWN_LISTENER_DENIED'

  constructor() {
    super('this broker does not take it from itself')
  }
}

interface Endpoint {
  readonly host: string
  readonly port: number
}

interface Rule {
  readonly pattern: EgressPattern
  /** Set for a pattern of a network. */
  readonly block: BlockList | undefined
}

/** Addresses where clouds serve the credentials of their machines. */
const linkLocal = new BlockList()
linkLocal.addSubnet('169.254.0.0', 16, 'ipv4')
linkLocal.addSubnet('fe80::', 10, 'ipv6')

/** Addresses of this machine; connections to the unspecified address arrive here, too. */
const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addSubnet('0.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')
loopback.addAddress('::', 'ipv6')

export class Egress {
  private readonly allow: readonly Rule[]
  private readonly deny: readonly Rule[]
  private readonly given: readonly Endpoint[]
  /** The given ones and those of the cluster's members, as they come and go. */
  private reserved: readonly Endpoint[]

  private readonly ownPorts: Set<number>
  private readonly adminPorts: Set<number>

  /** Throws an error with a sentence when a pattern is invalid. */
  constructor({ allow, deny, reserved, ownPorts = [], adminPorts = [] }: EgressOptions) {
    this.ownPorts = new Set(ownPorts)
    this.adminPorts = new Set(adminPorts)
    this.allow = allow.map(ruleOf)
    this.deny = deny.map(ruleOf)
    this.given = reserved.map(endpointOf)
    this.reserved = this.given
  }

  /** Reserves the known members of the cluster, each as `host:port`. */
  reserveMembers(addresses: readonly string[]): void {
    this.reserved = [...this.given, ...addresses.map(endpointOf).filter(({ port }) => port > 0)]
  }

  /** The broker listens for clients at this port as well. */
  listensAt(port: number): void {
    this.ownPorts.add(port)
  }

  /** The broker listens for operators at this port as well. */
  listensForOperatorsAt(port: number): void {
    this.adminPorts.add(port)
  }

  /** Whether a connected socket ends at a listener of this broker. */
  isOwn({ remoteAddress, remotePort }: Socket): boolean {
    if (remoteAddress === undefined || remotePort === undefined || !this.ownPorts.has(remotePort)) return false
    return isLocal(plainAddress(remoteAddress))
  }

  /** Whether a subscription may have a URL with this host. A name may still be denied when it is resolved. */
  mayName(written: string, port: number): boolean {
    const host = hostOf(written)
    if (isIP(host) !== 0) return this.mayConnect(host, port, host)
    if (this.reserved.some(one => one.port === port && isIP(one.host) === 0)) return false
    if (this.deny.some(rule => matches(rule, host, port, undefined))) return false
    if (this.allow.length === 0) return true
    return this.allow.some(rule => rule.block !== undefined || matches(rule, host, port, undefined))
  }

  /** Whether a connection may be made to `resolved`: the host itself, or an address that its name was resolved to. */
  mayConnect(written: string, port: number, resolved: string): boolean {
    const host = hostOf(written)
    const address = plainAddress(resolved)
    if (this.reserved.some(one => one.port === port && isReserved(one.host, address))) return false
    if (this.adminPorts.has(port) && isLocal(address)) return false
    if (this.deny.some(rule => matches(rule, host, port, address))) return false
    if (this.allow.length === 0) return !linkLocal.check(address, familyOf(address))
    return this.allow.some(rule => matches(rule, host, port, address))
  }
}

/** Requests that a notification may make to this broker: writing entities, as its subscription's tenant could. */
const notifiable = /^\/v2\/(?:entities(?:[/?]|$)|op\/(?:update|notify)(?:\?|$))/

/** Requests that this broker may make to itself as a provider. */
const providable = /^\/v2\/op\/(?:query|update)$/

/** Whether a notification may come back to this broker: not to an operator's path, and not to another tenant. */
export const mayNotifyItself = (path: string, leavesScope: boolean): boolean => !leavesScope && notifiable.test(path)

/** A callback of ngsi-proxy. It belongs to no tenant, and only those that know its random id can name it. */
const proxyCallback = /^\/callbacks\/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** The same, where the paths of ngsi-proxy are served: a callback of a page is a path of this broker. */
export const mayNotifyPages = (path: string, leavesScope: boolean): boolean =>
  mayNotifyItself(path, leavesScope) || (!leavesScope && proxyCallback.test(path))

/** Whether a request to a provider may come back to this broker. */
export const mayProvideItself = (path: string): boolean => providable.test(path)

function ruleOf(text: string): Rule {
  const pattern = parseEgressPattern(text)
  if (!pattern) throw new Error(`not a host, host:port, address or network: ${text}`)
  if (pattern.kind === 'host') return { pattern, block: undefined }
  const block = new BlockList()
  block.addSubnet(pattern.address, pattern.bits, pattern.family)
  return { pattern, block }
}

function matches({ pattern, block }: Rule, host: string, port: number, address: string | undefined): boolean {
  if (pattern.port !== undefined && pattern.port !== port) return false
  if (pattern.kind === 'host') return pattern.labels.source === '^' || (isIP(host) === 0 && pattern.labels.test(host))
  return address !== undefined && block!.check(address, familyOf(address))
}

function endpointOf(text: string): Endpoint {
  const colon = text.lastIndexOf(':')
  return { host: withoutBrackets(text.slice(0, colon)), port: Number(text.slice(colon + 1)) }
}

function isReserved(host: string, address: string): boolean {
  if (isIP(host) === 0) return true
  if (plainAddress(host) === address) return true
  return isLocal(plainAddress(host)) && isLocal(address)
}

function isLocal(address: string): boolean {
  if (loopback.check(address, familyOf(address))) return true
  const own = Object.values(networkInterfaces()).flatMap(found => found ?? [])
  return own.some(one => plainAddress(one.address) === address)
}

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIP(address) === 4 ? 'ipv4' : 'ipv6')

const withoutBrackets = (host: string): string => (host.startsWith('[') ? host.slice(1, -1) : host)

/** In lower case, without brackets and the dot that ends a full name. */
function hostOf(written: string): string {
  const host = withoutBrackets(written).toLowerCase()
  return host.endsWith('.') ? host.slice(0, -1) : host
}

/** An address in its usual form: without a zone, and an IPv4-mapped IPv6 address as IPv4. */
function plainAddress(address: string): string {
  const [bare = ''] = address.toLowerCase().split('%')
  if (isIP(bare) !== 6) return bare
  const usual = new URL(`http://[${bare}]`).hostname.slice(1, -1)
  const mapped = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(usual)
  if (!mapped) return usual
  const [high, low] = [Number.parseInt(mapped[1]!, 16), Number.parseInt(mapped[2]!, 16)]
  return [high >> 8, high & 255, low >> 8, low & 255].join('.')
}
