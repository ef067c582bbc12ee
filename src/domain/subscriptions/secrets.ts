// The secrets in a subscription, and the mask that replaces them (docs/operations/secrets.md).
//
// The name of a custom header, or of an entry of a query string, decides whether its value is a secret. The password of
// an MQTT broker, and the part of a URL before the @, are secrets too. The stored form keeps secrets; answers and log
// lines show the mask.
//
// Not here: masks that a client sends back (transport-parser.ts).

type NamedText = readonly [name: string, value: string]

export const mask = '*****'

const words = 'authorization|cookie|key|token|secret|passw'
const secretWord = new RegExp(words, 'i')

/** Whether the value of a header, or of an entry of a query string, is a secret. */
export const isSecretName = (name: string): boolean => secretWord.test(name)

/** Named texts with their secrets masked. */
export const maskNamed = (named: readonly NamedText[]): readonly NamedText[] =>
  named.map(([name, value]) => [name, isSecretName(name) && value !== '' ? mask : value])

/** A URL without the part before the @ of its host, for answers and logs. */
export const withoutUserinfo = (url: string): string => url.replace(userinfo, `://${mask}@`)

const userinfo = /:\/\/[^/?#\s]*@/

/** A URL or request target with the secrets of its query string masked. */
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
 * Masks secrets in JSON text, perhaps cut at its end: members with the name of a secret, and the part of a URL before
 * the
 * @. A name that is written with escapes is not recognised: callers check `hasHiddenName` first.
 */
export const withoutSecretMembers = (json: string): string =>
  json.replace(secretMember, `$1"${mask}"`).replace(jsonUserinfo, `$1${mask}$2`)

/** Whether a name in a JSON text may be written with escapes, so that `withoutSecretMembers` does not recognise it. */
export const hasHiddenName = (json: string): boolean => hiddenName.test(json)

const hiddenName = /\\[u"]/
const secretMember = new RegExp(
  `("(?:[^"\\\\]|\\\\[^"u])*?(?:${words})(?:[^"\\\\]|\\\\[^"u])*"\\s*:\\s*)"(?:[^"\\\\]|\\\\.)*"?`,
  'gi',
)
// A cut text may end in the middle of a password.
const jsonUserinfo = /(:(?:\\?\/){2})[^/?#\s"\\]*(@|$)/g
