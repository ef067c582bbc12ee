// URLs of those who receive notifications (subscriptions.md §1.7).
//
//   http://host:port/path      scheme and host are needed; a host is a DNS name, an IPv4 address or an IPv6 address in brackets
//
// Read here and not by a general URL parser, which would take, repair or rewrite what the interface refuses: a user name, a missing
// host, an empty port. A query stays part of the path.
//
// Not here: the general forbidden characters, which have a text of their own; macros (whoever fills them in reads the outcome here).

export interface ReceiverUrl {
  readonly scheme: 'http' | 'https' | 'mqtt'
  /** An IPv6 address keeps its brackets. */
  readonly host: string
  readonly port: number
  /** `/` when the URL has none. */
  readonly path: string
}

/** Where no port is given. 1883 for MQTT is ours: the reference takes 80, where no MQTT broker listens (§1.7, item 4). */
const defaultPorts = { http: 80, https: 443, mqtt: 1883 } as const

const portMax = 65_535

// The path: anything but blanks and control characters, which would end the request line or begin another one.
const syntax =
  /^(https?|mqtt):\/\/([A-Za-z0-9._~-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::([0-9]{1,5}))?(\/[^\s\p{Cc}]*)?$/u

/** The parts of a URL; undefined when it is not valid (subscriptions.md §1.7). */
export function parseReceiverUrl(text: string): ReceiverUrl | undefined {
  const match = syntax.exec(text)
  if (!match) return undefined
  const scheme = match[1] as ReceiverUrl['scheme']
  const port = match[3] === undefined ? defaultPorts[scheme] : Number(match[3])
  if (port < 1 || port > portMax) return undefined
  return { scheme, host: match[2] as string, port, path: match[4] ?? '/' }
}
