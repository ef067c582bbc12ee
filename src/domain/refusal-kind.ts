// The kinds of refusals, and the form of the rule of one code: its kind, the names of its facts, its text.

/**
 * The error names of the interface (base.md "Errors"). Three are ours: `Unavailable`, no shard could answer in time
 * (503), `InsufficientStorage`, the disk is full (507), and `Forbidden`, the tenant has used up its share (403).
 */
export const refusalKinds = [
  'ParseError',
  'BadRequest',
  'NotFound',
  'TooManyResults',
  'Unprocessable',
  'PartialUpdate',
  /** Called PartialUpdate as well, with another status (entities.md §20). */
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
] as const

export type RefusalKind = (typeof refusalKinds)[number]

/** What all refusals have, whatever their code. */
export interface AnyRefusal {
  readonly kind: RefusalKind
  readonly code: string
}

/** What a refusal may carry. It crosses nodes as JSON, so nothing is ever undefined. */
type Fact = string | number | readonly string[] | readonly { readonly [name: string]: Fact | null }[] | AnyRefusal

export interface Rule<Names extends readonly string[] = readonly string[], Facts extends readonly Fact[] = never> {
  /** undefined: the first fact is the kind. */
  readonly kind: RefusalKind | undefined
  /** The members of a refusal that hold its facts. */
  readonly names: Names
  /** For humans; not yet HTML-escaped. Takes the facts in the order of their names. */
  readonly text: (...facts: Facts) => string
}

/** One fact for each name. */
type FactsFor<Names extends readonly string[]> = readonly Fact[] & { readonly length: Names['length'] }

/** A refusal without facts, or one with facts that are listed by their names. */
export function rule(kind: RefusalKind, text: string): Rule<readonly [], []>
export function rule<const Names extends readonly string[], Facts extends FactsFor<Names>>(
  kind: RefusalKind,
  names: Names,
  text: (...facts: Facts) => string,
): Rule<Names, Facts>
export function rule(kind: RefusalKind, names: string | readonly string[], text = (): string => names as string): Rule {
  return { kind, names: typeof names === 'string' ? [] : names, text }
}

/** A refusal whose first fact is its kind. */
export const ruleOfKinds = <const Names extends readonly ['kind', ...string[]], Facts extends FactsFor<Names>>(
  names: Names,
  text: (...facts: Facts) => string,
): Rule<Names, Facts> => ({ kind: undefined, names, text })

/** Most rules: a refusal of kind BadRequest. */
export function bad(text: string): Rule<readonly [], []>
export function bad<const Names extends readonly string[], Facts extends FactsFor<Names>>(
  names: Names,
  text: (...facts: Facts) => string,
): Rule<Names, Facts>
export function bad(names: string | readonly string[], text?: () => string): Rule {
  return typeof names === 'string' ? rule('BadRequest', names) : rule('BadRequest', names, text as () => string)
}
