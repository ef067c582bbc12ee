// Where a message goes: its URL taken apart, and the name of its receiver.
//
// A receiver is what fails as one: an origin, or an MQTT broker with credentials. The name of the latter holds a digest of the password
// with a salt of this process, so that a name can be shown without telling anything.

import { createHmac, randomBytes } from 'node:crypto'
import { isIPv6 } from 'node:net'
import { domainToASCII } from 'node:url'
import type { Message } from './delivery.js'
import type { Endpoint } from './sockets/sockets.js'

export interface Address extends Endpoint {
  /** The name of the receiver: equal for equal receivers, free of secrets. */
  readonly receiver: string
  /** Path and query, ready for a request line; `/` when there is none. */
  readonly path: string
}

const defaultPorts = { 'http:': 80, 'https:': 443, 'mqtt:': 1883, 'mqtts:': 8883 } as const

// subscriptions.md §1.7; what stands behind a # is for the one who reads the answer, and is not sent.
const urlForm = /^(https?:|mqtts?:)\/\/(\[[0-9a-f:.]+\]|[^/:?#@[\]\s]+)(?::(\d{1,5}))?([/?][^#]*)?(?:#.*)?$/is

const salt = randomBytes(32)

/** Undefined: the URL is malformed, or of another transport. */
export function addressOf(message: Message): Address | undefined {
  const found = urlForm.exec(message.url)
  if (!found) return undefined
  const protocol = found[1]!.toLowerCase() as Address['protocol']
  const host = asciiHost(found[2]!)
  const port = found[3] === undefined ? defaultPorts[protocol] : Number(found[3])
  if (host === '' || port < 1 || port > 65_535) return undefined
  const origin = `${protocol}//${host}:${port}`
  if (protocol.startsWith('http') !== (message.transport === 'http')) return undefined
  if (message.transport === 'mqtt') return { receiver: origin + credentials(message), protocol, host, port, path: '/' }
  return { receiver: origin, protocol, host, port, path: requestPath(found[4] ?? '/') }
}

function credentials({ user, password }: { readonly user: string | undefined; readonly password: string | undefined }) {
  if (user === undefined) return ''
  const digest = createHmac('sha256', salt).update(`${user.length} ${user}${password}`).digest('hex')
  return `#${encodeURIComponent(user.toWellFormed())}#${digest.slice(0, 32)}`
}

/** Anything but the printable characters of ASCII. */
const notPlain = /[^\x21-\x7e]+/g

function requestPath(path: string): string {
  const from = path.startsWith('/') ? path : `/${path}`
  if (from.search(notPlain) < 0) return from
  return from.toWellFormed().replace(notPlain, encodeURIComponent)
}

/** Empty: not a host. */
function asciiHost(host: string): string {
  if (host.startsWith('[')) return isIPv6(host.slice(1, -1)) ? host.toLowerCase() : ''
  const ascii = host.search(notPlain) < 0 ? host.toLowerCase() : domainToASCII(host)
  return /^[a-z0-9._-]{1,253}$/.test(ascii) ? ascii : ''
}
