// The destination of a message: its URL in parts, and the name of its receiver.
//
// A receiver is the unit that fails as a whole: an origin, or an MQTT broker with credentials. The name of the latter
// holds a digest of the password with a salt of this process. So the name can be shown without revealing the password.

import { createHmac, randomBytes } from 'node:crypto'
import { isIPv6 } from 'node:net'
import { domainToASCII } from 'node:url'
import type { HttpMessage, MqttMessage } from '../domain/subscriptions/message.js'
import type { Endpoint } from './sockets/sockets.js'

export interface Address extends Endpoint {
  /** The name of the receiver: equal for equal receivers, free of secrets. */
  readonly receiver: string
  /** Path and query, ready for a request line: `/` if the URL has none, '' for a transport without paths. */
  readonly path: string
}

// docs/interface/subscriptions.md#urls; the part after a # is not sent.
const urlForm = /^([a-z][a-z0-9+.-]*:)\/\/(\[[0-9a-f:.]+\]|[^/:?#@[\]\s]+)(?::(\d{1,5}))?([/?][^#]*)?(?:#.*)?$/is

const salt = randomBytes(32)

/**
 * The address of a URL; undefined: the URL is not valid for this transport. `ports`: the accepted schemes, each with
 * its default port.
 */
export function addressOf(url: string, ports: Readonly<Record<string, number>>): Address | undefined {
  const found = urlForm.exec(url)
  if (!found) return undefined
  const protocol = found[1]!.toLowerCase()
  const host = asciiHost(found[2]!)
  const port = found[3] === undefined ? ports[protocol] : Number(found[3])
  if (ports[protocol] === undefined || host === '' || !port || port > 65_535) return undefined
  return { receiver: `${protocol}//${host}:${port}`, protocol, host, port, path: requestPath(found[4] ?? '/') }
}

const httpPorts = { 'http:': 80, 'https:': 443 }
const mqttPorts = { 'mqtt:': 1883, 'mqtts:': 8883 }

export const httpAddress = ({ url }: Pick<HttpMessage, 'url'>): Address | undefined => addressOf(url, httpPorts)

export function mqttAddress({ url, login }: Pick<MqttMessage, 'url' | 'login'>): Address | undefined {
  const address = addressOf(url, mqttPorts)
  return address && { ...address, receiver: address.receiver + credentials(login), path: '' }
}

function credentials(login: MqttMessage['login']): string {
  if (!login) return ''
  const { user, passwd } = login
  const digest = createHmac('sha256', salt).update(`${user.length} ${user}${passwd}`).digest('hex')
  return `#${encodeURIComponent(user.toWellFormed())}#${digest.slice(0, 32)}`
}

/** Characters outside the printable ones of ASCII. */
const notPlain = /[^\x21-\x7e]+/g

function requestPath(path: string): string {
  const from = path.startsWith('/') ? path : `/${path}`
  if (from.search(notPlain) < 0) return from
  return from.toWellFormed().replace(notPlain, encodeURIComponent)
}

/** The host in lower-case ASCII; empty: not a host. */
function asciiHost(host: string): string {
  if (host.startsWith('[')) return isIPv6(host.slice(1, -1)) ? host.toLowerCase() : ''
  const ascii = host.search(notPlain) < 0 ? host.toLowerCase() : domainToASCII(host)
  return /^[a-z0-9._-]{1,253}$/.test(ascii) ? ascii : ''
}
