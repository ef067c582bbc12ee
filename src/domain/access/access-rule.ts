// A rule of a role: what it allows, and to which entities (docs/interface/access.md#rules). And its parser.
//
// A rule only allows. All its parts must fit: action, tenant, path, type, id. Its attributes are those that may be seen
// or changed of an entity that fits.
//
// Not here: what several rules come to (grant.ts).

import { checkIdentifier } from '../entities/entity.js'
import { isObject, type Json } from '../json.js'
import { identifierLengthMax, patternLengthMax, tenantLengthMax } from '../limits.js'
import { compilePattern } from '../queries/pattern.js'
import { allPaths, parseServicePaths, parseTenant } from '../scope.js'
import {
  accessTextLengthMax,
  attributesOfRuleMax,
  idsOfRuleMax,
  pathsOfRuleMax,
  tenantsOfRuleMax,
  typesOfRuleMax,
} from './access-limits.js'
import { type AttributeList, attributeSetOf, everyName, isExclusion } from './attribute-set.js'
import {
  type FileParser,
  type FileResult,
  faulty,
  filledListOf,
  objectOf,
  orElse,
  orNone,
  parsed,
  refine,
  required,
  textOf,
  wordOf,
} from './file-parsers.js'

/** What a request does, as rules name it (docs/interface/access.md#actions). */
export const accessActions = [
  'read',
  'create',
  'update',
  'delete',
  'subscribe',
  'register',
  'notify',
  'stream',
  'history',
  'admin',
  'metrics',
] as const

export type AccessAction = (typeof accessActions)[number]

/** Whether a word is one of them. */
export const isAccessAction = (word: string): word is AccessAction =>
  (accessActions as readonly string[]).includes(word)

/** An id, or the pattern of ids. */
export type IdSelector = string | { readonly pattern: string }

export interface AccessRule {
  /** Without `*`: it has been replaced by all of them. */
  readonly actions: ReadonlySet<AccessAction>
  readonly tenants: 'all' | ReadonlySet<string>
  /** Never empty: paths, with `/#` for what is below. */
  readonly paths: readonly string[]
  /** undefined: every type. Never empty, as the other lists. */
  readonly types: readonly string[] | undefined
  /** undefined: every id. */
  readonly ids: readonly IdSelector[] | undefined
  readonly attributes: AttributeList
}

/** Whether a rule is about everything in its tenants: all entities with all attributes. */
export const isUnlimited = ({ paths, types, ids, attributes }: Omit<AccessRule, 'actions' | 'tenants'>): boolean =>
  paths.includes('/#') && types === undefined && ids === undefined && attributeSetOf(attributes).kind === 'all'

const everyAction: ReadonlySet<AccessAction> = new Set(accessActions)
const defaultTenant: ReadonlySet<string> = new Set([''])

const actions: FileParser<ReadonlySet<AccessAction>> = refine(
  filledListOf(wordOf([...accessActions, '*']), 2 * accessActions.length, 'it names what the rule allows'),
  words => parsed(words.includes('*') ? everyAction : new Set(words as readonly AccessAction[])),
)

/** The name of a tenant, in lower case as in headers; the empty text is the default tenant. */
export const tenantName: FileParser<string> = json => {
  if (json === '') return parsed('')
  return textOf({
    said: `a name of at most ${tenantLengthMax} letters, digits and _`,
    lengthMax: tenantLengthMax,
    read: text => {
      const tenant = parseTenant(text)
      return tenant.ok ? tenant.value : undefined
    },
  })(json)
}

const leaveOut = (what: string): string => `leave it out for ${what}`

const tenants: FileParser<AccessRule['tenants']> = refine(
  filledListOf<string>(
    json => (json === '*' ? parsed('*') : tenantName(json)),
    tenantsOfRuleMax,
    leaveOut('the default tenant'),
  ),
  names => parsed(names.includes('*') ? 'all' : new Set(names)),
)

const path = textOf({
  said: 'one service path, with /# at its end for all below',
  lengthMax: accessTextLengthMax,
  read: text => {
    const paths = parseServicePaths(text)
    return paths.ok && paths.value.length === 1 ? paths.value[0] : undefined
  },
})

/** An identifier; `*` would be one, and its author would have meant all. */
function identifier(place: 'entity type' | 'entity id', all: string): FileParser<string> {
  const text = textOf({
    said: place === 'entity id' ? 'the id of an entity' : 'the type of an entity',
    lengthMax: identifierLengthMax,
    read: name => (checkIdentifier(place, name) ? undefined : name),
  })
  return json => (json === '*' ? faulty(`may not be *: ${all}`) : text(json))
}

const types = filledListOf(
  identifier('entity type', 'leave types out for all of them'),
  typesOfRuleMax,
  leaveOut('all types'),
)

const id = identifier('entity id', 'leave ids out for all of them')

const idPattern = objectOf<{ readonly pattern: string }>({
  pattern: required(
    textOf({
      said: 'a regular expression, as idPattern is',
      lengthMax: patternLengthMax,
      read: text => (compilePattern(text) ? text : undefined),
    }),
  ),
})

const ids = filledListOf<IdSelector>(
  json => (isObject(json) ? idPattern(json) : id(json)),
  idsOfRuleMax,
  leaveOut('all ids'),
)

const attributeWord = textOf({
  said: 'the name of an attribute, * for all, or a name with ! before it',
  lengthMax: identifierLengthMax + 1,
  read: word => {
    const name = isExclusion(word) ? word.slice(1) : word
    return word !== '!*' && !checkIdentifier('attribute name', name) ? word : undefined
  },
})

const attributes: FileParser<AttributeList> = refine(
  filledListOf(attributeWord, attributesOfRuleMax, leaveOut('all attributes')),
  (words): FileResult<AttributeList> =>
    words.every(isExclusion) ? faulty('only excludes names: * is missing, if all others are meant') : parsed(words),
)

/** A rule of the file. */
const rule = objectOf<AccessRule>({
  actions: required(actions),
  tenants: orElse(tenants, defaultTenant),
  paths: orElse(filledListOf(path, pathsOfRuleMax, leaveOut('all paths')), allPaths),
  types: orNone(types),
  ids: orNone(ids),
  attributes: orElse(attributes, everyName),
})

export const parseRule = (json: Json): FileResult<AccessRule> => rule(json)
