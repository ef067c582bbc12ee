// URLs of receivers (docs/interface/subscriptions.md#urls), and patterns of allowed destinations
// (docs/operations/egress.md#patterns).
//
//   http://host:port/path      scheme and host are required; a host is a DNS name, an IPv4 address, or an IPv6 address
//                              in brackets
//
// A general URL parser would accept, repair or rewrite URLs that the interface refuses: with a user name, without a
// host, with an empty port. A query stays part of the path.
//
// Not here: the general forbidden characters, which have a text of their own; macros (the code that fills them in
// parses the result here); whether an address is in a network, and the resolution of names (deliver/sockets/egress.ts).

export interface ReceiverUrl {
  readonly scheme: 'http' | 'https' | 'mqtt'
  /** An IPv6 address keeps its brackets. */
  readonly host: string
  readonly port: number
  /** `/` when the URL has none. */
  readonly path: string
}

/**
 * The default ports. 1883 for MQTT is ours: the reference uses 80, where no MQTT broker listens
 * (docs/interface/subscriptions.md#urls, item 4).
 */
const defaultPorts = { http: 80, https: 443, mqtt: 1883 } as const

const portMax = 65_535

// The path may contain anything but blanks and control characters, which would end the request line or begin another
// one.
const syntax =
  /^(https?|mqtt):\/\/([A-Za-z0-9._~-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::([0-9]{1,5}))?(\/[^\s\p{Cc}]*)?$/u

/** The parts of a URL; undefined when it is not valid (docs/interface/subscriptions.md#urls). */
export function parseReceiverUrl(text: string): ReceiverUrl | undefined {
  const match = syntax.exec(text)
  if (!match) return undefined
  const scheme = match[1] as ReceiverUrl['scheme']
  const host = match[2] as string
  const port = match[3] === undefined ? defaultPorts[scheme] : Number(match[3])
  if (port < 1 || port > portMax || !isHost(host)) return undefined
  return { scheme, host, port, path: match[4] ?? '/' }
}

// A host that looks like an address must be a valid one: parsers disagree about `1.2.3` and `127.0.0.010`, or fail.
function isHost(host: string): boolean {
  if (host.startsWith('[')) return isIpv6(host.slice(1, -1))
  return !endsInNumber.test(host) || ipv4.test(host)
}

const endsInNumber = /(^|\.)([0-9]+|0[xX][0-9A-Fa-f]*)\.?$/
const ipv4 = /^(?:(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(?:\.(?!$)|$)){4}$/
const isIpv4 = (text: string): boolean => ipv4.test(text)

const hexGroup = /^[0-9A-Fa-f]{1,4}$/

function isIpv6(text: string): boolean {
  const halves = text.split('::')
  const groups = halves.flatMap(half => (half === '' ? [] : half.split(':')))
  const tail = text.slice(text.lastIndexOf(':') + 1)
  const hasTail = tail.includes('.')
  if (hasTail && !ipv4.test(tail)) return false
  const hex = hasTail ? groups.slice(0, -1) : groups
  // The IPv4 address at the end replaces two groups, `::` at least one.
  const count = hex.length + (hasTail ? 2 : 0)
  return (
    hex.every(group => hexGroup.test(group)) && (halves.length === 1 ? count === 8 : halves.length === 2 && count < 8)
  )
}

/**
 * A pattern of allowed destinations.
 *
 *   host, host:port        a DNS name; `*` matches one or more labels, and alone everything
 *   address, address:port  IPv4, or IPv6 (in brackets where a port follows)
 *   address/bits           a network
 */
export type EgressPattern =
  | { readonly kind: 'host'; readonly labels: RegExp; readonly port: number | undefined }
  | {
      readonly kind: 'network'
      readonly family: 'ipv4' | 'ipv6'
      readonly address: string
      readonly bits: number
      readonly port: number | undefined
    }

const hostForm = /^(?:\*|[A-Za-z0-9_-]+)(?:\.(?:\*|[A-Za-z0-9_-]+))*$/

/** undefined: it is not a pattern. */
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
  // A host that ends in a number would be an address in some notation; the interface accepts only the usual one.
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
