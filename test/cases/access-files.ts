// Access files with faults, and their messages (docs/interface/access.md#the-file).

import type { JsonObject } from '../../src/domain/json.js'

/** Texts that are no JSON, or have a member twice. */
export const syntaxFaults: readonly (readonly [text: string, message: string])[] = [
  ['', 'line 1: the text ends before the JSON does'],
  ['{', 'line 1: a name in double quotes is missing'],
  ['{\n  "roles": {},\n}', 'line 3: a name in double quotes is missing'],
  ['{"roles": {}}\n\n}', 'line 3: there is more text behind the end of the JSON'],
  ['{"roles" {}}', 'line 1: roles: a colon is missing behind the name'],
  ['{"keys": [\n1\n2]}', 'line 3: keys: a comma or ] is missing'],
  ['{"roles": {"a": []\n"b": []}}', 'line 2: roles: a comma or } is missing'],
  ['{"roles": {"a": [{}, nul]}}', 'line 1: roles.a[1]: there is no JSON value'],
  ['{"quotas": {"a": {"entities": 01}}}', 'line 1: quotas.a.entities: there is no JSON value'],
  ['{"roles": {"a": []}, \n"roles": {}}', 'line 2: roles: is there twice'],
  ['{"keys": [{"name": "a", "name": "b"}]}', 'line 1: keys[0].name: is there twice'],
  [
    '{"keys": [{"name": "a\nb"}]}',
    'line 1: keys[0].name: a text does not end, or has a wrong character or escape in it',
  ],
  ['{"anonymous": ["\\x"]}', 'line 1: anonymous[0]: a text does not end, or has a wrong character or escape in it'],
  ['{"anonymous": ["\\ud800"]}', 'line 1: anonymous[0]: a text has half of a surrogate pair'],
  ["{'roles': {}}", 'line 1: a name in double quotes is missing'],
  ['# roles\n{}', 'line 1: there is no JSON value'],
  [`${'{"a":'.repeat(30)}1${'}'.repeat(30)}`, /: nested more than 20 levels deep$/.source],
  ['[]', 'line 1: must be an object'],
  ['null', 'line 1: must be an object'],
]

const hash = 'a'.repeat(64)
const key = { name: 'k', sha256: hash, roles: [] }
const issuer = { issuer: 'https://i', audience: 'a', jwksFile: 'keys.json', algorithms: ['RS256'] }
const rule = { actions: ['read'] }
const roles = { r: [rule] }

const inRule = (parts: JsonObject): JsonObject => ({ roles: { r: [{ ...rule, ...parts }] } })
const inKey = (parts: JsonObject): JsonObject => ({ roles, keys: [{ ...key, ...parts }] })
const inIssuer = (parts: JsonObject): JsonObject => ({ roles, issuers: [{ ...issuer, ...parts }] })

/** Files with a member that is wrong. */
export const memberFaults: readonly (readonly [file: JsonObject, message: string])[] = [
  [
    { role: {} },
    'role: is not known here: the members are anonymous, keys, issuers, certificates, roles, quotas, egress',
  ],
  [{ anonymous: 'r', roles }, 'anonymous: must be a list'],
  [{ anonymous: ['gest'], roles }, 'anonymous: names the role "gest", which is not in roles'],
  [{ anonymous: [true], roles }, 'anonymous[0]: must be a name of at most 256 characters, as a text: put it in quotes'],

  [{ keys: {} }, 'keys: must be a list'],
  [{ keys: ['k'] }, 'keys[0]: must be an object'],
  [{ keys: [{ name: 'k', roles: [] }] }, 'keys[0]: the member sha256 is missing'],
  [inKey({ key: 'ok_secret' }), 'keys[0].key: is not known here: the members are name, sha256, roles, expires'],
  [
    inKey({ sha256: 'ok_secret' }),
    'keys[0].sha256: must be the SHA-256 of the key (64 hexadecimal digits), never the key itself',
  ],
  [
    inKey({ sha256: 12 }),
    'keys[0].sha256: must be the SHA-256 of the key (64 hexadecimal digits), never the key itself',
  ],
  [inKey({ name: '' }), 'keys[0].name: must be a name of at most 256 characters, not ""'],
  [inKey({ name: ' k' }), 'keys[0].name: must be a name of at most 256 characters, not " k"'],
  [inKey({ name: 'a\nb' }), 'keys[0].name: must be a name of at most 256 characters, not "a\\nb"'],
  [
    inKey({ name: 'n'.repeat(257) }),
    `keys[0].name: must be a name of at most 256 characters, not "${'n'.repeat(59)}..."`,
  ],
  [inKey({ name: 'anonymous' }), 'keys[0].name: may not be anonymous: clients that show nothing have this name'],
  [inKey({ roles: ['q'] }), 'keys[0].roles: names the role "q", which is not in roles'],
  [inKey({ roles: 'r' }), 'keys[0].roles: must be a list'],
  [inKey({ expires: 'soon' }), 'keys[0].expires: must be a date as 2027-01-01T00:00:00Z'],
  [inKey({ expires: 1 }), 'keys[0].expires: must be a date as 2027-01-01T00:00:00Z'],
  [{ keys: [key, { ...key, name: 'l' }] }, 'keys[1].sha256: is the hash of another key as well'],
  [{ keys: [key, { ...key, sha256: hash.toUpperCase() }] }, 'keys[1].sha256: is the hash of another key as well'],
  [
    { roles, keys: [key, { ...key, sha256: 'b'.repeat(64), roles: ['r'] }] },
    'keys[1].roles: another key of the name "k" has other roles',
  ],

  [{ issuers: [{}] }, 'issuers[0]: the member issuer is missing'],
  [inIssuer({ algorithms: [] }), 'issuers[0].algorithms: must not be empty: it names the algorithms that are accepted'],
  ...['HS256', 'none', 'rs256'].map(
    word =>
      [
        inIssuer({ algorithms: ['ES256', word] }),
        `issuers[0].algorithms[1]: must be one of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA, not "${word}"`,
      ] as const,
  ),
  [inIssuer({ jwks: 'https://i/certs' }), 'issuers[0]: jwks and jwksFile are both there, one is enough'],
  [
    { issuers: [{ issuer: 'i', audience: 'a', algorithms: ['RS256'] }] },
    'issuers[0]: the member jwks, or jwksFile, is missing',
  ],
  [
    { issuers: [{ issuer: 'i', audience: 'a', algorithms: ['RS256'], jwks: 'file:///keys' }] },
    'issuers[0].jwks: must be an http or https URL, not "file:///keys"',
  ],
  [inIssuer({ subject: 'a..b' }), 'issuers[0].subject: must be the name of a claim, not "a..b"'],
  [inIssuer({ roles: { claim: 'c' } }), 'issuers[0].roles: the member map is missing: it names the role of each value'],
  [
    inIssuer({ roles: { map: { a: 'r' } } }),
    'issuers[0].roles: the member claim is missing: it names the claim with the values',
  ],
  [
    inIssuer({ roles: { claim: 'c', map: { a: 'q' } } }),
    'issuers[0].roles.map: names the role "q", which is not in roles',
  ],
  [inIssuer({ roles: { default: ['q'] } }), 'issuers[0].roles.default: names the role "q", which is not in roles'],
  [inIssuer({ tenants: {} }), 'issuers[0].tenants: the member claim is missing'],
  [{ issuers: [issuer, issuer] }, 'issuers[1].issuer: is there twice'],

  ...['gateway', 'CN=a, O=b', 'CN=a,O', 'URI:', 'EMAIL:a@b'].map(
    text =>
      [
        { certificates: [{ subject: text, roles: [] }] },
        `certificates[0].subject: must be a subject as OpenSSL prints it (RFC 2253, as CN=gateway-9,O=City), or a name as URI:... or DNS:..., not ${JSON.stringify(text)}`,
      ] as const,
  ),
  [
    {
      certificates: [
        { subject: 'CN=a', roles: [] },
        { subject: 'CN=a', roles: [] },
      ],
    },
    'certificates[1].subject: is there twice',
  ],
  [
    { certificates: [{ subject: 'CN=a', roles: ['q'] }] },
    'certificates[0].roles: names the role "q", which is not in roles',
  ],

  [{ roles: [] }, 'roles: must be an object'],
  [{ roles: { r: {} } }, 'roles.r: must be a list'],
  [{ roles: { 'a b': [{}] } }, 'roles["a b"][0]: the member actions is missing'],
  [{ roles: { '': [] } }, 'roles[""]: the name must be a name of at most 256 characters, not ""'],
  [
    inRule({ deny: ['read'] }),
    'roles.r[0].deny: is not known here: the members are actions, tenants, paths, types, ids, attributes',
  ],
  [
    inRule({ actions: ['read', 'raed'] }),
    'roles.r[0].actions[1]: must be one of read, create, update, delete, subscribe, register, notify, stream, history, admin, metrics, *, not "raed"',
  ],
  [inRule({ actions: [] }), 'roles.r[0].actions: must not be empty: it names what the rule allows'],
  [inRule({ actions: 'read' }), 'roles.r[0].actions: must be a list'],
  [inRule({ tenants: [] }), 'roles.r[0].tenants: must not be empty: leave it out for the default tenant'],
  [
    inRule({ tenants: ['a-b'] }),
    'roles.r[0].tenants[0]: must be a name of at most 50 letters, digits and _, not "a-b"',
  ],
  [
    inRule({ tenants: [12] }),
    'roles.r[0].tenants[0]: must be a name of at most 50 letters, digits and _, as a text: put it in quotes',
  ],
  [inRule({ paths: [] }), 'roles.r[0].paths: must not be empty: leave it out for all paths'],
  ...['a', '/a,/b', '/a/#/b', '/a//b', '', '#'].map(
    text =>
      [
        inRule({ paths: ['/x', text] }),
        `roles.r[0].paths[1]: must be one service path, with /# at its end for all below, not ${JSON.stringify(text)}`,
      ] as const,
  ),
  [inRule({ types: [] }), 'roles.r[0].types: must not be empty: leave it out for all types'],
  [inRule({ types: ['*'] }), 'roles.r[0].types[0]: may not be *: leave types out for all of them'],
  [inRule({ types: ['a b'] }), 'roles.r[0].types[0]: must be the type of an entity, not "a b"'],
  [inRule({ ids: [] }), 'roles.r[0].ids: must not be empty: leave it out for all ids'],
  [inRule({ ids: ['*'] }), 'roles.r[0].ids[0]: may not be *: leave ids out for all of them'],
  [
    inRule({ ids: ['a', { pattern: '(' }] }),
    'roles.r[0].ids[1].pattern: must be a regular expression, as idPattern is, not "("',
  ],
  [inRule({ ids: [{ patern: '.' }] }), 'roles.r[0].ids[0].patern: is not known here: the members are pattern'],
  [inRule({ attributes: [] }), 'roles.r[0].attributes: must not be empty: leave it out for all attributes'],
  [
    inRule({ attributes: ['!cost'] }),
    'roles.r[0].attributes: only excludes names: * is missing, if all others are meant',
  ],
  ...['!*', '!', 'a b', ''].map(
    text =>
      [
        inRule({ attributes: ['*', text] }),
        `roles.r[0].attributes[1]: must be the name of an attribute, * for all, or a name with ! before it, not ${JSON.stringify(text)}`,
      ] as const,
  ),
  [
    inRule({ attributes: Array.from({ length: 1001 }, (_, at) => `a${at}`) }),
    'roles.r[0].attributes: has 1001 elements, at most 1000',
  ],
  [
    {
      roles: {
        r: Array.from({ length: 11 }, () => ({ ...rule, ids: Array.from({ length: 100 }, () => ({ pattern: 'a' })) })),
      },
    },
    'roles.r[10].ids[0]: is one pattern too many: a file may have 1000',
  ],
  [
    { roles: { r: [{ ...rule, ids: Array.from({ length: 30 }, () => ({ pattern: '(a|b.){160}' })) }] } },
    'roles.r[0].ids[20]: is too large: all patterns may have 20000 steps together',
  ],

  [{ quotas: { city: 5 } }, 'quotas.city: must be an object'],
  [{ quotas: { city: { entities: -1 } } }, 'quotas.city.entities: must be a whole number, 0 or more'],
  [{ quotas: { city: { entities: 1.5 } } }, 'quotas.city.entities: must be a whole number, 0 or more'],
  [{ quotas: { city: { requestsPerSecond: 0 } } }, 'quotas.city.requestsPerSecond: must be a whole number, 1 or more'],
  [{ quotas: { 'a-b': {} } }, 'quotas.a-b: the name must be a name of at most 50 letters, digits and _, not "a-b"'],
  [{ quotas: { city: {}, City: {} } }, 'quotas.City: is the same name as another one: "city"'],
  [
    { quotas: { city: { users: 1 } } },
    'quotas.city.users: is not known here: the members are entities, subscriptions, registrations, requestsPerSecond, notificationsPerSecond, streams',
  ],

  [{ egress: { allow: [] } }, 'egress.allow: must not be empty: leave it out for everything but link-local addresses'],
  [
    { egress: { deny: ['10.0.0.0/33'] } },
    'egress.deny[0]: must be a host, host:port, an address or a network, not "10.0.0.0/33"',
  ],
]
