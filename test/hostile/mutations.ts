// One fault in a request: in its method, path, parameters, headers, or body.
//
// Each function changes a valid draft. A wrong value is wrong in kind, range, length or encoding, or is present twice.
//
// Not here: heads that every HTTP library would refuse (raw-heads).

// biome-ignore-all lint/suspicious/noTemplateCurlyInString: a macro looks like that
// biome-ignore-all lint/suspicious/noControlCharactersInRegex: what is taken out

import { one } from '../support/mutator.js'
import type { Random } from '../support/random.js'
import { type Draft, encodeComponent } from './draft.js'
import { anyNames, copyOf, oddValue, RawJson, writeJson } from './words.js'

type Mutate = (random: Random, draft: Draft) => void

/**
 * Hostile requests never name this tenant alone, nor with characters that a server trims: that would be a valid request
 * for it.
 */
export const vaultTenant = 'vault'

const methods = [
  'GET',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'HEAD',
  'OPTIONS',
  'TRACE',
  'PROPFIND',
  'BREW',
  'get',
  'X'.repeat(300),
]

const otherPaths = [
  '/',
  '//',
  '/v2/',
  '/v2//',
  '/v1/updateContext',
  '/V2/entities',
  '/v2/entities/',
  '/v2/entities//',
  '/v2/entities//attrs',
  '/v2/entities/E1//',
  '/v2/entities/E1/attrs//value',
  '/v2/entities/../subscriptions',
  '/v2/entities/%2e%2e/subscriptions',
  '/v2/entities/..%2f..%2fetc%2fpasswd',
  '/v2/entities/%00',
  '/v2/entities/%',
  '/v2/entities/%zz',
  '/v2/entities/%u0041',
  '/v2/entities/%ff%fe',
  '/v2/entities/%c0%af',
  '/v2/entities/%ed%a0%80',
  '/v2/entities/E1%2Fattrs',
  '/v2/entities/E1%252Fattrs',
  '/v2/entities/E1;a=b',
  '/v2/entities?',
  '/v2/entities?&&&=',
  '/v2/entities?limit=1&limit=2',
  '/v2/entities?q=a==1&q=b==2',
  '/v2/entities?options=keyValues&options=values',
  '/v2/entities?%',
  '/v2/entities?limit=%zz',
  '/v2/entities?q=%ff',
  '/v2/entities?a+b=c+d',
  '/v2/types//',
  '/v2/types/%20',
  '/v2/subscriptions/x',
  '/v2/subscriptions/51c0ac9ed714fb3b37d7d5zz',
  '/v2/subscriptions/51C0AC9ED714FB3B37D7D5A8',
  '/v2/op/query/x',
  '/v2/op/Update',
  '/cluster/drain',
  '/exit',
  '/leak',
  '/exit/password',
  '/console',
  '/favicon.ico',
  '/admin',
  '/log/traceLevel',
  '/log/trace/1-',
  '/log/trace/0-99999999',
  '/log/trace/-',
  '/.git/config',
  '/metrics/',
  '/health',
]

/** Values that are difficult for parameters of this name. */
const oddParams: Readonly<Record<string, readonly string[]>> = {
  limit: ['-1', '0', '1001', '1.5', '1e3', '0x10', '٣', '99999999999999999999', ' 1', '', '1,2', 'NaN'],
  offset: ['-1', '1.5', '99999999999999999999999', '1e9', '', '9007199254740993', '2147483648'],
  options: ['', 'x', 'keyValues,values', ',', 'count,', '__proto__', 'constructor', 'COUNT', 'count '],
  q: [
    '',
    ';',
    ';;',
    'a==',
    '==1',
    'a=5',
    "'a",
    "a=='",
    "'a'b'==1",
    'a==1..',
    'a==..',
    'a==1..2..3',
    'a>1,2',
    'a~=(',
    'a~=[',
    'a~=(((((a*)*)*)*)*)*$',
    'a~=(a|a)*b',
    'a~=a{1000}{1000}',
    'a~=\\1',
    'a~=(?=x)',
    'a~=\\p{L}',
    '!',
    '!!a',
    '.',
    'a.',
    '.a',
    'a..b',
    '__proto__',
    '__proto__.polluted',
    'constructor.prototype.x==1',
    'a:b:c',
    'a==2026-13-99T99:99:99Z',
    'a==1e999',
    'a==\u0000',
    'a<script>',
    'a;'.repeat(1_500),
    `${'a.'.repeat(1_500)}b==1`,
    `a==${'1,'.repeat(1_500)}1`,
    `a~=${'('.repeat(300)}x${')'.repeat(300)}`,
  ],
  mq: ['', 'a', 'a.', 'a.m==', '!a.m', '__proto__.m', 'a.__proto__.b', ';'],
  georel: [
    '',
    'near',
    'near;',
    'near;maxDistance',
    'near;maxDistance:-1',
    'near;maxDistance:1e400',
    'near;maxDistance:NaN',
    'x',
    'coveredBy;x',
  ],
  geometry: ['', 'circle', 'point;x', '__proto__', 'polygon'],
  coords: [
    '',
    ',',
    ';',
    '1',
    '1,2,3',
    '91,181',
    'a,b',
    '1e400,0',
    'NaN,NaN',
    '0,0;'.repeat(1_000),
    '0,0;0,0;0,0;0,0',
    '-0,-0',
  ],
  idPattern: [
    '',
    '(',
    '[',
    '*',
    '(((((.*)*)*)*)*)*',
    '(a+)+$',
    '.{1000}{1000}',
    '\\',
    '(?<=a)b',
    '\\b\\B',
    '[^\\d\\D]',
    '(?i)e',
  ],
  typePattern: ['', '(', '^$', '(x+x+)+y', `${'a?'.repeat(500)}${'a'.repeat(500)}`],
  orderBy: ['', ',', '!', '!!a', 'geo:distance', '!geo:distance', '__proto__', 'a,'.repeat(500), 'a,a'],
  attrs: ['', ',', '*,*', 'a,a', '__proto__', 'a,'.repeat(1_000), '<'],
  metadata: ['', ',', 'x'.repeat(300), '__proto__,constructor'],
  type: ['', ',', 'T,T', 'x'.repeat(257), '<', 'é'],
  id: ['', ',', 'E1,,E2', 'x'.repeat(257), 'é', 'E,'.repeat(1_000)],
  level: ['', 'x', '__proto__', 'INFO,WARN'],
  infoPayloadMaxSize: ['0', '-1', '1e9', '99999999999999999999'],
  lineMaxSize: ['0', '-1', 'x'],
  reset: ['', 'true', 'x'],
}

const tenantValues = [
  '',
  ' ',
  'a b',
  'é',
  'a/b',
  'a,b',
  '../vault',
  'alpha,vault',
  'vault,alpha',
  'vault/alpha',
  'vault%00',
  'vault%20',
  'va%75lt',
  'vault.',
  'vault;',
  'vault-1',
  'vault\x80',
  '\xffvault',
  '"vault"',
  'x'.repeat(50),
  'x'.repeat(51),
  'x'.repeat(5_000),
  '*',
  '#',
  '$where',
  'hasOwnProperty',
  'İ',
]

const servicePathValues = [
  '',
  'a',
  '//',
  '/a//b',
  '/a//',
  '/é',
  '/a b',
  '/#/a',
  '/#/#',
  '/##',
  '#',
  '/..',
  '/../vault',
  '/a,',
  ',',
  '/a,b',
  '/0/1/2/3/4/5/6/7/8/9/10',
  '/0/1/2/3/4/5/6/7/8/9',
  `/${'x'.repeat(50)}`,
  `/${'x'.repeat(51)}`,
  `/${'x/'.repeat(2_000)}`,
  Array.from({ length: 10 }, (_, at) => `/p${at}`).join(','),
  Array.from({ length: 11 }, (_, at) => `/p${at}`).join(','),
  '/a,/a,/a',
  '/constructor/__proto__/#',
]

const oddHeaders: readonly (readonly [string, readonly string[]])[] = [
  [
    'Accept',
    [
      '',
      'text/html',
      'text/plain',
      '*',
      ';',
      'text/plain;q',
      'text/plain;q=',
      'text/plain;q=high',
      'text/plain;x=1',
      'a/b,'.repeat(500),
      '*/*;q=1e400',
      'application/json;q=-1',
      'application/json;charset=utf-16',
    ],
  ],
  [
    'Content-Type',
    [
      '',
      'text/plain',
      'text/xml',
      'application/JSON',
      'application/json; charset=utf-16',
      'application/json;',
      ';',
      'multipart/form-data; boundary=x',
      'application/x-www-form-urlencoded',
      'application/json, text/plain',
      '__proto__',
      'x'.repeat(3_000),
    ],
  ],
  [
    'Ctx-Correlator',
    [
      '',
      'a; cbnotif=1; cbnotif=1; cbfwd=1',
      '; cbnotif=9',
      'x'.repeat(4_000),
      '__proto__',
      'a | b | lvl=FATAL',
      '%0d%0aX: y',
      ';'.repeat(1_000),
    ],
  ],
  [
    'X-Forwarded-For',
    ['', 'x', '127.0.0.1', ' | lvl=FATAL | msg=forged', '::1, ::2', 'a,'.repeat(1_000), '__proto__', '999.999.999.999'],
  ],
  ['X-Real-IP', ['', '__proto__', 'lvl=FATAL', 'x'.repeat(2_000)]],
  ['X-Auth-Token', ['', 'x'.repeat(4_000), '${id}', '"']],
  ['Origin', ['', 'null', '*', 'http://a b', 'x'.repeat(2_000)]],
  ['Access-Control-Request-Method', ['DELETE', 'BREW']],
  ['Ngsiv2-AttrsFormat', ['legacy', 'x', '__proto__']],
  ['Expect', ['100-continue']],
  ['Range', ['bytes=0-1', 'bytes=9-1,-1']],
  ['If-None-Match', ['*']],
  ['Content-Encoding', ['gzip', 'br', 'x']],
  ['Accept-Encoding', ['gzip, br', '*;q=0']],
  ['X-HTTP-Method-Override', ['DELETE']],
  ['Cookie', ['a=b; __proto__=c', 'x'.repeat(4_000)]],
  ['Authorization', ['Basic Og==', 'Bearer x']],
  ['Connection', ['close', 'keep-alive, x']],
  ['Via', ['1.0 a, 1.1 b']],
  ['__proto__', ['x']],
  ['constructor', ['x']],
  ["X!#$%&'*+-.^_`|~", ['x']],
  ['Trailer', ['Ctx-Service']],
  ['Prefer', ['x']],
]

const put = (headers: Draft['headers'], name: string, value: string): void => {
  const at = headers.findIndex(([given]) => given.toLowerCase() === name.toLowerCase())
  if (at < 0) headers.push([name, value])
  else headers[at] = [headers[at]![0], value]
}

/** Removes the characters that would end a header: those are for raw-heads. */
const without = (text: string): string => text.replaceAll(/[\0-\x1f\x7f-\uffff]/g, '').trim()

const onMethod: Mutate = (random, draft) => {
  draft.method = one(random, methods)
}

const onPath: Mutate = (random, draft) => {
  const at = random.between(0, draft.path.length - 1)
  switch (random.between(0, 5)) {
    case 0:
      draft.path.splice(at, 1)
      return
    case 1:
      draft.path.splice(at, 0, one(random, ['', 'v2', 'attrs', 'value', '..']))
      return
    case 2:
      draft.target = one(random, otherPaths)
      draft.params = random.between(0, 1) === 0 ? [] : draft.params
      return
    case 3:
      // The path without encoding, as far as HTTP allows it.
      draft.target = `/${draft.path.join('/').replaceAll(/[^\x21-\x7e]|[?#]/g, '')}${one(random, ['/', '//', '?', '%', '%0', ';', "'", '<', '"', '\\', '^', '{}', '|', '%25', '%2500'])}`
      return
    case 4:
      // Encoded twice, in each byte.
      draft.path[at] = encodeComponent(draft.path[at] ?? '')
      return
    default:
      draft.path[at] = one(random, anyNames)
  }
}

const onParams: Mutate = (random, draft) => {
  const { params } = draft
  switch (random.between(0, 4)) {
    case 0:
      params.push([one(random, anyNames), one(random, anyNames)])
      return
    case 1:
      if (params.length > 0) params.push(one(random, params))
      else params.push(['options', ''])
      return
    case 2:
      if (params.length > 0) params[random.between(0, params.length - 1)]![1] = one(random, anyNames)
      else params.push(['type', one(random, anyNames)])
      return
    default: {
      const name = one(random, Object.keys(oddParams))
      const value = one(random, oddParams[name]!)
      const at = params.findIndex(([given]) => given === name)
      if (at < 0) params.push([name, value])
      else params[at] = [name, value]
      if (name === 'coords' || name === 'georel' || name === 'geometry') addGeo(params, name)
    }
  }
}

/** Adds the other two of the three parameters that belong together. */
function addGeo(params: Draft['params'], name: string): void {
  const usual = { georel: 'near;maxDistance:10', geometry: 'point', coords: '1,2' }
  for (const [other, value] of Object.entries(usual))
    if (other !== name && !params.some(([given]) => given === other)) params.push([other, value])
}

const onHeaders: Mutate = (random, draft) => {
  const { headers } = draft
  switch (random.between(0, 7)) {
    case 0:
      put(headers, 'Ctx-Service', one(random, tenantValues))
      return
    case 1:
      put(headers, 'Ctx-ServicePath', one(random, servicePathValues))
      return
    case 2: {
      // Two tenants: the broker must choose neither.
      const other = one(random, ['Ctx-Service', 'Fiware-Service', 'ctx-service', 'FIWARE-SERVICE'])
      headers.push(['Fiware-Service', 'alpha'], [other, vaultTenant])
      return
    }
    case 3:
      headers.push(['Fiware-ServicePath', '/a'], ['Ctx-ServicePath', one(random, ['/c', '/a/#', '/a'])])
      return
    case 4:
      if (headers.length > 0) headers.push(one(random, headers))
      return
    case 5:
      if (headers.length > 0) headers.splice(random.between(0, headers.length - 1), 1)
      return
    default: {
      const [name, values] = one(random, oddHeaders)
      put(headers, name, without(one(random, values)))
    }
  }
}

/** Changes one place in the tree: its value, its name, or whether it is there. */
const onJson: Mutate = (random, draft) => {
  if (draft.json === undefined) return onParams(random, draft)
  const places = placesOf(draft.json)
  const place = one(random, places)
  if (!place) {
    draft.json = oddValue(random)
    return
  }
  const { within, key } = place
  if (Array.isArray(within)) {
    const at = Number(key)
    if (random.between(0, 3) === 0) within.push(...within.slice(0, 50).map(copyOf))
    else if (random.between(0, 2) === 0) within.splice(at, 1)
    else within[at] = oddValue(random)
    return
  }
  const value = within[key]
  switch (random.between(0, 5)) {
    case 0:
      delete within[key]
      return
    case 1:
      delete within[key]
      define(within, one(random, anyNames), value)
      return
    case 2:
      define(within, one(random, anyNames), oddValue(random))
      return
    default:
      define(within, key, oddValue(random))
  }
}

interface Place {
  readonly within: Record<string, unknown> | unknown[]
  readonly key: string
}

function placesOf(tree: unknown): (Place & { readonly within: Record<string, unknown> })[] {
  const places: Place[] = []
  const walk = (value: unknown): void => {
    if (typeof value !== 'object' || value === null || value instanceof RawJson) return
    for (const [key, member] of Object.entries(value)) {
      places.push({ within: value as Record<string, unknown>, key })
      walk(member)
    }
  }
  walk(tree)
  return places as (Place & { readonly within: Record<string, unknown> })[]
}

/** An assignment to `__proto__` would change the tree instead. */
function define(tree: Record<string, unknown>, key: string, value: unknown): void {
  Object.defineProperty(tree, key, { value, enumerable: true, configurable: true, writable: true })
}

const onBytes: Mutate = (random, draft) => {
  const text = Buffer.from(draft.bytes ?? Buffer.from(draft.json === undefined ? '{"id":"E1"}' : writeJson(draft.json)))
  const at = random.between(0, text.length)
  const insert = (bytes: readonly number[] | string): Buffer =>
    Buffer.concat([text.subarray(0, at), Buffer.from(bytes as string), text.subarray(at)])
  const [empty, blank] = [new Uint8Array(), Buffer.from(' \n\t ')]
  const changes: readonly (() => Uint8Array)[] = [
    () => empty,
    () => blank,
    () => text.subarray(0, at),
    () => text.subarray(at),
    () => insert([0]),
    () => insert([0xff]),
    () => insert([0xc0, 0xaf]),
    () => insert([0xed, 0xa0, 0x80]),
    () => insert([0xf5, 0x80, 0x80, 0x80]),
    () => insert([0xe2, 0x82]),
    () => insert([0xef, 0xbb, 0xbf]),
    () => insert([0x80]),
    () => insert(one(random, ['"', '\\', '{', '}', '[', ']', ',', ':', '\u2028', '\\u', '/**/', "'", '\0'])),
    () => Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), text]),
    () => Buffer.from(text.toString('utf8'), 'utf16le'),
    () => Buffer.concat([text, text]),
    () =>
      Buffer.concat([
        text,
        Buffer.from(one(random, ['x', ',', '}', '\0', '\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n'])),
      ]),
    () => Buffer.concat([Buffer.alloc(random.between(1, 30_000), ' '), text]),
    () => Buffer.from(Array.from({ length: random.between(1, 300) }, () => random.between(0, 255))),
    () => {
      const flipped = Buffer.from(text)
      if (flipped.length > 0) flipped[Math.min(at, flipped.length - 1)]! ^= 1 << random.between(0, 7)
      return flipped
    },
    () => Buffer.from(`{${Array.from({ length: random.between(2, 2_000) }, (_, n) => `"k${n}":${n}`).join(',')}}`),
    () => Buffer.from(`[${'{},'.repeat(random.between(1, 5_000))}{}]`),
    () => Buffer.from(`{"id":"E1","type":"T","a":{"value":"${'x'.repeat(random.between(1, 60_000))}"}}`),
  ]
  draft.bytes = one(random, changes)()
  if (!draft.headers.some(([name]) => name.toLowerCase() === 'content-type'))
    draft.headers.push(['Content-Type', 'application/json'])
}

/** Repeats a member, after or before the first one, with its name plain or escaped. */
const onDuplicates: Mutate = (random, draft) => {
  const text = draft.json === undefined ? '' : writeJson(draft.json)
  const members = [...text.matchAll(/"([\w$]+)":/g)]
  const found = one(random, members)
  if (!found) return onBytes(random, draft)
  const name = found[1]!
  const written =
    random.between(0, 1) === 0 ? name : `\\u${name.charCodeAt(0).toString(16).padStart(4, '0')}${name.slice(1)}`
  const again = `"${written}":${one(random, ['1', 'null', '"x"', '{}'])},`
  draft.bytes = Buffer.from(text.slice(0, found.index) + again + text.slice(found.index))
}

const weighted: readonly Mutate[] = [
  onMethod,
  onPath,
  onPath,
  onParams,
  onParams,
  onParams,
  onHeaders,
  onHeaders,
  onHeaders,
  onJson,
  onJson,
  onJson,
  onJson,
  onJson,
  onBytes,
  onDuplicates,
]

/** Changes a valid draft, mostly at one place. */
export function mutate(random: Random, draft: Draft): void {
  const times = random.between(0, 9)
  for (let left = times < 8 ? 1 : times === 8 ? 2 : random.between(3, 6); left > 0; left--)
    one(random, weighted)(random, draft)
  leaveVaultAlone(draft)
}

/** A mutation may have removed one of two headers that contradict each other. Then this adds two others. */
function leaveVaultAlone({ headers }: Draft): void {
  const given = headers.filter(([name]) => /^(ctx|fiware)-service$/i.test(name)).map(([, value]) => value)
  if (given.length > 0 && given.every(value => value.toLowerCase() === vaultTenant))
    headers.push(['Ctx-Service', 'alpha'], ['Ctx-Service', 'beta'])
}

/** Asks for data of another tenant, by names that are not secret. */
export function hunt(random: Random, documentId: string): Draft {
  const headers: Draft['headers'] = one<Draft['headers']>(random, [
    [],
    [['Ctx-Service', 'alpha']],
    [
      ['Ctx-Service', 'alpha'],
      ['Fiware-Service', vaultTenant],
    ],
    [['Ctx-ServicePath', '/deep/#']],
    [['Ctx-Service', `alpha,${vaultTenant}`]],
    [
      ['Ctx-Service', 'alpha'],
      ['Ctx-Service', vaultTenant],
    ],
    [['Ctx-Service', `${vaultTenant}\x80`]],
    [['Ctx-Service', `\xff${vaultTenant}`]],
    [['X-Ctx-Service', vaultTenant]],
    [['Ctx_Service', vaultTenant]],
  ])
  const params: Draft['params'] = one<Draft['params']>(random, [
    [],
    [['options', 'keyValues']],
    [['attrs', 'dateCreated,servicePath,*']],
    [['idPattern', '.*']],
    [['q', 'note~=.*']],
    [['service', vaultTenant]],
    [['orderBy', 'note']],
  ])
  const path = one(random, [
    ['v2', 'entities', 'known'],
    ['v2', 'entities', 'known', 'attrs', 'note', 'value'],
    ['v2', 'entities'],
    ['v2', 'types'],
    ['v2', 'types', 'Known'],
    ['v2', 'subscriptions'],
    ['v2', 'subscriptions', documentId],
    ['v2', 'subscriptions', documentId, 'deliveries'],
    ['v2', 'registrations'],
    ['statistics'],
    ['cache', 'statistics'],
    ['metrics'],
    ['admin', 'metrics'],
  ])
  const method = random.between(0, 9) === 0 ? 'DELETE' : 'GET'
  return { kind: 'hunt', method, path: [...path], params, headers }
}
