// The kinds of refusals, and the form of a rule, one for each code: its kind, the names of its facts, its text.

/**
 * The error names of the interface (docs/interface/errors.md#names). Seven are ours: `Unavailable`, no shard could
 * answer in time (503), `InsufficientStorage`, the disk is full (507), `Forbidden`, the tenant has used up its share or
 * the caller may not do this (403), `Conflict`, the same operation is already in progress (409), `Unauthorized`, it is
 * not shown who asks (401), `QuotaExceeded`, the tenant has as many as its quota allows (403), and `TooManyRequests`,
 * its rate of requests is used up (429).
 */
export const refusalKinds = [
  'ParseError',
  'BadRequest',
  'NotFound',
  'TooManyResults',
  'Unprocessable',
  'PartialUpdate',
  /** Its name is PartialUpdate as well, with another status (docs/interface/errors.md). */
  'PartlyForwarded',
  'NoResourceAvailable',
  'MethodNotAlowed',
  'NotAcceptable',
  'ContentLengthRequired',
  'RequestEntityTooLarge',
  'UnsupportedMediaType',
  'InternalServerError',
  'NotImplemented',
  'Unavailable',
  'InsufficientStorage',
  'Forbidden',
  'Conflict',
  'Unauthorized',
  'QuotaExceeded',
  'TooManyRequests',
] as const

export type RefusalKind = (typeof refusalKinds)[number]

/** The members of all refusals, whatever their code. */
export interface AnyRefusal {
  readonly kind: RefusalKind
  readonly code: string
}

/** A fact of a refusal. It crosses nodes as JSON, so it is never undefined. */
type Fact = string | number | readonly string[] | readonly { readonly [name: string]: Fact | null }[] | AnyRefusal

export interface Rule<Names extends readonly string[] = readonly string[], Facts extends readonly Fact[] = never> {
  /** undefined: the first fact is the kind. */
  readonly kind: RefusalKind | undefined
  /** The names of the members with its facts. */
  readonly names: Names
  /** The text for humans, not yet HTML-escaped. It takes the facts in the order of their names. */
  readonly text: (...facts: Facts) => string
}

/** One fact for each name. */
type FactsFor<Names extends readonly string[]> = readonly Fact[] & { readonly length: Names['length'] }

/** A rule whose text is computed from its facts, or one without facts. */
export function rule(kind: RefusalKind, text: string): Rule<readonly [], []>
export function rule<const Names extends readonly string[], Facts extends FactsFor<Names>>(
  kind: RefusalKind,
  names: Names,
  text: (...facts: Facts) => string,
): Rule<Names, Facts>
export function rule(kind: RefusalKind, names: string | readonly string[], text = (): string => names as string): Rule {
  return { kind, names: typeof names === 'string' ? [] : names, text }
}

/** The same for a refusal whose first fact is its kind. */
export const ruleOfKinds = <const Names extends readonly ['kind', ...string[]], Facts extends FactsFor<Names>>(
  names: Names,
  text: (...facts: Facts) => string,
): Rule<Names, Facts> => ({ kind: undefined, names, text })

/** A place in a text for a fact: the fact's name, and how it is written there. */
interface Slot<Name extends string = string, T extends Fact = never> {
  readonly name: Name
  readonly write: (fact: T) => string
}

/** Slots for facts of a type other than text. */
export const slot =
  <T extends Fact>(write: (fact: T) => string = String) =>
  <const Name extends string>(name: Name): Slot<Name, T> => ({ name, write })

export const num = slot<number>()

/** A name alone is a slot for a text. */
type Slots = readonly (string | Slot)[]

type NamesOf<S extends Slots> = { readonly [At in keyof S]: S[At] extends Slot<infer Name> ? Name : S[At] & string }
type FactsOf<S extends Slots> = { -readonly [At in keyof S]: S[At] extends Slot<string, infer T> ? T : string }

/** Returns a function that makes rules of one kind, from a text with or without slots. */
export function rulesOf(kind: RefusalKind) {
  function make(text: string): Rule<readonly [], []>
  function make<const S extends Slots>(texts: TemplateStringsArray, ...slots: S): Rule<NamesOf<S>, FactsOf<S>>
  function make(texts: string | TemplateStringsArray, ...slots: Slots): Rule {
    if (typeof texts === 'string') return rule(kind, texts)
    const [first = '', ...others] = texts
    const written = slots.map(one => (typeof one === 'string' ? { name: one, write: String } : one))
    const text = (...facts: never[]): string =>
      first + others.map((behind, at) => written[at]!.write(facts[at]!) + behind).join('')
    return { kind, names: written.map(({ name }) => name), text }
  }
  return make
}

/** Most rules are of this kind. */
export const bad = rulesOf('BadRequest')
