// Parsers of the parts of an access file: texts, lists, objects. access-file.ts and its parts are made of them.
//
//   listOf(textOf(...))  -> a fault in the third element has the place [2], and each parser around it adds its step
//
// A fault has a place and a problem. It never quotes a value that may be a secret: `secretOf`.

import { isArray, isObject, type Json } from '../json.js'
import type { AccessPlace } from './access-document.js'

/** A fault of the file: its place, and the problem there. */
export interface FileFault {
  readonly place: AccessPlace
  readonly problem: string
}

export type FileResult<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly fault: FileFault }

export type FileParser<T> = (json: Json) => FileResult<T>

export const parsed = <T>(value: T): FileResult<T> => ({ ok: true, value })

export const faulty = (problem: string, ...place: AccessPlace): { readonly ok: false; readonly fault: FileFault } => ({
  ok: false,
  fault: { place, problem },
})

/** The same fault, seen from one level above. */
const inside = (step: string | number, { fault }: { readonly fault: FileFault }): FileResult<never> =>
  faulty(fault.problem, step, ...fault.place)

interface TextForm {
  /** The text as it is used; undefined: it does not have the form. */
  readonly read?: (text: string) => string | undefined
  /** The required form: completes "must be ". */
  readonly said: string
  readonly lengthMax: number
}

const controls = /\p{Cc}/u

/** A text that is not empty and has no control characters. */
export function textOf({ read = text => text, said, lengthMax }: TextForm): FileParser<string> {
  return json => {
    if (typeof json !== 'string') return faulty(`must be ${said}, as a text${hintOf(json)}`)
    const value = usable(json, lengthMax) ? read(json) : undefined
    return value === undefined ? faulty(`must be ${said}, not ${shown(json)}`) : parsed(value)
  }
}

/** Like `textOf`, for a value that a fault must not show. */
export function secretOf({ read = text => text, said, lengthMax }: TextForm): FileParser<string> {
  return json => {
    const value = typeof json === 'string' && usable(json, lengthMax) ? read(json) : undefined
    return value === undefined ? faulty(`must be ${said}`) : parsed(value)
  }
}

const usable = (text: string, lengthMax: number): boolean =>
  text !== '' && text.length <= lengthMax && !controls.test(text)

/** In YAML, names of digits and words like `true` need quotes. */
const hintOf = (json: Json): string =>
  typeof json === 'number' || typeof json === 'boolean' ? ': put it in quotes' : ''

const shownLengthMax = 60

function shown(text: string): string {
  const quoted = JSON.stringify(text)
  return quoted.length > shownLengthMax ? `${quoted.slice(0, shownLengthMax)}..."` : quoted
}

/** One of some words. */
export function wordOf<W extends string>(words: readonly W[]): FileParser<W> {
  const known: ReadonlySet<string> = new Set(words)
  return json =>
    typeof json === 'string' && known.has(json)
      ? parsed(json as W)
      : faulty(`must be one of ${words.join(', ')}${typeof json === 'string' ? `, not ${shown(json)}` : ''}`)
}

/** A whole number, both bounds included. */
export const wholeOf =
  (least: number, most = Number.MAX_SAFE_INTEGER): FileParser<number> =>
  json =>
    typeof json === 'number' && Number.isSafeInteger(json) && json >= least && json <= most
      ? parsed(json)
      : faulty(
          `must be a whole number, ${most === Number.MAX_SAFE_INTEGER ? `${least} or more` : `${least} to ${most}`}`,
        )

/** The list of what the parser makes of each element. */
export function listOf<T>(parser: FileParser<T>, countMax: number): FileParser<readonly T[]> {
  return json => {
    if (!isArray(json)) return faulty('must be a list')
    if (json.length > countMax) return faulty(`has ${json.length} elements, at most ${countMax}`)
    const values: T[] = []
    for (const [at, element] of json.entries()) {
      const value = parser(element)
      if (!value.ok) return inside(at, value)
      values.push(value.value)
    }
    return parsed(values)
  }
}

/** A list that has at least one element. `meaning`: what to do instead of an empty list. */
export function filledListOf<T>(parser: FileParser<T>, countMax: number, meaning: string): FileParser<readonly T[]> {
  const list = listOf(parser, countMax)
  return json => {
    const values = list(json)
    return values.ok && values.value.length === 0 ? faulty(`must not be empty: ${meaning}`) : values
  }
}

/** An object with any names, each of which has to pass `name`. */
export function mapOf<T>(
  name: FileParser<string>,
  parser: FileParser<T>,
  countMax: number,
): FileParser<ReadonlyMap<string, T>> {
  return json => {
    if (!isObject(json)) return faulty('must be an object')
    const names = Object.keys(json)
    if (names.length > countMax) return faulty(`has ${names.length} members, at most ${countMax}`)
    const values = new Map<string, T>()
    for (const given of names) {
      const known = name(given)
      if (!known.ok) return faulty(`the name ${known.fault.problem}`, given)
      if (values.has(known.value)) return faulty(`is the same name as another one: ${shown(known.value)}`, given)
      const value = parser(json[given]!)
      if (!value.ok) return inside(given, value)
      values.set(known.value, value.value)
    }
    return parsed(values)
  }
}

/** A member of an object: its parser, and its value when it is absent. */
interface MemberOf<T> {
  readonly parser: FileParser<T>
  /** undefined: the member is required. */
  readonly byDefault: { readonly value: T } | undefined
}

export const required = <T>(parser: FileParser<T>): MemberOf<T> => ({ parser, byDefault: undefined })

export const orElse = <T>(parser: FileParser<T>, value: T): MemberOf<T> => ({ parser, byDefault: { value } })

export const orNone = <T>(parser: FileParser<T>): MemberOf<T | undefined> => ({
  parser,
  byDefault: { value: undefined },
})

/** An object with these members and no other ones. */
export function objectOf<T extends object>(members: { readonly [Name in keyof T]: MemberOf<T[Name]> }): FileParser<T> {
  const names = Object.keys(members) as (keyof T & string)[]
  return json => {
    if (!isObject(json)) return faulty('must be an object')
    const unknown = Object.keys(json).find(name => !Object.hasOwn(members, name))
    if (unknown !== undefined) return faulty(`is not known here: the members are ${names.join(', ')}`, unknown)
    const values: Partial<T> = {}
    for (const name of names) {
      const { parser, byDefault } = members[name]
      const given = Object.hasOwn(json, name) ? json[name] : undefined
      if (given === undefined) {
        if (!byDefault) return faulty(`the member ${name} is missing`)
        values[name] = byDefault.value
        continue
      }
      const value = parser(given)
      if (!value.ok) return inside(name, value)
      values[name] = value.value
    }
    return parsed(values as T)
  }
}

/** The value of a parser after a further check or change. */
export function refine<A, B>(parser: FileParser<A>, next: (value: A) => FileResult<B>): FileParser<B> {
  return json => {
    const value = parser(json)
    return value.ok ? next(value.value) : value
  }
}
