// A request to the broker as the console makes it, and the same as a command for a shell.

import type { Json } from '../../domain/json.js'

export interface ConsoleRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Encoded, without a slash at its beginning. */
  readonly path: string
  /** Empty texts are left out. */
  readonly query?: Readonly<Record<string, string>>
  readonly body?: Json
  /** Empty texts: the default tenant, and no service path. */
  readonly tenant?: string
  readonly servicePath?: string
}

/** The prefix of the headers that this broker reads. */
export type HeaderPrefix = 'Ctx' | 'Fiware'

export function requestUrl({ path, query = {} }: ConsoleRequest, base: URL): URL {
  const url = new URL(path, base)
  for (const [name, value] of Object.entries(query)) if (value !== '') url.searchParams.set(name, value)
  return url
}

/** Names and values of the headers, without those that show who asks. */
export function requestHeaders(
  { tenant, servicePath, body }: ConsoleRequest,
  prefix: HeaderPrefix,
): [string, string][] {
  const headers: [string, string][] = []
  if (tenant) headers.push([`${prefix}-Service`, tenant])
  if (servicePath) headers.push([`${prefix}-ServicePath`, servicePath])
  if (body !== undefined) headers.push(['Content-Type', 'application/json'])
  return headers
}

/** The command with the same effect. It has the name of a variable instead of a key. */
export function curlOf(request: ConsoleRequest, base: URL, prefix: HeaderPrefix, hasProof: boolean): string {
  const words = ['curl']
  if (request.method !== 'GET') words.push('-X', request.method)
  words.push(quoted(requestUrl(request, base).href))
  for (const [name, value] of requestHeaders(request, prefix)) words.push('-H', quoted(`${name}: ${value}`))
  if (hasProof) words.push('-H', '"Authorization: Bearer $KEY"')
  if (request.body !== undefined) words.push('-d', quoted(JSON.stringify(request.body)))
  return words.join(' ')
}

/** A word of a shell. */
export const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
