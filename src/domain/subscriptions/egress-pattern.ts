// Patterns for where messages may go (docs/operations/egress.md#patterns).
//
//   host, host:port        a DNS name; `*` stands for one or more labels, and alone for everything
//   address, address:port  IPv4, or IPv6 (in brackets where a port follows)
//   address/bits           a network
//
// Not here: whether an address is in a network, and names that are resolved (deliver/sockets/egress.ts).

import { isIpv4, isIpv6 } from './receiver-url.js'

export type EgressPattern =
  | { readonly kind: 'host'; readonly labels: RegExp; readonly port: number | undefined }
  | {
      readonly kind: 'network'
      readonly family: 'ipv4' | 'ipv6'
      readonly address: string
      readonly bits: number
      readonly port: number | undefined
    }

const portMax = 65_535
const hostForm = /^(?:\*|[A-Za-z0-9_-]+)(?:\.(?:\*|[A-Za-z0-9_-]+))*$/

/** undefined: it is no pattern. */
export function parseEgressPattern(text: string): EgressPattern | undefined {
  const slash = text.indexOf('/')
  if (slash >= 0) return networkOf(text.slice(0, slash), undefined, text.slice(slash + 1))
  if (isIpv6(text)) return networkOf(text, undefined)
  const [, bracketed, plain, digits] = /^(?:\[([^\]]*)\]|([^:]*))(?::([0-9]{1,5}))?$/.exec(text) ?? []
  const port = digits === undefined ? undefined : Number(digits)
  if (port !== undefined && (port < 1 || port > portMax)) return undefined
  if (bracketed !== undefined) return isIpv6(bracketed) ? networkOf(bracketed, port) : undefined
  if (plain === undefined) return undefined
  if (isIpv4(plain)) return networkOf(plain, port)
  // What ends in a number would be an address in some notation; the interface takes none but the usual one.
  if (!hostForm.test(plain) || /(^|\.)[0-9]+$/.test(plain)) return undefined
  return { kind: 'host', labels: labelsOf(plain), port }
}

function labelsOf(host: string): RegExp {
  if (host === '*') return /^/
  const labels = host.toLowerCase().split('.')
  const parts = labels.map(label => (label === '*' ? '[^.]+(?:\\.[^.]+)*' : label))
  return new RegExp(`^${parts.join('\\.')}$`)
}

function networkOf(address: string, port: number | undefined, bitsText?: string): EgressPattern | undefined {
  const family = isIpv4(address) ? 'ipv4' : isIpv6(address) ? 'ipv6' : undefined
  if (!family) return undefined
  const bitsMax = family === 'ipv4' ? 32 : 128
  if (bitsText !== undefined && !/^[0-9]{1,3}$/.test(bitsText)) return undefined
  const bits = bitsText === undefined ? bitsMax : Number(bitsText)
  return bits > bitsMax ? undefined : { kind: 'network', family, address, bits, port }
}
