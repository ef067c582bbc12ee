// Macros: `${name}` in the texts of a custom notification, and the values that replace them
// (docs/interface/notifications.md#macros).
//
// `${` begins a macro and the next `}` ends it; the text between is a name, taken literally. A filler goes over a
// template once, from left to right, and never scans the inserted values: an attribute's value cannot insert a macro.
//
// In plain texts (url, headers, query string, payload, topic) a missing value is empty, and a macro without an end
// makes the message fail. In strings of JSON a missing value is null, a macro without an end is text, and a macro that
// is the whole string keeps the type of its value.
//
// Not here: the list of names (notification.ts).

import { isArray, isObject, type Json, renderJson } from '../json.js'

const begins = '${'
const ends = '}'

/** Fills in the macros of one message. */
export class MacroFiller {
  private lengthLeft: number

  /**
   * `meaning`: the value of a name, undefined when there is none. `lengthMax`: the limit of characters of all results
   * together.
   */
  constructor(
    private readonly meaning: (name: string) => Json | undefined,
    lengthMax: number,
  ) {
    this.lengthLeft = lengthMax
  }

  /** Whether the results were too long together. Later results are incomplete, so there is no message. */
  get isExceeded(): boolean {
    return this.lengthLeft < 0
  }

  /** A plain text with its macros filled in; undefined: one of them has no end. */
  text(template: string): string | undefined {
    return this.fill(template, '', undefined)
  }

  /** A JSON value with the macros of its strings, at any depth, filled in; keys are unchanged. */
  json(template: Json): Json {
    if (typeof template === 'string') {
      const name = nameOfWhole(template)
      if (name === undefined) return this.part(template)
      const value = this.meaning(name) ?? null
      return this.spend(lengthOf(value, this.lengthLeft)) ? value : null
    }
    if (isArray(template)) return template.map(item => this.json(item))
    if (isObject(template))
      return Object.fromEntries(Object.entries(template).map(([key, item]) => [key, this.json(item)]))
    return template
  }

  /** A text inside JSON, always a text; undefined: the whole text is a macro whose value is missing, null or ''. */
  identifier(template: string): string | undefined {
    const name = nameOfWhole(template)
    if (name === undefined) return this.part(template)
    const value = this.meaning(name) ?? ''
    return value === '' ? undefined : this.part(template)
  }

  /** A string of JSON that is more than one macro. */
  private part(template: string): string {
    return this.fill(template, 'null', template) ?? template
  }

  /** `unclosed`: the result for a macro without an end: undefined, or the rest of the text stays unchanged. */
  private fill(template: string, missing: string, unclosed: string | undefined): string | undefined {
    let filled = ''
    let from = 0
    for (let at = template.indexOf(begins); at >= 0; at = template.indexOf(begins, from)) {
      const end = template.indexOf(ends, at)
      if (end < 0) {
        if (unclosed === undefined) return undefined
        break
      }
      const value = this.meaning(template.slice(at + begins.length, end))
      const text = value === undefined ? missing : typeof value === 'string' ? value : renderJson(value)
      if (!this.spend(at - from + text.length)) return ''
      filled += template.slice(from, at) + text
      from = end + ends.length
    }
    return this.spend(template.length - from) ? filled + template.slice(from) : ''
  }

  private spend(length: number): boolean {
    this.lengthLeft -= length
    return !this.isExceeded
  }
}

/** The name, when the whole text is one macro. */
function nameOfWhole(template: string): string | undefined {
  const isWhole = template.startsWith(begins) && template.indexOf(ends) === template.length - 1
  return isWhole ? template.slice(begins.length, -1) : undefined
}

/** The approximate number of characters of a value as JSON. Counting stops beyond `lengthMax`. */
function lengthOf(value: Json, lengthMax: number): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 1
  let length = 1
  const count = (key: string, item: Json): boolean => {
    length += key.length + 1
    if (length <= lengthMax) length += lengthOf(item, lengthMax - length)
    return length <= lengthMax
  }
  if (isArray(value)) value.every(item => count('', item))
  else Object.entries(value).every(([key, item]) => count(key, item))
  return length
}
