// The text of an access file as JSON, and the lines of its parts (docs/interface/access.md#the-file).
//
// JSON.parse is fast. It accepts a key twice, and its messages about syntax differ between versions of Node.js and may
// quote the text, which may have a secret in it by mistake. So a text in which it finds a fault, or fewer keys than the
// text has, is read a second time by a reader with its own grammar, which names the line.
//
// Lines of values are found only when they are needed, by the same reader, up to the wanted value.
//
// Not here: YAML, which another reader turns into the same document, and the meaning of the members (access-file.ts).

import { isArray, type Json } from '../json.js'
import { accepted, type Result, refusals, refused } from '../refusal.js'
import { accessFileDepthMax, accessFileLengthMax } from './access-limits.js'

/** The keys and indexes that lead from the root of the file to a value. */
export type AccessPlace = readonly (string | number)[]

/** A file whose syntax was read: no key is there twice. */
export interface AccessDocument {
  readonly value: Json
  /** The line of the value at a place, from 1 on; 0: it is not known. */
  lineOf(place: AccessPlace): number
}

/** The JSON of a text, or a refusal that names the line. */
export function readAccessJson(text: string): Result<AccessDocument> {
  if (text.length > accessFileLengthMax)
    return refused(refusals.accessFile(`the file has ${text.length} characters, at most ${accessFileLengthMax}`))
  const plain = plainJson(text)
  if (plain !== undefined) return accepted({ value: plain, lineOf: place => lineOf(text, place) })
  const reader = new JsonReader(text)
  const value = reader.readAll()
  if (value === undefined) return refused(refusals.accessFile(describeFault(reader.line, reader.place, reader.problem)))
  return accepted({ value, lineOf: place => lineOf(text, place) })
}

/** The JSON of a text; undefined: it may have a fault. */
function plainJson(text: string): Json | undefined {
  try {
    const value = JSON.parse(text) as Json
    return keysIn(value, 0) === keysInText(text) ? value : undefined
  } catch {
    return undefined
  }
}

/** The number of keys of all objects; NaN: nested too deep. */
function keysIn(json: Json, depth: number): number {
  if (typeof json !== 'object' || json === null) return 0
  if (depth === accessFileDepthMax) return Number.NaN
  let count = isArray(json) ? 0 : Object.keys(json).length
  for (const value of isArray(json) ? json : Object.values(json)) count += keysIn(value, depth + 1)
  return count
}

/** The number of texts with a colon behind them. */
function keysInText(text: string): number {
  let count = 0
  for (let at = text.indexOf('"'); at >= 0; at = text.indexOf('"', at)) {
    do at = text.indexOf('"', at + 1)
    while (isEscaped(text, at))
    at = afterBlanks(text, at + 1)
    if (text.charCodeAt(at) === colon) count++
  }
  return count
}

/** Whether an odd number of backslashes is before a position. */
function isEscaped(text: string, at: number): boolean {
  let before = at
  while (text.charCodeAt(before - 1) === backslash) before--
  return (at - before) % 2 === 1
}

const colon = 0x3a
const backslash = 0x5c
/** The text of a fault at a place of the file. */
export const describeFault = (line: number, place: AccessPlace, problem: string): string =>
  `${line > 0 ? `line ${line}: ` : ''}${place.length > 0 ? `${placeText(place)}: ` : ''}${problem}`

const plainKey = /^[A-Za-z_][\w-]*$/

/** A place as a reader finds it: `roles.guest[0].types`, `roles["a b"][0]`. */
function placeText(place: AccessPlace): string {
  let text = ''
  for (const step of place) {
    if (typeof step === 'number') text += `[${step}]`
    else if (!plainKey.test(step)) text += `[${JSON.stringify(step)}]`
    else text += text === '' ? step : `.${step}`
  }
  return text
}

function lineOf(text: string, place: AccessPlace): number {
  const reader = new JsonReader(text, place)
  reader.readAll()
  return reader.wantedLine
}

const numberOrWord = /true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON forbids them in texts.
const plainText = /[^"\\\u0000-\u001f]*/y
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON forbids them in texts.
const escapedText = /(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*/y

/** Reads one text. A method returns undefined when it has found a fault: no JSON value is undefined. */
class JsonReader {
  /** The first fault, and where it is. */
  problem = ''
  place: AccessPlace = []
  /** The line of the wanted value; 0: there is none. */
  wantedLine = 0
  private at = 0
  /** The place of the value that is being read. */
  private readonly path: (string | number)[] = []

  constructor(
    private readonly text: string,
    private readonly wanted?: AccessPlace,
  ) {}

  /** The line up to which the text was read. */
  get line(): number {
    let line = 1
    for (let at = this.text.indexOf('\n'); at >= 0 && at < this.at; at = this.text.indexOf('\n', at + 1)) line++
    return line
  }

  readAll(): Json | undefined {
    // Editors may begin a file with a byte order mark.
    if (this.text.charCodeAt(0) === byteOrderMark) this.at = 1
    const value = this.value()
    if (value === undefined) return undefined
    this.skip()
    return this.at === this.text.length ? value : this.fault('there is more text behind the end of the JSON')
  }

  private value(): Json | undefined {
    this.skip()
    if (this.wanted && isSamePlace(this.wanted, this.path)) this.wantedLine = this.line
    switch (this.text[this.at]) {
      case '{':
        return this.isTooDeep() ? undefined : this.members()
      case '[':
        return this.isTooDeep() ? undefined : this.elements()
      case '"':
        return this.string()
      case undefined:
        return this.fault('the text ends before the JSON does')
      default:
        return this.scalar()
    }
  }

  /** Steps into an object or an array. */
  private isTooDeep(): boolean {
    if (this.path.length === accessFileDepthMax) {
      this.fault(`nested more than ${accessFileDepthMax} levels deep`)
      return true
    }
    this.at++
    return false
  }

  private members(): Json | undefined {
    const members: { [name: string]: Json } = {}
    this.skip()
    if (this.takes('}')) return members
    do {
      this.skip()
      if (this.text[this.at] !== '"') return this.fault('a name in double quotes is missing')
      const name = this.string()
      if (name === undefined) return undefined
      this.path.push(name)
      if (Object.hasOwn(members, name)) return this.fault('is there twice')
      this.skip()
      if (!this.takes(':')) return this.fault('a colon is missing behind the name')
      const value = this.value()
      if (value === undefined) return undefined
      if (name === '__proto__') setOwn(members, name, value)
      else members[name] = value
      this.path.pop()
      this.skip()
    } while (this.takes(','))
    return this.takes('}') ? members : this.fault('a comma or } is missing')
  }

  private elements(): Json | undefined {
    const elements: Json[] = []
    this.skip()
    if (this.takes(']')) return elements
    do {
      this.path.push(elements.length)
      const value = this.value()
      if (value === undefined) return undefined
      elements.push(value)
      this.path.pop()
      this.skip()
    } while (this.takes(','))
    return this.takes(']') ? elements : this.fault('a comma or ] is missing')
  }

  private string(): string | undefined {
    const from = this.at + 1
    let end = endOf(plainText, this.text, from)
    if (this.text[end] === '"') {
      this.at = end + 1
      return this.text.slice(from, end)
    }
    end = endOf(escapedText, this.text, from)
    if (this.text[end] !== '"') return this.fault('a text does not end, or has a wrong character or escape in it')
    const text = JSON.parse(this.text.slice(from - 1, end + 1)) as string
    if (!text.isWellFormed()) return this.fault('a text has half of a surrogate pair')
    this.at = end + 1
    return text
  }

  private scalar(): Json | undefined {
    const end = endOf(numberOrWord, this.text, this.at)
    // `nullx` and `01` are no values, although they begin with one.
    if (end === this.at || /[\w.+-]/.test(this.text[end] ?? '')) return this.fault('there is no JSON value')
    const value = JSON.parse(this.text.slice(this.at, end)) as Json
    this.at = end
    return value
  }

  /** Skips blanks and line breaks. */
  private skip(): void {
    this.at = afterBlanks(this.text, this.at)
  }

  private takes(character: string): boolean {
    if (this.text[this.at] !== character) return false
    this.at++
    return true
  }

  private fault(problem: string): undefined {
    this.problem = problem
    this.place = [...this.path]
    return undefined
  }
}

const byteOrderMark = 0xfeff

const isBlank = (code: number): boolean => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09

function afterBlanks(text: string, from: number): number {
  let at = from
  while (isBlank(text.charCodeAt(at))) at++
  return at
}

/** An assignment to `__proto__` would change the prototype. */
const setOwn = (object: object, name: string, value: Json): unknown =>
  Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true })

/** The end of a match that begins at `from`; `from` itself when there is none. */
function endOf(form: RegExp, text: string, from: number): number {
  form.lastIndex = from
  return form.test(text) ? form.lastIndex : from
}

const isSamePlace = (a: AccessPlace, b: AccessPlace): boolean =>
  a.length === b.length && a.every((step, at) => step === b[at])
