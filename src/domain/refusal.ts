// A refusal is a negative answer with a reason: a normal answer, returned as a value, never thrown.
//
// It has a code, a kind, and its facts as members; decisions use nothing else. `refusalText` makes the text at the
// edge: for an HTTP answer, a line of the log, the output of a command. A refusal crosses nodes inside the reply as
// JSON, and only http/reply.ts turns it into an HTTP status.
//
// Another build may use other codes, kinds and facts. A reader that knows the code and finds all its facts creates its
// own refusal, and ignores other members. Otherwise the refusal becomes an `unknownCode` with the kind and the text of
// the sender. An unknown kind becomes InternalServerError.
//
// Not here: the codes, with their facts and texts (refusal-rules.ts).

import { type RefusalKind, type Rule, refusalKinds } from './refusal-kind.js'
import { type RefusalCode, type RefusalRules, refusalRules, refusalText } from './refusal-rules.js'

export type { RefusalKind } from './refusal-kind.js'
export type {
  BatchPart,
  CountedThing,
  GeoQuerySource,
  IdentifierPlace,
  LocationPrefix,
  QueryOperator,
  QueryValueKind,
} from './refusal-rules.js'
export { refusalText } from './refusal-rules.js'

/** The facts of a code, by name. */
type FactsOf<Code extends RefusalCode> =
  RefusalRules[Code] extends Rule<infer Names, infer Facts>
    ? { readonly [At in keyof Names & `${number}` as Names[At] & string]: At extends keyof Facts ? Facts[At] : never }
    : never

type RefusalOf<Code extends RefusalCode> = { readonly kind: RefusalKind; readonly code: Code } & FactsOf<Code>

export type Refusal = { [Code in RefusalCode]: RefusalOf<Code> }[RefusalCode]

export type Result<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly refusal: Refusal }

/** A success without a value. */
export const done: Result<undefined> = { ok: true, value: undefined }

export const accepted = <T>(value: T): Result<T> => ({ ok: true, value })

export const refused = (refusal: Refusal): { readonly ok: false; readonly refusal: Refusal } => ({ ok: false, refusal })

/** Runs several parsers in their order. The first refusal ends it. */
export function allOf<T extends object>(parsers: { readonly [Name in keyof T]: () => Result<T[Name]> }): Result<T> {
  const values: Partial<T> = {}
  for (const name in parsers) {
    const result = parsers[name]()
    if (!result.ok) return result
    values[name] = result.value
  }
  return accepted(values as T)
}

/**
 * A code without facts has one refusal. Any other code has a function that creates a refusal from its facts, in their
 * order.
 */
type Maker<Code extends RefusalCode> =
  RefusalRules[Code] extends Rule<infer _, infer Facts>
    ? Facts extends []
      ? Refusal
      : (...facts: Facts) => Refusal
    : never

function make(code: string, { kind, names }: Rule, facts: readonly unknown[]): Refusal {
  const refusal: Record<string, unknown> = { kind, code }
  for (let at = 0; at < names.length; at++) refusal[names[at]!] = facts[at]
  return refusal as unknown as Refusal
}

export const refusals = Object.fromEntries(
  Object.entries<Rule>(refusalRules).map(([code, rule]) => [
    code,
    rule.names.length === 0 ? make(code, rule, []) : (...facts: readonly unknown[]) => make(code, rule, facts),
  ]),
) as { readonly [Code in RefusalCode]: Maker<Code> }

interface WireRefusal {
  readonly kind?: unknown
  readonly code?: unknown
  /** The text. No fact has this name. */
  readonly description?: unknown
}

/** The form of a refusal for other processes. */
export const refusalToWire = (refusal: Refusal): WireRefusal => ({ ...refusal, description: refusalText(refusal) })

/** Reads a refusal that another process sent, whatever its build. */
export function refusalFromWire(wire: WireRefusal): Refusal {
  const kind = (refusalKinds as readonly unknown[]).includes(wire.kind)
    ? (wire.kind as RefusalKind)
    : 'InternalServerError'
  return knownRefusal({ ...wire, kind }) ?? refusals.unknownCode(kind, textOf(wire.code), textOf(wire.description))
}

const textOf = (json: unknown): string => (typeof json === 'string' ? json : '')

/**
 * The refusal with these members; undefined if this build does not know the code, or cannot make a text from the facts.
 */
function knownRefusal(members: { readonly [name: string]: unknown }): Refusal | undefined {
  const { code } = members
  if (typeof code !== 'string' || !Object.hasOwn(refusalRules, code)) return undefined
  const rule: Rule = refusalRules[code as RefusalCode]
  if (rule.names.some(name => members[name] === undefined)) return undefined
  const facts = rule.names.map(name => members[name])
  const refusal = make(code, rule, facts)
  try {
    refusalText(refusal)
  } catch {
    return undefined
  }
  return refusal
}
