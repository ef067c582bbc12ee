// Masks that a client sends back in a PATCH, and the values that they stand for.

// biome-ignore-all lint/suspicious/noTemplateCurlyInString: macros of notifications look like templates

import t from 'tap'
import type { Subscription } from '../../../src/domain/subscriptions/subscription.js'
import { afterPatch, patched, subscription } from '../../support/subscriptions.js'

const custom = (members: string): string => `{"notification":{"httpCustom":{${members}}}}`
const existing = (members: string): Subscription =>
  subscription(`{"subject":{"entities":[{"id":"E"}]},${custom(members).slice(1)}`)
const mqtt = (members: string): string => `{"notification":{"mqtt":{"topic":"t","user":"u",${members}}}}`
const existingMqtt = (members: string): Subscription =>
  subscription(`{"subject":{"entities":[{"id":"E"}]},${mqtt(members).slice(1)}`)

const url = '"url":"http://h:1/a"'
const secrets = '"headers":{"Authorization":"s1","x":"p"},"qs":{"key":"s2","n":"q"}'
const masks = '"headers":{"Authorization":"*****","x":"p"},"qs":{"key":"*****","n":"q"}'

for (const [what, from, to] of [
  ['the same URL', url, url],
  ['another path on the same host', url, '"url":"http://h:1/b?c"'],
  ['the same URL with macros', '"url":"http://${h}/a"', '"url":"http://${h}/a"'],
] as const)
  t.test(`masks keep their values with ${what}`, async t => {
    const { transport } = afterPatch(existing(`${from},${secrets}`), custom(`${to},${masks}`)).notification
    t.match(transport, {
      headers: [
        ['Authorization', 's1'],
        ['x', 'p'],
      ],
      qs: [
        ['key', 's2'],
        ['n', 'q'],
      ],
    })
  })

for (const [what, from, to] of [
  ['another host', url, '"url":"http://evil:1/a"'],
  ['another port', url, '"url":"http://h:2/a"'],
  ['another scheme', url, '"url":"https://h:1/a"'],
  ['a host that begins in the same way', url, '"url":"http://h:1.evil/a"'],
  ['a host from a macro', url, '"url":"http://${h}/a"'],
  ['another path behind a macro', '"url":"http://${h}/a"', '"url":"http://${h}/b"'],
] as const)
  t.test(`masks are refused with ${what}`, async t => {
    const result = patched(existing(`${from},${secrets}`), custom(`${to},${masks}`))
    t.notOk(result.ok)
  })

t.test('the refusal names the field that has to be given', async t => {
  t.match(patched(existing(`${url},${secrets}`), custom(`"url":"http://evil",${masks}`)), {
    refusal: {
      code: 'maskForOtherReceiver',
      field: 'headers Authorization',
    },
  })
})

t.test('a mask without a stored value is a value', async t => {
  const { transport } = afterPatch(
    existing(`${url},${secrets}`),
    custom(`"url":"http://other","headers":{"X-Token":"*****"}`),
  ).notification
  t.match(transport, { headers: [['X-Token', '*****']] })
})

t.test('other values replace the stored ones', async t => {
  const { transport } = afterPatch(
    existing(`${url},${secrets}`),
    custom('"url":"http://other","headers":{"Authorization":"new"}'),
  ).notification
  t.match(transport, { headers: [['Authorization', 'new']], qs: [] })
})

t.test('a masked MQTT password is kept for the same broker and user', async t => {
  const before = existingMqtt('"url":"mqtt://h","passwd":"s"')
  t.match(afterPatch(before, mqtt('"url":"mqtt://h","passwd":"*****","qos":1')).notification.transport, {
    login: { user: 'u', passwd: 's' },
    qos: 1,
  })
  t.notOk(patched(before, mqtt('"url":"mqtt://evil","passwd":"*****"')).ok)
})
