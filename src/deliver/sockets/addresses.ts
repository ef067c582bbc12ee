// Hosts and IP addresses as rules about targets compare them: each in one form, whatever a URL or a resolver writes.

import { BlockList, isIP } from 'node:net'
import { networkInterfaces } from 'node:os'

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

export const isLinkLocal = (address: string): boolean => linkLocal.check(address, familyOf(address))

/** Whether connections to an address end at this machine. */
export function isLocal(address: string): boolean {
  if (loopback.check(address, familyOf(address))) return true
  const own = Object.values(networkInterfaces()).flatMap(found => found ?? [])
  return own.some(one => plainAddress(one.address) === address)
}

export const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIP(address) === 4 ? 'ipv4' : 'ipv6')

export const withoutBrackets = (host: string): string => (host.startsWith('[') ? host.slice(1, -1) : host)

/** In lower case, without brackets and the dot that ends a full name. */
export function hostOf(written: string): string {
  const host = withoutBrackets(written).toLowerCase()
  return host.endsWith('.') ? host.slice(0, -1) : host
}

/** An address in its usual form: without a zone, and an IPv4-mapped IPv6 address as IPv4. */
export function plainAddress(address: string): string {
  const [bare = ''] = address.toLowerCase().split('%')
  if (isIP(bare) !== 6) return bare
  const usual = new URL(`http://[${bare}]`).hostname.slice(1, -1)
  const mapped = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(usual)
  if (!mapped) return usual
  const [high, low] = [Number.parseInt(mapped[1]!, 16), Number.parseInt(mapped[2]!, 16)]
  return [high >> 8, high & 255, low >> 8, low & 255].join('.')
}
