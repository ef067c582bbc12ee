// Texts that a person types into a form, as what they mean.

/** Names with commas between them. */
export const namesIn = (text: string): string[] =>
  text
    .split(',')
    .map(name => name.trim())
    .filter(name => name !== '')

/** Why a text is not the URL of another server, as a sentence; undefined: it is one, or empty. `what`: "The receiver". */
export function urlFault(what: string, text: string): string | undefined {
  if (text === '') return undefined
  const url = URL.parse(text)
  return url && /^https?:$/.test(url.protocol)
    ? undefined
    : `${what} must be a URL that begins with http:// or https://.`
}
