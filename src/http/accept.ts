// The Accept header (entities.md §1.4): which of the two forms, JSON or plain text, a client takes, and which it likes better.
//
// Ranges nobody here knows are skipped, and so are parameters behind `q`. A first parameter that is not `q` is an error of the
// reference that no client depends on; it is tolerated unless the parameter is written as a broken `q`.

import { accepted, type Result, refusals, refused } from '../domain/refusal.js'

export interface Accept {
  readonly json: boolean
  readonly text: boolean
  /** For a value that has both forms: the highest q, at a tie what came first, `*` meaning JSON. */
  readonly prefersText: boolean
}

/** What a request without the header accepts. */
export const acceptAll: Accept = { json: true, text: true, prefersText: false }

const acceptJson: Accept = { json: true, text: false, prefersText: false }

const ranges: Readonly<Record<string, Accept>> = {
  '*/*': acceptAll,
  'application/*': acceptJson,
  'application/json': acceptJson,
  'text/*': { json: false, text: true, prefersText: true },
  'text/plain': { json: false, text: true, prefersText: true },
}

/** Reads the header's value. */
export function parseAccept(header: string): Result<Accept> {
  if (header === '*/*') return accepted(acceptAll)
  if (header === 'application/json') return accepted(acceptJson)
  if (header.trim() === '') return refused(refusals.acceptEmpty)
  let known = false
  let json = false
  let text = false
  let best = -1
  let prefersText = false
  for (const item of header.split(',')) {
    const [name = '', ...parameters] = item.split(';').map(part => part.trim())
    const quality = parseQuality(parameters[0])
    if (!quality.ok) return quality
    const range = Object.hasOwn(ranges, name) ? ranges[name] : undefined
    if (!range) continue
    known = true
    json ||= range.json
    text ||= range.text
    if (quality.value > best) {
      best = quality.value
      prefersText = range.prefersText
    }
  }
  return known ? accepted({ json, text, prefersText }) : refused(refusals.acceptNothingKnown)
}

function parseQuality(parameter: string | undefined): Result<number> {
  if (parameter === undefined) return accepted(1)
  const [name, ...values] = parameter.split('=')
  if (name?.trim() !== 'q') return accepted(1)
  if (values.length === 0) return refused(refusals.acceptQWithoutEqual)
  const value = values.join('=').trim()
  if (value === '') return refused(refusals.acceptQWithoutValue)
  return /^\d+(\.\d*)?$/.test(value) ? accepted(Number(value)) : refused(refusals.acceptQNotNumber)
}
