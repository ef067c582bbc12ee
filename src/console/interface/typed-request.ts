// A request as a person types it, checked before it is sent: whatever the text is, it goes to this broker.
//
// A key or token goes with it, so a URL of another origin, or outside of the path below which the broker is, is refused
// here. The policy of the page refuses other origins as well.

import type { ConsoleScope } from '../state/scope.js'
import { type HeaderPrefix, quoted, requestHeaders } from './console-request.js'

export const typedMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

export type TypedMethod = (typeof typedMethods)[number]

export interface RequestText {
  readonly method: TypedMethod
  /** Path and query. */
  readonly target: string
  /** Lines of the form `Name: value`. */
  readonly headers: string
  readonly body: string
}

/** A text that became a request. */
export interface TypedRequest {
  readonly method: TypedMethod
  readonly url: URL
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** undefined: there is none. */
  readonly body: string | undefined
}

export type RequestReading =
  | { readonly ok: true; readonly request: TypedRequest }
  /** Why it is no request, as a sentence. */
  | { readonly ok: false; readonly fault: string }

export const changesSomething = (method: TypedMethod): boolean => method !== 'GET' && method !== 'HEAD'

/** Whether a URL is this broker's, so that a key may go there. */
export const isBelow = (url: URL, base: URL): boolean =>
  url.origin === base.origin && url.pathname.startsWith(base.pathname)

const headerLine = /^([!#$%&'*+.^_`|~\w-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)$/

/** Headers of the scope are added, and the type of the body, unless a typed one has the same name. */
export function readRequest(text: RequestText, scope: ConsoleScope, base: URL, prefix: HeaderPrefix): RequestReading {
  const { method, target, body } = text
  const url = URL.parse(target.trim().replace(/^\/+/, ''), base)
  if (!url || !isBelow(url, base))
    return { ok: false, fault: 'The path must be one of this broker, such as /v2/entities.' }
  const typed: (readonly [string, string])[] = []
  for (const line of text.headers.split('\n')) {
    if (line.trim() === '') continue
    const [, name, value] = headerLine.exec(line.trim()) ?? []
    if (name === undefined || value === undefined)
      return { ok: false, fault: `A header is written as Name: value, not ${line.trim()}` }
    typed.push([name, value])
  }
  const names = new Set(typed.map(([name]) => name.toLowerCase()))
  const added = requestHeaders({ method: 'GET', path: '', ...scope }, prefix)
  const hasBody = changesSomething(method) && body !== ''
  if (hasBody) added.push(['Content-Type', 'application/json'])
  const headers = [...added.filter(([name]) => !names.has(name.toLowerCase())), ...typed]
  return { ok: true, request: { method, url, headers, body: hasBody ? body : undefined } }
}

/** The command with the same effect. It has the name of a variable instead of a key. */
export function curlOfTyped({ method, url, headers, body }: TypedRequest, hasProof: boolean): string {
  const words = ['curl', '-i']
  if (method === 'HEAD') words.push('--head')
  else if (method !== 'GET') words.push('-X', method)
  words.push(quoted(url.href))
  for (const [name, value] of headers) words.push('-H', quoted(`${name}: ${value}`))
  if (hasProof && !headers.some(([name]) => name.toLowerCase() === 'authorization'))
    words.push('-H', '"Authorization: Bearer $KEY"')
  if (body !== undefined) words.push('--data-raw', quoted(body))
  return words.join(' ')
}
