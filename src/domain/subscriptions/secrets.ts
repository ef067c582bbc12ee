// Which texts of a subscription are secrets, and the mask that stands in their place (docs/operations/secrets.md).
//
// The name of a custom header, or of an entry of a query string, tells whether its value is a secret. So is the
// password of an MQTT broker, and what stands before the @ of a URL. The stored form keeps secrets; answers and log
// lines show the mask.
//
// Not here: masks that a client sends back (transport-parser.ts).

type NamedText = readonly [name: string, value: string]

export const mask = '*****'

const words = 'authorization|cookie|key|token|secret|passw'
const secretWord = new RegExp(words, 'i')

/** Whether the value of a header, or of an entry of a query string, is a secret. */
export const isSecretName = (name: string): boolean => secretWord.test(name)

/** Named texts as they are shown. */
export const maskNamed = (named: readonly NamedText[]): readonly NamedText[] =>
  named.map(([name, value]) => [name, isSecretName(name) && value !== '' ? mask : value])

/** A URL as it may be shown: without what stands before the @ of its host. */
export const withoutUserinfo = (url: string): string => url.replace(userinfo, `://${mask}@`)

const userinfo = /:\/\/[^/?#\s]*@/

/** A URL or request target as it may be shown: secrets of its query string are masked. */
export function withoutSecretEntries(target: string): string {
  const start = target.indexOf('?') + 1
  if (start === 0) return target
  const entries = target.slice(start).split('&').map(maskEntry)
  return target.slice(0, start) + entries.join('&')
}

function maskEntry(entry: string): string {
  const end = entry.indexOf('=') + 1
  return end > 0 && isSecretName(entry.slice(0, end)) ? entry.slice(0, end) + mask : entry
}

/**
 * JSON, perhaps cut at its end, as it may be shown: members whose name is that of a secret are masked, and so is what
 * stands before the @ of a URL. A name that is written with escapes passes: callers ask `hasHiddenName` first.
 */
export const withoutSecretMembers = (json: string): string =>
  json.replace(secretMember, `$1"${mask}"`).replace(jsonUserinfo, `$1${mask}$2`)

/** Whether a name of a JSON text may be written with escapes, so that `withoutSecretMembers` does not know it. */
export const hasHiddenName = (json: string): boolean => hiddenName.test(json)

const hiddenName = /\\[u"]/
const secretMember = new RegExp(
  `("(?:[^"\\\\]|\\\\[^"u])*?(?:${words})(?:[^"\\\\]|\\\\[^"u])*"\\s*:\\s*)"(?:[^"\\\\]|\\\\.)*"?`,
  'gi',
)
// The end of a cut text may be the middle of a password.
const jsonUserinfo = /(:(?:\\?\/){2})[^/?#\s"\\]*(@|$)/g
