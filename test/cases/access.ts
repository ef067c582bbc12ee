// Access control: rules, requests, and decisions (docs/interface/access.md).
//
// Rules are written as in the access file, without the role around them. A row is read from left to right: what it
// shows, the rules of the one role of the principal, the request, the decision.

import type { JsonObject } from '../../src/domain/json.js'

export type Rules = readonly JsonObject[]

const everything: JsonObject = { actions: ['*'], tenants: ['*'] }
const guest: JsonObject = {
  actions: ['read'],
  tenants: ['city'],
  paths: ['/public/#'],
  types: ['Museum'],
  attributes: ['*', '!cost'],
}
const gateway: JsonObject = {
  actions: ['create', 'update'],
  tenants: ['city'],
  paths: ['/north/#'],
  types: ['Meter', 'Lamp'],
}
/** A rule of the tenant `city`. */
const city = (actions: string, parts: JsonObject = {}): JsonObject => ({
  actions: actions.split(' '),
  tenants: ['city'],
  ...parts,
})

/**
 * The grant that results from rules: purpose of the row, rules, `action tenant paths`, the grant. A grant is `all` and
 * its paths, `denied` and the reason, or its clauses in words.
 */
export const grantCases: readonly (readonly [string, Rules, string, string])[] = [
  // Deny by default
  ['no rules allow nothing', [], 'read city /#', 'denied: roles'],
  ['a rule without the action allows nothing', [city('create')], 'read city /#', 'denied: action'],
  ['update is not read', [city('update')], 'read city /a', 'denied: action'],
  ['read is not update', [city('read')], 'update city /a', 'denied: action'],
  ['create is not update', [city('create')], 'update city /a', 'denied: action'],
  ['update is not delete', [city('create update')], 'delete city /a', 'denied: action'],
  ['subscribe does not need read, and is not read', [city('subscribe')], 'read city /#', 'denied: action'],
  ['subscribe alone is enough to subscribe', [city('subscribe')], 'subscribe city /#', 'all in /#'],
  ['read is not subscribe', [city('read')], 'subscribe city /#', 'denied: action'],
  ['read is not stream', [city('read')], 'stream city /#', 'denied: action'],
  ['read is not history', [city('read')], 'history city /#', 'denied: action'],
  ['create and update are not notify', [city('create update delete')], 'notify city /a', 'denied: action'],
  ['notify is an action of its own', [city('notify')], 'notify city /a', 'all in /a'],
  ['read is not register', [city('read')], 'register city /a', 'denied: action'],
  ['admin allows no reads', [city('admin metrics')], 'read city /#', 'denied: action'],
  ['* is every action', [city('*')], 'history city /a', 'all in /a'],
  ['* beside an action is every action', [city('read *')], 'delete city /a', 'all in /a'],
  ['one of several actions', [city('create update')], 'update city /a', 'all in /a'],
  ['the second rule', [city('create'), city('read')], 'read city /a', 'all in /a'],

  // Tenants
  ['a rule is for the default tenant', [{ actions: ['read'] }], 'read default /a', 'all in /a'],
  ['and for no other', [{ actions: ['read'] }], 'read city /a', 'denied: tenant'],
  ['a rule with tenants is not for the default one', [city('read')], 'read default /a', 'denied: tenant'],
  [
    'an empty text is the default tenant',
    [{ actions: ['read'], tenants: ['', 'city'] }],
    'read default /a',
    'all in /a',
  ],
  ['* is all tenants', [everything], 'read harbour /a', 'all in /a'],
  ['* is the default tenant, too', [everything], 'read default /a', 'all in /a'],
  ['* beside a name is all', [{ actions: ['read'], tenants: ['city', '*'] }], 'read harbour /a', 'all in /a'],
  [
    'a name in capitals is taken in lower case',
    [{ actions: ['read'], tenants: ['CITY'] }],
    'read city /a',
    'all in /a',
  ],
  ['a name is not a prefix', [{ actions: ['read'], tenants: ['cit'] }], 'read city /a', 'denied: tenant'],
  [
    'the tenant of one rule is not that of another',
    [city('create'), { actions: ['read'], tenants: ['harbour'] }],
    'read city /a',
    'denied: tenant',
  ],

  // Paths
  ['without paths all of them', [city('read')], 'read city /#', 'all in /#'],
  ['a path is this one', [city('read', { paths: ['/a'] })], 'read city /a', 'all in /a'],
  ['and not what is below', [city('read', { paths: ['/a'] })], 'read city /a/b', 'denied: path'],
  ['and not what is above', [city('read', { paths: ['/a/b'] })], 'read city /a', 'denied: path'],
  ['/a/# is /a', [city('read', { paths: ['/a/#'] })], 'read city /a', 'all in /a'],
  ['and what is below', [city('read', { paths: ['/a/#'] })], 'read city /a/b/c', 'all in /a/b/c'],
  ['and not /ab', [city('read', { paths: ['/a/#'] })], 'read city /ab', 'denied: path'],
  ['/ is only the root', [city('read', { paths: ['/'] })], 'read city /a', 'denied: path'],
  ['the root itself', [city('read', { paths: ['/'] })], 'read city /', 'all in /'],
  ['/# has the root', [city('read', { paths: ['/#'] })], 'read city /', 'all in /'],
  ['the whole tenant is cut to the rule', [city('read', { paths: ['/a/#'] })], 'read city /#', 'everything in /a/#'],
  ['a part is cut to the rule', [city('read', { paths: ['/a/b'] })], 'read city /a/#', 'everything in /a/b'],
  ['a wider rule is cut to the request', [city('read', { paths: ['/a/#'] })], 'read city /a/b/#', 'all in /a/b/#'],
  ['of several paths those that fit', [city('read', { paths: ['/a', '/b/#'] })], 'read city /a,/c', 'everything in /a'],
  ['all of several paths', [city('read', { paths: ['/a', '/b/#'] })], 'read city /a,/b/x', 'all in /a,/b/x'],
  [
    'paths of several rules are added up',
    [city('read', { paths: ['/a'] }), city('read', { paths: ['/b'] })],
    'read city /a,/b',
    'all in /a,/b',
  ],
  [
    'a path within another one is not there twice',
    [city('read', { paths: ['/a/#', '/a/b'] })],
    'read city /#',
    'everything in /a/#',
  ],
  ['one slash at the end is dropped', [city('read', { paths: ['/a/'] })], 'read city /a', 'all in /a'],
  ['paths have upper and lower case', [city('read', { paths: ['/A'] })], 'read city /a', 'denied: path'],
  [
    'the path of a rule for another action does not count',
    [city('create'), city('read', { paths: ['/b'] })],
    'read city /a',
    'denied: path',
  ],

  // Narrowing
  ['the guest of the example', [guest], 'read city /#', 'type Museum in /public/#, attributes *, !cost'],
  ['in a path that is not public', [guest], 'read city /north', 'denied: path'],
  ['in another tenant', [guest], 'read harbour /public', 'denied: tenant'],
  ['the gateway of the example', [gateway], 'update city /north/a', 'types Meter, Lamp in /north/a'],
  ['the operator of the example', [everything], 'update harbour /south', 'all in /south'],
  ['types narrow', [city('read', { types: ['Lamp'] })], 'read city /a', 'type Lamp in /a'],
  ['ids narrow', [city('read', { ids: ['m1'] })], 'read city /a', 'id m1 in /a'],
  ['patterns narrow', [city('read', { ids: [{ pattern: '^m' }] })], 'read city /a', 'id /^m/ in /a'],
  ['attributes narrow', [city('read', { attributes: ['name'] })], 'read city /a', 'everything in /a, attributes name'],
  ['* among attributes is all', [city('read', { attributes: ['*', 'name'] })], 'read city /a', 'all in /a'],
  [
    'a rule without narrowing wins over one with it',
    [city('read', { types: ['Lamp'] }), city('read')],
    'read city /a',
    'all in /a',
  ],
  [
    'but only where it counts',
    [city('read', { types: ['Lamp'] }), city('read', { paths: ['/b'] })],
    'read city /a,/b',
    'type Lamp in /a, /b; everything in /b',
  ],
  [
    'several rules stay apart',
    [city('read', { types: ['Lamp'], attributes: ['name'] }), city('read', { types: ['Meter'] })],
    'read city /a',
    'type Lamp in /a, attributes name; type Meter in /a',
  ],
]

/**
 * The visible part of an entity: purpose of the row, rules, `action tenant path id/type`, its attributes. The entity
 * has `name`, `cost` and `place`; `not there` is an entity that is not covered.
 */
export const seenCases: readonly (readonly [string, Rules, string, string])[] = [
  ['all of it', [city('read')], 'read city /a m1/Museum', 'name cost place'],
  ['of the type', [city('read', { types: ['Museum'] })], 'read city /a m1/Museum', 'name cost place'],
  ['not of another type', [city('read', { types: ['Museum'] })], 'read city /a m1/Lamp', 'not there'],
  ['types have upper and lower case', [city('read', { types: ['museum'] })], 'read city /a m1/Museum', 'not there'],
  ['of the id', [city('read', { ids: ['m1', 'm2'] })], 'read city /a m2/Museum', 'name cost place'],
  ['not of another id', [city('read', { ids: ['m1'] })], 'read city /a m10/Museum', 'not there'],
  ['of a pattern', [city('read', { ids: [{ pattern: '^m' }] })], 'read city /a m10/Museum', 'name cost place'],
  [
    'a pattern is not anchored',
    [city('read', { ids: [{ pattern: '1' }] })],
    'read city /a m10/Lamp',
    'name cost place',
  ],
  [
    'not of a pattern that does not match',
    [city('read', { ids: [{ pattern: '^n' }] })],
    'read city /a m1/X',
    'not there',
  ],
  ['an id or a pattern', [city('read', { ids: ['x', { pattern: '^m' }] })], 'read city /a x/Lamp', 'name cost place'],
  [
    'type and id have to fit both',
    [city('read', { types: ['Museum'], ids: ['m1'] })],
    'read city /a m2/Museum',
    'not there',
  ],
  ['an id text is no pattern', [city('read', { ids: ['m.'] })], 'read city /a m1/Museum', 'not there'],
  ['listed attributes', [city('read', { attributes: ['name', 'x'] })], 'read city /a m1/Museum', 'name'],
  ['all but one', [city('read', { attributes: ['*', '!cost'] })], 'read city /a m1/Museum', 'name place'],
  [
    'the order in the list has no meaning',
    [city('read', { attributes: ['!cost', '*'] })],
    'read city /a m1/Museum',
    'name place',
  ],
  [
    'an exclusion wins in its list',
    [city('read', { attributes: ['*', 'cost', '!cost'] })],
    'read city /a m1/Museum',
    'name place',
  ],
  ['and among names', [city('read', { attributes: ['name', 'cost', '!cost'] })], 'read city /a m1/Museum', 'name'],
  ['no attribute is still an entity', [city('read', { attributes: ['x'] })], 'read city /a m1/Museum', ''],
  [
    'an excluded name that is not there',
    [city('read', { attributes: ['*', '!x'] })],
    'read city /a m1/Museum',
    'name cost place',
  ],
  [
    'attributes of two rules are added up',
    [city('read', { attributes: ['name'] }), city('read', { attributes: ['cost'] })],
    'read city /a m1/Museum',
    'name cost',
  ],
  [
    'an exclusion is no prohibition: another rule has the attribute',
    [city('read', { attributes: ['*', '!cost'] }), city('read', { attributes: ['cost'] })],
    'read city /a m1/Museum',
    'name cost place',
  ],
  [
    'two rules with different exclusions have all',
    [city('read', { attributes: ['*', '!cost'] }), city('read', { attributes: ['*', '!name'] })],
    'read city /a m1/Museum',
    'name cost place',
  ],
  [
    'two rules with the same exclusion',
    [city('read', { attributes: ['*', '!cost'] }), city('read', { attributes: ['*', '!cost', '!name'] })],
    'read city /a m1/Museum',
    'name place',
  ],
  [
    'rules are added up by entity: the names of lamps and everything of meters',
    [city('read', { types: ['Lamp'], attributes: ['name'] }), city('read', { types: ['Meter'] })],
    'read city /a l1/Lamp',
    'name',
  ],
  [
    'and the meters',
    [city('read', { types: ['Lamp'], attributes: ['name'] }), city('read', { types: ['Meter'] })],
    'read city /a l1/Meter',
    'name cost place',
  ],
  [
    'a rule for every type counts for each of them',
    [city('read', { attributes: ['name'] }), city('read', { types: ['Museum'], attributes: ['cost'] })],
    'read city /a m1/Museum',
    'name cost',
  ],
  [
    'types of one rule are not for the paths of another',
    [city('read', { types: ['Lamp'], paths: ['/a'] }), city('read', { types: ['Meter'], paths: ['/b'] })],
    'read city /b l1/Lamp',
    'not there',
  ],
  [
    'attributes by path',
    [city('read', { paths: ['/a/#'], attributes: ['name'] }), city('read', { paths: ['/a/b'], attributes: ['place'] })],
    'read city /a/b m1/Museum',
    'name place',
  ],
  [
    'the attributes of another action do not count',
    [city('read', { attributes: ['name'] }), city('update', { attributes: ['cost'] })],
    'read city /a m1/Museum',
    'name',
  ],
  [
    'history has attributes of its own',
    [city('read'), city('history', { attributes: ['name'] })],
    'history city /a m1/X',
    'name',
  ],
  ['the guest of the example', [guest], 'read city /public/x m1/Museum', 'name place'],
  ['and a lamp', [guest], 'read city /public/x l1/Lamp', 'not there'],
]

const mostlyHidden: Rules = [city('read', { attributes: ['*', '!cost'] }), city('read', { types: ['Lamp'] })]

/**
 * Filters: purpose of the row, rules, the request in the path `/#` of `city` (or another one at its end), and `allowed`
 * or the attribute with the part of the request that may not name it.
 */
export const filterCases: readonly (readonly [string, Rules, string, string])[] = [
  ['no filter', [guest], 'type=Museum', 'allowed'],
  ['q on an attribute that is shown', [guest], 'q=name', 'allowed'],
  ['q on one that is not', [guest], 'q=cost>5', 'q on cost'],
  ['q for its absence', [guest], 'q=!cost', 'q on cost'],
  ['q on a part of its value', [guest], 'q=cost.adults>5', 'q on cost'],
  ['the second statement of a q', [guest], 'q=name;cost>5', 'q on cost'],
  ['mq on it', [guest], 'mq=cost.unit==EUR', 'mq on cost'],
  ['mq on builtin metadata of it', [guest], 'mq=cost.dateModified>2020-01-01', 'mq on cost'],
  ['mq on another one', [guest], 'mq=name.lang==de', 'allowed'],
  ['orderBy it', [guest], 'orderBy=cost', 'orderBy on cost'],
  ['orderBy it backwards', [guest], 'orderBy=name,!cost', 'orderBy on cost'],
  ['attributes of op/query', [guest], 'attributes=name,cost', 'attributes on cost'],
  ['builtin attributes in q', [guest], 'q=dateModified>2020-01-01;servicePath==/public', 'allowed'],
  ['builtin names in orderBy', [guest], 'orderBy=id,type,servicePath,dateCreated,dateModified', 'allowed'],
  ['orderBy distance', [guest], 'orderBy=geo:distance', 'allowed'],
  [
    'a date that clients write is an attribute',
    [city('read', { attributes: ['name'] })],
    'q=dateExpires',
    'q on dateExpires',
  ],
  [
    'a geographical filter is decided for each entity',
    [guest],
    'georel=near;maxDistance:10&geometry=point&coords=1,2',
    'allowed',
  ],
  ['attrs only choose', [guest], 'attrs=cost', 'allowed'],
  ['a name that is not listed', [city('read', { attributes: ['name'] })], 'q=x', 'q on x'],
  ['any name without narrowing', [city('read', { types: ['Lamp'] })], 'q=x', 'allowed'],

  ['some entities show it, others do not', mostlyHidden, 'q=cost>5', 'q on cost'],
  ['the type says which', mostlyHidden, 'type=Lamp&q=cost>5', 'allowed'],
  ['several types, one of them not', mostlyHidden, 'type=Lamp,Museum&q=cost>5', 'q on cost'],
  ['a pattern of types may mean any', mostlyHidden, 'typePattern=^Lamp$&q=cost>5', 'q on cost'],
  ['an id may have any type', mostlyHidden, 'id=l1&q=cost>5', 'q on cost'],
  [
    'rules by type, and a request for one',
    [city('read', { types: ['Museum'], attributes: ['name'] }), city('read', { types: ['Lamp'] })],
    'type=Lamp&orderBy=cost',
    'allowed',
  ],
  [
    'rules by type, and a pattern for one',
    [city('read', { types: ['Museum'], attributes: ['name'] }), city('read', { types: ['Lamp'] })],
    'typePattern=^La&orderBy=cost',
    'allowed',
  ],
  [
    'no rule is reached, so nothing is found',
    [city('read', { types: ['Museum'], attributes: ['name'] })],
    'type=Lamp&orderBy=cost',
    'allowed',
  ],
  [
    'two rules cover one together',
    [
      city('read', { types: ['Lamp', 'Meter'], attributes: ['name'] }),
      city('read', { types: ['Lamp'] }),
      city('read', { types: ['Meter'] }),
    ],
    'q=cost',
    'allowed',
  ],
  [
    'a rule for a part of the paths covers only that',
    [city('read', { attributes: ['name'] }), city('read', { paths: ['/a/#'] })],
    'q=cost',
    'q on cost',
  ],
  [
    'and is enough for a request in it',
    [city('read', { attributes: ['name'] }), city('read', { paths: ['/a/#'], types: ['Lamp'] })],
    'type=Lamp&q=cost in /a/b',
    'allowed',
  ],
  [
    'a rule for all ids covers a rule for some',
    [city('read', { ids: [{ pattern: '^m' }, 'x'], attributes: ['name'] }), city('read', { types: ['Lamp'] })],
    'type=Lamp&q=cost',
    'allowed',
  ],
  [
    'a rule for some ids does not cover all',
    [city('read', { attributes: ['name'] }), city('read', { ids: ['x'] })],
    'q=cost',
    'q on cost',
  ],
  [
    'but the named ones',
    [city('read', { attributes: ['name'] }), city('read', { ids: ['x'], types: ['Lamp'] })],
    'type=Lamp&id=x&q=cost',
    'allowed',
  ],
  [
    'an id that a pattern has',
    [city('read', { attributes: ['name'] }), city('read', { ids: [{ pattern: '^x' }], types: ['Lamp'] })],
    'type=Lamp&id=x1&q=cost',
    'allowed',
  ],
  [
    'a pattern covers only its own text',
    [
      city('read', { ids: [{ pattern: '^xy' }], attributes: ['name'] }),
      city('read', { ids: [{ pattern: '^x' }], types: ['Lamp'] }),
    ],
    'type=Lamp&q=cost',
    'q on cost',
  ],
  [
    'the same pattern covers it',
    [
      city('read', { ids: [{ pattern: '^x' }], attributes: ['name'] }),
      city('read', { ids: [{ pattern: '^x' }], types: ['Lamp'] }),
    ],
    'type=Lamp&q=cost',
    'allowed',
  ],
  [
    'a pattern of ids in the request narrows nothing',
    [city('read', { ids: ['a'], attributes: ['name'] }), city('read', { ids: ['b'] })],
    'idPattern=^b$&q=cost',
    'q on cost',
  ],
]

/**
 * Writes in the tenant `city`: purpose of the row, rules, `kind path id/type attributes`, and `allowed`, the text of
 * the refusal, or what a write without a type is about.
 */
export const writeCases: readonly (readonly [string, Rules, string, string])[] = [
  ['a meter of the example', [gateway], 'create /north/a m1/Meter power', 'allowed'],
  ['another type', [gateway], 'create /north m1/Museum power', 'create of m1/Museum in /north'],
  ['another path', [gateway], 'create /south m1/Meter power', 'create in /south'],
  ['an update', [gateway], 'update /north m1/Lamp power', 'allowed'],
  ['the example of the description', [gateway], 'update /south m1/Lamp power', 'update in /south'],
  ['a deletion needs delete', [gateway], 'deleteEntity /north m1/Lamp', 'delete in /north'],
  ['of an attribute, too', [gateway], 'deleteAttributes /north m1/Lamp power', 'delete in /north'],
  ['an upsert needs both', [gateway], 'upsert /north m1/Lamp power', 'allowed'],
  ['with create alone', [city('create')], 'upsert /a m1/Lamp power', 'update in /a'],
  ['with update alone', [city('update')], 'upsert /a m1/Lamp power', 'create in /a'],
  ['an update needs no create', [city('update')], 'update /a m1/Lamp power', 'allowed'],
  ['a replacement deletes attributes', [city('update')], 'replace /a m1/Lamp power', 'delete in /a'],
  ['with both actions', [city('update delete')], 'replace /a m1/Lamp power', 'allowed'],
  ['a notification', [city('notify')], 'notify /a m1/Lamp power', 'allowed'],
  ['a notification is no creation', [city('create update')], 'notify /a m1/Lamp power', 'notify in /a'],
  ['a notified deletion', [city('notify')], 'notifyDeletion /a m1/Lamp', 'allowed'],

  ['an id', [city('update', { ids: ['m1'] })], 'update /a m1/Lamp power', 'allowed'],
  ['another id', [city('update', { ids: ['m1'] })], 'update /a m2/Lamp power', 'update of m2/Lamp in /a'],
  ['an attribute', [city('update', { attributes: ['power'] })], 'update /a m1/Lamp power', 'allowed'],
  [
    'another attribute',
    [city('update', { attributes: ['power'] })],
    'update /a m1/Lamp power,cost,name',
    'update of attribute cost of m1/Lamp in /a',
  ],
  [
    'an excluded attribute',
    [city('update', { attributes: ['*', '!cost'] })],
    'update /a m1/Lamp power,cost',
    'update of attribute cost of m1/Lamp in /a',
  ],
  [
    'attributes of two rules in one request',
    [city('update', { attributes: ['power'] }), city('update', { types: ['Lamp'], attributes: ['cost'] })],
    'update /a m1/Lamp power,cost',
    'allowed',
  ],
  [
    'an upsert needs the attribute under both actions',
    [city('create'), city('update', { attributes: ['power'] })],
    'upsert /a m1/Lamp cost',
    'update of attribute cost of m1/Lamp in /a',
  ],
  [
    'a deletion of an attribute',
    [city('delete', { attributes: ['power'] })],
    'deleteAttributes /a m1/Lamp power',
    'allowed',
  ],
  [
    'a deletion means all attributes',
    [city('delete', { attributes: ['power'] })],
    'deleteEntity /a m1/Lamp',
    'delete of all attributes of m1/Lamp in /a',
  ],
  [
    'all but one are not all',
    [city('delete', { attributes: ['*', '!cost'] })],
    'deleteEntity /a m1/Lamp',
    'delete of all attributes of m1/Lamp in /a',
  ],
  [
    'two rules have all together',
    [city('delete', { attributes: ['*', '!cost'] }), city('delete', { attributes: ['cost'] })],
    'deleteEntity /a m1/Lamp',
    'allowed',
  ],
  [
    'a replacement means all attributes',
    [city('update delete', { attributes: ['*', '!cost'] })],
    'replace /a m1/Lamp power',
    'update of all attributes of m1/Lamp in /a',
  ],
  [
    'and the named ones first',
    [city('update delete', { attributes: ['*', '!cost'] })],
    'replace /a m1/Lamp cost',
    'update of attribute cost of m1/Lamp in /a',
  ],
  [
    'a notified deletion means all attributes',
    [city('notify', { attributes: ['power'] })],
    'notifyDeletion /a m1/Lamp',
    'notify of all attributes of m1/Lamp in /a',
  ],
  ['no attributes', [city('create', { attributes: ['power'] })], 'create /a m1/Lamp', 'allowed'],
  ['the whole batch', [gateway], 'update /north m1/Lamp power; m2/Museum power', 'update of m2/Museum in /north'],
  [
    'the first entity and attribute of a batch',
    [city('update', { attributes: ['power'] })],
    'update /a m1/Lamp power; m2/Lamp power,x; m3/Lamp y',
    'update of attribute x of m2/Lamp in /a',
  ],

  ['without a type, where all types are allowed', [city('update')], 'update /a m1 power', 'allowed'],
  ['without a type', [gateway], 'update /north m1 power', 'allowed within Meter, Lamp'],
  [
    'without a type, an attribute that one of the types does not have',
    [city('update', { types: ['Lamp'] }), city('update', { types: ['Meter'], attributes: ['power'] })],
    'update /a m1 cost',
    'update of attribute cost of m1 in /a',
  ],
  [
    'without a type, an attribute that all types have',
    [city('update', { types: ['Lamp'] }), city('update', { types: ['Meter'], attributes: ['power'] })],
    'update /a m1 power',
    'allowed within Lamp, Meter',
  ],
  [
    'with a type, the same attribute',
    [city('update', { types: ['Lamp'] }), city('update', { types: ['Meter'], attributes: ['power'] })],
    'update /a m1/Lamp cost',
    'allowed',
  ],
  [
    'without a type, an id that no rule has',
    [city('update', { ids: ['m1'] })],
    'update /a m2 power',
    'update of m2 in /a',
  ],
  [
    'without a type, two rules have all together',
    [city('delete', { attributes: ['*', '!cost'] }), city('delete', { ids: ['m1'], attributes: ['cost', 'power'] })],
    'deleteEntity /a m1',
    'allowed within any',
  ],
  [
    'without a type, rules of one type do not have all of the others',
    [city('delete', { attributes: ['*', '!cost'] }), city('delete', { types: ['Lamp'], attributes: ['cost'] })],
    'deleteEntity /a m1',
    'delete of all attributes of m1 in /a',
  ],
  ['without a type, a deletion', [city('delete', { types: ['Lamp'] })], 'deleteEntity /a m1', 'allowed within Lamp'],
  [
    'a creation without a type makes a Thing',
    [city('create', { types: ['Lamp'] }), city('update')],
    'upsert /a m1 power',
    'create of m1 in /a',
  ],
  [
    'a Thing that may be created, and lamps that may be updated',
    [city('create', { types: ['Thing'] }), city('update', { types: ['Lamp'] })],
    'upsert /a m1 power',
    'allowed within Thing, Lamp',
  ],
]

/** Writes to providers in the tenant `city`: what it shows, rules, `kind path id/type attributes`, where it may go. */
export const forwardedWriteCases: readonly (readonly [string, Rules, string, 'to providers' | 'stored only'])[] = [
  ['with a type', [city('update', { types: ['Lamp'] })], 'update /a m1/Lamp power', 'to providers'],
  ['every type, without narrowing', [city('update')], 'update /a m1 power', 'to providers'],
  ['some types', [city('update', { types: ['Lamp', 'Meter'] })], 'update /a m1 power', 'stored only'],
  ['some attributes of every type', [city('update', { attributes: ['power'] })], 'update /a m1 power', 'to providers'],
  ['one id, with every type', [city('update', { ids: ['m1'] })], 'update /a m1 power', 'to providers'],
  ['a pattern', [city('update', { ids: [{ pattern: '^m' }] })], 'update /a m1 power', 'to providers'],
  [
    'every type of another id',
    [city('update', { ids: ['m2'] }), city('update', { types: ['Lamp'] })],
    'update /a m1 power',
    'stored only',
  ],
  [
    'every type in another path',
    [city('update', { paths: ['/b/#'] }), city('update', { types: ['Lamp'] })],
    'update /a m1 power',
    'stored only',
  ],
  [
    'every type, and more of lamps',
    [city('update', { attributes: ['power'] }), city('update', { types: ['Lamp'] })],
    'update /a m1 power',
    'to providers',
  ],
  [
    'every type for one of two actions',
    [city('update'), city('delete', { types: ['Lamp'] })],
    'replace /a m1 power',
    'stored only',
  ],
  [
    'every type for both, of one id and of one path',
    [city('update', { ids: ['m1'] }), city('delete', { paths: ['/a'] })],
    'replace /a m1 power',
    'to providers',
  ],
]

/**
 * Subscriptions in the tenant `city`: purpose of the row, rules, the subject with its service path, and `allowed` or
 * the text of the refusal.
 */
export const subscriptionCases: readonly (readonly [string, Rules, string, JsonObject, string])[] = [
  ['everything', [city('subscribe')], '/#', { entities: [{ idPattern: '.*' }] }, 'allowed'],
  [
    'a path without rules',
    [city('subscribe', { paths: ['/a'] })],
    '/b',
    { entities: [{ idPattern: '.*' }] },
    'subscribe in /b',
  ],
  ['a wider path is cut', [city('subscribe', { paths: ['/a'] })], '/#', { entities: [{ idPattern: '.*' }] }, 'allowed'],
  [
    'types without rules are never notified',
    [city('subscribe', { types: ['Lamp'] })],
    '/#',
    { entities: [{ idPattern: '.*', type: 'Museum' }] },
    'allowed',
  ],
  [
    'attributes of the condition',
    [city('subscribe', { attributes: ['name'] })],
    '/#',
    { entities: [{ idPattern: '.*' }], condition: { attrs: ['name', 'cost'] } },
    'condition.attrs on attribute cost in /#',
  ],
  [
    'a q',
    [city('subscribe', { attributes: ['name'] })],
    '/#',
    { entities: [{ idPattern: '.*' }], condition: { expression: { q: 'cost>5' } } },
    'q on attribute cost in /#',
  ],
  [
    'an mq',
    [city('subscribe', { attributes: ['name'] })],
    '/#',
    { entities: [{ idPattern: '.*' }], condition: { expression: { mq: 'cost.unit==EUR' } } },
    'mq on attribute cost in /#',
  ],
  [
    'a q on what all its entities show',
    [city('subscribe', { attributes: ['name'] }), city('subscribe', { types: ['Lamp'] })],
    '/#',
    { entities: [{ idPattern: '.*', type: 'Lamp' }], condition: { attrs: ['cost'], expression: { q: 'cost>5' } } },
    'allowed',
  ],
  [
    'a q where one element may be of any type',
    [city('subscribe', { attributes: ['name'] }), city('subscribe', { types: ['Lamp'] })],
    '/#',
    { entities: [{ idPattern: '.*', type: 'Lamp' }, { id: 'm1' }], condition: { expression: { q: 'cost>5' } } },
    'q on attribute cost in /#',
  ],
  [
    'a q with a pattern of types that no narrowed rule has',
    [city('subscribe', { types: ['Museum'], attributes: ['name'] }), city('subscribe', { types: ['Lamp'] })],
    '/#',
    { entities: [{ idPattern: '.*', typePattern: '^La' }], condition: { expression: { q: 'cost>5' } } },
    'allowed',
  ],
  [
    'a q with the ids that show it',
    [city('subscribe', { ids: ['m1'], attributes: ['name'] }), city('subscribe', { ids: ['m2'] })],
    '/#',
    { entities: [{ id: 'm2' }], condition: { expression: { q: 'cost>5' } } },
    'allowed',
  ],
]

/**
 * Registrations in `/a` of `city`: purpose of the row, rules, `dataProvided`, and `allowed` or the text of the refusal.
 */
export const registrationCases: readonly (readonly [string, Rules, JsonObject, string])[] = [
  ['everything', [city('register')], { entities: [{ idPattern: '.*' }] }, 'allowed'],
  ['in a path without rules', [city('register', { paths: ['/b'] })], { entities: [{ id: 'm1' }] }, 'register in /a'],
  ['a type', [city('register', { types: ['Lamp'] })], { entities: [{ idPattern: '.*', type: 'Lamp' }] }, 'allowed'],
  ['any type', [city('register', { types: ['Lamp'] })], { entities: [{ id: 'm1' }] }, 'register of m1 in /a'],
  ['an id', [city('register', { ids: ['m1'] })], { entities: [{ id: 'm1', type: 'Lamp' }] }, 'allowed'],
  [
    'an id of a pattern',
    [city('register', { ids: [{ pattern: '^m' }] })],
    { entities: [{ id: 'm1', type: 'Lamp' }] },
    'allowed',
  ],
  [
    'every id',
    [city('register', { ids: [{ pattern: '.*' }] })],
    { entities: [{ idPattern: '.*', type: 'Lamp' }] },
    'register of .*/Lamp in /a',
  ],
  [
    'the second element',
    [city('register', { types: ['Lamp'] })],
    {
      entities: [
        { id: 'm1', type: 'Lamp' },
        { id: 'm2', type: 'Museum' },
      ],
    },
    'register of m2/Museum in /a',
  ],
  [
    'all attributes',
    [city('register', { attributes: ['*', '!cost'] })],
    { entities: [{ id: 'm1', type: 'Lamp' }] },
    'register of all attributes of m1/Lamp in /a',
  ],
  [
    'listed attributes',
    [city('register', { attributes: ['*', '!cost'] })],
    { entities: [{ id: 'm1', type: 'Lamp' }], attrs: ['name', 'power'] },
    'allowed',
  ],
  [
    'an attribute that is not allowed',
    [city('register', { attributes: ['*', '!cost'] })],
    { entities: [{ id: 'm1', type: 'Lamp' }], attrs: ['name', 'cost'] },
    'register of attribute cost of m1/Lamp in /a',
  ],
  [
    'rules for a part of the ids do not add up to all',
    [city('register', { ids: [{ pattern: '^a' }] }), city('register', { ids: [{ pattern: '^[^a]' }] })],
    { entities: [{ idPattern: '.*' }] },
    'register of .* in /a',
  ],
]

/** The whole broker: purpose of the row, rules, `admin` or `metrics`, `allowed` or `denied` and the reason. */
export const brokerCases: readonly (readonly [string, Rules, 'admin' | 'metrics', string])[] = [
  ['the operator of the example', [everything], 'admin', 'allowed'],
  ['and metrics', [everything], 'metrics', 'allowed'],
  ['metrics alone', [{ actions: ['metrics'], tenants: ['*'] }], 'metrics', 'allowed'],
  ['metrics are not admin', [{ actions: ['metrics'], tenants: ['*'] }], 'admin', 'denied: action'],
  ['admin is not metrics', [{ actions: ['admin'], tenants: ['*'] }], 'metrics', 'denied: action'],
  ['a rule for the default tenant', [{ actions: ['admin'] }], 'admin', 'denied: tenant'],
  ['a rule for one tenant', [city('*')], 'admin', 'denied: tenant'],
  ['a rule for some paths', [{ ...everything, paths: ['/a/#'] }], 'admin', 'denied: tenant'],
  ['a rule for some types', [{ ...everything, types: ['Lamp'] }], 'admin', 'denied: tenant'],
  ['a rule for some ids', [{ ...everything, ids: ['m1'] }], 'metrics', 'denied: tenant'],
  ['a rule for some attributes', [{ ...everything, attributes: ['*', '!cost'] }], 'admin', 'denied: tenant'],
  ['no rules', [], 'admin', 'denied: roles'],
]
