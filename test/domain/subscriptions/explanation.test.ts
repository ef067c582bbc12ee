// The answer to the question why a subscription would or would not trigger for an entity.
import t from 'tap'
import { type ExplainedCondition, explain } from '../../../src/domain/subscriptions/explanation.js'
import {
  noProgress,
  type Subscription,
  type SubscriptionProgress,
} from '../../../src/domain/subscriptions/subscription.js'
import { createdMs, room } from '../../support/events.js'
import { subscription } from '../../support/subscriptions.js'

const wish = (
  condition = '{"attrs":[]}',
  rest = '',
  notification = '',
  entities = '{"idPattern":"^R","type":"Room"}',
) =>
  subscription(
    `{"subject":{"entities":[${entities}],"condition":${condition}},
      "notification":{"http":{"url":"http://h"}${notification}}${rest}}`,
  )

const entity = room('{"temperature":{"value":20},"rooms":{"value":[{"no":1},{"no":2}]},"name":{"value":"cellar"}}')
const nowMs = createdMs + 60_000

const explained = (one: Subscription, progress: SubscriptionProgress = noProgress, path = '/') =>
  explain(one, progress, entity, path, nowMs)

const lines = (conditions: readonly ExplainedCondition[]): string[] =>
  conditions.map(({ condition, holds, text }) => `${holds ? 'yes' : 'no '} ${condition}: ${text}`)

t.test('a plain subscription has its conditions listed in the order in which they are asked', async t => {
  const { fires, reason, conditions } = explained(wish())
  t.equal(fires, true)
  t.equal(reason, 'an attribute of the entity has to change')
  t.strictSame(lines(conditions), [
    'yes alterationTypes: waits for entityCreate, entityChange',
    'yes servicePath: / is within /#',
    'yes attrs: an attribute of the entity has to change',
    'yes entities: R1 of type Room is meant by {"idPattern":"^R","type":"Room"}',
    'yes status: is active',
    'yes expires: never expires',
    'yes throttling: is not throttled',
  ])
})

/** A subscription, its progress, and one line of its explanation. */
const cases: readonly (readonly [Subscription, Partial<SubscriptionProgress>, line: string])[] = [
  [
    wish('{"alterationTypes":["entityCreate"]}'),
    {},
    'no  alterationTypes: waits for entityCreate: the entity is there already',
  ],
  [
    wish('{"alterationTypes":["entityCreate"]}', '', ',"propagateDeletes":true'),
    {},
    'yes alterationTypes: waits for entityCreate, entityDelete',
  ],
  [wish('{"alterationTypes":["entityDelete"]}'), {}, 'yes attrs: a deletion counts, whatever the attributes'],
  [
    wish('{"alterationTypes":["entityUpdate"]}'),
    {},
    'yes attrs: an attribute of the entity has to be named by a request',
  ],
  [
    wish('{"attrs":["temperature","co2"],"notifyOnMetadataChange":false}'),
    {},
    'yes attrs: one of temperature, co2 has to change, other than in metadata; the entity has temperature',
  ],
  [wish('{"attrs":["co2"]}'), {}, 'no  attrs: one of co2 has to change, and the entity has none of them'],
  [
    wish('{"attrs":[]}', '', '', '{"id":"R2"}'),
    {},
    'no  entities: R1 of type Room is meant by no element of subject.entities',
  ],
  [wish('{"attrs":[]}', ',"status":"inactive"'), {}, 'no  status: is inactive'],
  [wish('{"attrs":[]}', ',"status":"oneshot"'), {}, 'yes status: is oneshot'],
  [
    wish('{"attrs":[]}', ',"status":"oneshot"'),
    { spentRevision: 1 },
    'no  status: is inactive: it has fired its one shot',
  ],
  [wish(), { spentRevision: 1 }, 'no  status: is inactive: after too many failures'],
  [wish('{"attrs":[]}', ',"expires":"2024-01-01"'), {}, 'no  expires: expired 2024-01-01T00:00:00.000Z'],
  [wish('{"attrs":[]}', ',"expires":"2030-01-01"'), {}, 'yes expires: expires 2030-01-01T00:00:00.000Z'],
  [wish('{"attrs":[]}', ',"throttling":5'), {}, 'yes throttling: at most once in 5 s: there was no notification yet'],
  [
    wish('{"attrs":[]}', ',"throttling":5'),
    { lastNotificationMs: createdMs },
    'yes throttling: at most once in 5 s: the last notification was 2024-05-01T00:00:00.000Z',
  ],
  [
    wish('{"attrs":[]}', ',"throttling":61'),
    { lastNotificationMs: createdMs },
    'no  throttling: at most once in 61 s: the last notification was 2024-05-01T00:00:00.000Z, the next one may be 2024-05-01T00:01:01.000Z',
  ],
  [wish('{"expression":{"q":"temperature>20"}}'), {}, 'no  q: temperature>20: is 20'],
  [wish('{"expression":{"q":"temperature>10; !co2"}}'), {}, 'yes q: !co2: there is none'],
  [wish('{"expression":{"q":"co2>1"}}'), {}, 'no  q: co2>1: there is none'],
  [wish('{"expression":{"q":"name==cellar;"}}'), {}, "yes q: name==cellar: is 'cellar'"],
  [wish('{"expression":{"q":"rooms"}}'), {}, 'yes q: rooms: is a list of 2'],
  [wish('{"expression":{"q":"rooms.no==2"}}'), {}, 'yes q: rooms.no==2: there are 2'],
  [wish('{"expression":{"q":"rooms.0"}}'), {}, 'yes q: rooms.0: is an object'],
  [wish('{"expression":{"mq":"temperature.unit==x"}}'), {}, 'no  mq: temperature.unit==x: there is none'],
  [
    wish('{"expression":{"mq":"temperature.previousValue>3"}}'),
    {},
    'yes mq: temperature.previousValue>3: the update will tell',
  ],
  [
    wish('{"expression":{"georel":"near;maxDistance:1","geometry":"point","coords":"1,2"}}'),
    {},
    'no  geo: near;maxDistance:1 point 1,2: the entity has no location',
  ],
  [
    wish('{"attrs":[]}', '', ',"attrs":["name","co2"],"onlyChangedAttrs":true'),
    {},
    'yes onlyChangedAttrs: the request has to name one of name',
  ],
  [
    wish('{"attrs":[]}', '', ',"attrs":["co2"],"onlyChangedAttrs":true'),
    {},
    'no  onlyChangedAttrs: none of the attributes to be sent is there',
  ],
]

t.test('each condition reports whether it holds and the values that it found', async t => {
  for (const [one, progress, line] of cases) {
    const { fires, reason, conditions } = explained(one, { ...noProgress, ...progress })
    const shown = lines(conditions)
    t.ok(shown.includes(line), `${line}\n${shown.join('\n')}`)
    t.equal(fires, !line.startsWith('no'), line)
    if (!fires) t.ok(line.endsWith(reason), `the reason is ${reason}`)
  }
})

t.test('throttling reports the time at which it ends', async t => {
  const { conditions } = explained(wish('{"attrs":[]}', ',"throttling":3600'), {
    ...noProgress,
    lastNotificationMs: createdMs,
  })
  t.match(
    conditions.find(({ condition }) => condition === 'throttling'),
    { until: '2024-05-01T01:00:00.000Z' },
  )
})

t.test('a throttling that outlasts all dates has an end all the same', async t => {
  const { conditions } = explained(wish('{"attrs":[]}', ',"throttling":9000000000000000'), {
    ...noProgress,
    lastNotificationMs: createdMs,
  })
  t.match(
    conditions.find(({ condition }) => condition === 'throttling'),
    { until: '+275760-09-13T00:00:00.000Z' },
  )
})

t.test('a path that is not watched is reported', async t => {
  const one = subscription('{"subject":{"entities":[{"id":"R1"}]},"notification":{"http":{"url":"http://h"}}}', '/a/#')
  t.equal(explained(one, noProgress, '/b').reason, '/b is not within /a/#')
})

t.test('of long texts and lists only the beginning is shown', async t => {
  const attrs = Array.from({ length: 30 }, (_, n) => `"a${n}"`)
  const one = wish(`{"attrs":[${attrs}],"expression":{"q":"name==${'x'.repeat(5000)}"}}`)
  const { conditions } = explained(one)
  t.ok(JSON.stringify(conditions).length < 2000)
  t.match(lines(conditions), [/alterationTypes/, /servicePath/, /a9 and 20 more/])
})

t.test('an explanation is JSON', async t => {
  const shown = explained(wish('{"expression":{"q":"temperature>20"}}', ',"throttling":5'))
  t.strictSame(JSON.parse(JSON.stringify(shown)), shown)
})
