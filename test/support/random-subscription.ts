// Random bodies of POST on subscriptions, all of them valid. Everything is drawn from one Random, so a seed gives the
// same bodies.

// biome-ignore-all lint/suspicious/noTemplateCurlyInString: macros of notifications look like templates

import type { Json } from '../../src/domain/json.js'
import type { Random } from './random.js'
import { chance, several, shuffled, sometimes, wordsOf } from './random-entity.js'

type Members = Record<string, Json | undefined>

/** An object with its members in any order, without those that are undefined. */
function object(random: Random, members: Members): Json {
  const given = Object.entries(members).filter((member): member is [string, Json] => member[1] !== undefined)
  return Object.fromEntries(shuffled(random, given))
}

const names = wordsOf('temperature pressure a.b __proto__ constructor * dateModified')
const texts = wordsOf('x ${id} a-${temperature}/b %22q%22 é 😀 ${ } 1')
const filters = wordsOf('temperature>20;pressure<3 !a.b a.b==1,2 servicePath~=^/a temperature==1..5')
const metadataFilters = wordsOf('temperature.m a.b.m==1 !pressure.accuracy')
const geometries: [Members, ...Members[]] = [
  { geometry: 'point', coords: '41.4,2.2', georel: 'near;maxDistance:1000' },
  { geometry: 'box', coords: '1,2;3,4', georel: 'coveredBy' },
  { geometry: 'polygon', coords: '0,0;0,5;5,5;0,0', georel: 'intersects' },
]

const someNames = (random: Random): string[] => [...new Set(several(random, 0, 3, () => random.pick(names)))]

const flag = (random: Random) => sometimes(random, 0.6, () => chance(random, 0.5))

function entity(random: Random): Json {
  const byId = chance(random, 0.5) ? { id: `e${random.between(1, 3)}` } : { idPattern: random.pick(['.*', '^e[0-9]']) }
  const byType = random.pick<Members>([{}, { type: random.pick(['T', 'U']) }, { typePattern: '^T' }])
  return object(random, { ...byId, ...byType })
}

function condition(random: Random): Json {
  const geo = sometimes(random, 0.3, () => random.pick(geometries))
  const expression = object(random, {
    q: sometimes(random, 0.4, () => random.pick(filters)),
    mq: sometimes(random, 0.3, () => random.pick(metadataFilters)),
    ...geo,
    foo: 1,
  })
  const types = shuffled(random, wordsOf('entityCreate entityChange entityUpdate entityDelete'))
  return object(random, {
    attrs: sometimes(random, 0.7, () => someNames(random)),
    expression: sometimes(random, 0.7, () => expression),
    alterationTypes: sometimes(random, 0.5, () => types.slice(random.between(0, 4))),
    notifyOnMetadataChange: flag(random),
    foo: null,
  })
}

function value(random: Random, depth = 0): Json {
  const draw = random.between(0, depth > 2 ? 3 : 5)
  if (draw === 0) return random.pick([null, true, false])
  if (draw === 1) return random.pick([0, -1.5, 1e300, 0.1, 12345678901234])
  if (draw < 4) return random.pick([...texts, '<"quoted">'])
  if (draw === 4) return several(random, 0, 3, () => value(random, depth + 1))
  return object(random, Object.fromEntries(someNames(random).map(name => [name, value(random, depth + 1)])))
}

function patchAttribute(random: Random): Json {
  return object(random, {
    type: sometimes(random, 0.5, () => random.pick(['DateTime', 'geo:json', 'Text'])),
    value: sometimes(random, 0.8, () => value(random)),
  })
}

function customBody(random: Random): Members {
  switch (random.between(0, 3)) {
    case 0:
      return {}
    case 1:
      return { payload: random.pick([null, '', 'text ${id}']) }
    case 2:
      return { json: chance(random, 0.5) ? [value(random)] : { a: value(random) } }
    default: {
      const identity = { id: sometimes(random, 0.5, () => 'new:${id}'), type: sometimes(random, 0.5, () => 'T') }
      const attributes = someNames(random).map(name => [name, patchAttribute(random)])
      return { ngsi: object(random, { ...identity, ...Object.fromEntries(attributes) }) }
    }
  }
}

const namedTexts = (random: Random): Json | undefined =>
  sometimes(random, 0.5, () =>
    Object.fromEntries(several(random, 1, 3, () => [random.pick(texts), random.pick([...texts, ''])])),
  )

function transport(random: Random): Members {
  const url = random.pick(['http://h', 'https://[::1]:8443/a', 'http://sink.example:8080/n/é%20'])
  const http = { url, timeout: sometimes(random, 0.5, () => random.between(0, 1_800_000)) }
  const login = chance(random, 0.4) ? { user: 'u', passwd: '(secret)' } : {}
  const mqtt = {
    url: random.pick(['mqtt://h', 'mqtt://h:1884/']),
    topic: 'a/${id}',
    qos: sometimes(random, 0.5, () => random.between(0, 2)),
    retain: flag(random),
    ...login,
  }
  switch (random.between(0, 3)) {
    case 0:
      return { http: object(random, http) }
    case 1: {
      const method = sometimes(random, 0.5, () => random.pick(['GET', 'PUT', 'CONNECT']))
      const custom = { ...http, method, qs: namedTexts(random), headers: namedTexts(random), ...customBody(random) }
      return { httpCustom: object(random, { ...custom, url: random.pick([url, 'http://${a}/${b}']) }) }
    }
    case 2:
      return { mqtt: object(random, mqtt) }
    default:
      return { mqttCustom: object(random, { ...mqtt, ...customBody(random) }) }
  }
}

function notification(random: Random): Json {
  const list = someNames(random)
  const lists = random.pick<Members>([{}, { attrs: list }, list.length > 0 ? { exceptAttrs: list } : {}])
  const isListed = Object.values(lists).some(names => (names as string[]).length > 0)
  const formats = wordsOf('normalized simplifiedNormalized keyValues simplifiedKeyValues values legacy')
  return object(random, {
    ...transport(random),
    ...lists,
    onlyChangedAttrs: flag(random),
    covered: isListed ? flag(random) : undefined,
    metadata: sometimes(random, 0.5, () => someNames(random)),
    attrsFormat: sometimes(random, 0.5, () => random.pick(formats)),
    maxFailsLimit: sometimes(random, 0.5, () => random.between(1, 9)),
    propagateDeletes: flag(random),
  })
}

/** The JSON of a body, with an end in a later century when it has one. */
export function randomBody(random: Random): string {
  return JSON.stringify(
    object(random, {
      description: sometimes(random, 0.5, () => random.pick(['', 'cold rooms', 'Räume 😀'])),
      subject: object(random, {
        entities: several(random, 1, 4, () => entity(random)),
        condition: sometimes(random, 0.8, () => condition(random)),
      }),
      notification: notification(random),
      expires: sometimes(random, 0.4, () => random.pick(['', '2150-01-02T03:04:05.678Z', '2150-06-01'])),
      status: sometimes(random, 0.4, () => random.pick(['active', 'inactive', 'oneshot'])),
      throttling: sometimes(random, 0.4, () => random.between(-1, 100)),
    }),
  )
}
