// Decides which targets messages may reach: notifications over HTTP and MQTT, their redirects, requests to context
// providers, and the keys of issuers (docs/operations/egress.md).
//
// The decision is made twice: on the URL when a subscription or registration is created, and on the resolved address of
// each connection. So a name that later points elsewhere gains nothing. With an access file, a target has to be allowed
// by the file and by the options, and each of them can deny it. A new file counts at once: the listeners close
// connections that it denies (outgoing-connections.ts).
//
// Reserved are the engine of the log and the ports of the cluster, including those of members known only through
// gossip: a client that reaches them can change everything. Neither an option nor the file opens them. A reserved
// endpoint that is given by a DNS name reserves its port on every host, since its addresses may change at any time. The
// broker's own port for operators is denied at every address of this machine.

import { isIP, type Socket } from 'node:net'
import type { AccessEgress, AccessFile } from '../../domain/access/access-file.js'
import { hostOf, isLinkLocal, isLocal, plainAddress, withoutBrackets } from './addresses.js'
import { TargetLists } from './target-lists.js'

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

/** A connection was not opened, or was closed, because its target is denied here. */
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

interface ReservedEndpoint {
  readonly host: string
  readonly port: number
}

/** What an access file without `egress` means. */
const notNamed: AccessEgress = { allow: [], deny: [] }

export class Egress {
  private readonly ofOptions: TargetLists
  /** undefined: there is no access file. */
  private ofFile: TargetLists | undefined
  private readonly given: readonly ReservedEndpoint[]
  /** The given ones and those of the cluster's members, as they come and go. */
  private reserved: readonly ReservedEndpoint[]
  private readonly ownPorts: Set<number>
  private readonly adminPorts: Set<number>
  private readonly listeners: (() => void)[] = []

  /** Throws an error with a sentence when a pattern is invalid. */
  constructor({ allow, deny, reserved, ownPorts = [], adminPorts = [] }: EgressOptions) {
    this.ownPorts = new Set(ownPorts)
    this.adminPorts = new Set(adminPorts)
    this.ofOptions = new TargetLists({ allow, deny })
    this.given = reserved.map(endpointOf)
    this.reserved = this.given
  }

  /** The access file that is in use from now on. */
  useFile({ egress = notNamed }: Pick<AccessFile, 'egress'>): void {
    this.ofFile = new TargetLists(egress)
    this.changed()
  }

  /** Reserves the known members of the cluster, each as `host:port`. */
  reserveMembers(addresses: readonly string[]): void {
    this.reserved = [...this.given, ...addresses.map(endpointOf).filter(({ port }) => port > 0)]
    this.changed()
  }

  /** Calls the listener when other targets may be denied than before. */
  onChange(listener: () => void): void {
    this.listeners.push(listener)
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
    return this.lists.every(lists => lists.allowsName(host, port))
  }

  /** Whether a connection may be made to `resolved`: the host itself, or an address that its name was resolved to. */
  mayConnect(written: string, port: number, resolved: string): boolean {
    const host = hostOf(written)
    const address = plainAddress(resolved)
    if (this.reserved.some(one => one.port === port && isReserved(one.host, address))) return false
    if (this.adminPorts.has(port) && isLocal(address)) return false
    // The stricter reading: with a file, only the file opens link-local addresses.
    const { namesAllowed } = this.ofFile ?? this.ofOptions
    if (!namesAllowed && isLinkLocal(address)) return false
    return this.lists.every(lists => lists.allowsAddress(host, port, address))
  }

  private get lists(): readonly TargetLists[] {
    return this.ofFile ? [this.ofOptions, this.ofFile] : [this.ofOptions]
  }

  private changed(): void {
    for (const listener of this.listeners) listener()
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

function endpointOf(text: string): ReservedEndpoint {
  const colon = text.lastIndexOf(':')
  return { host: withoutBrackets(text.slice(0, colon)), port: Number(text.slice(colon + 1)) }
}

function isReserved(host: string, address: string): boolean {
  if (isIP(host) === 0) return true
  if (plainAddress(host) === address) return true
  return isLocal(plainAddress(host)) && isLocal(address)
}
