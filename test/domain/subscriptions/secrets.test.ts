// Secrets that are masked where texts are shown.
import t from 'tap'
import {
  hasHiddenName,
  withoutSecretEntries,
  withoutSecretMembers,
  withoutUserinfo,
} from '../../../src/domain/subscriptions/secrets.js'

for (const [text, shown] of [
  ['/a', '/a'],
  ['/a?token=s', '/a?token=*****'],
  ['/a?b=1&api_KEY=s&c', '/a?b=1&api_KEY=*****&c'],
  ['http://h/a?x=token&Secret=a=b', 'http://h/a?x=token&Secret=*****'],
  ['/token=1?a', '/token=1?a'],
] as const)
  t.test(`the target ${text}`, async t => {
    t.equal(withoutSecretEntries(text), shown)
  })

for (const [text, shown] of [
  ['http://u:p@h/x@y', 'http://*****@h/x@y'],
  ['http://u:p@q@h', 'http://*****@h'],
  ['http://h/u:p@x', 'http://h/u:p@x'],
] as const)
  t.test(`the URL ${text}`, async t => {
    t.equal(withoutUserinfo(text), shown)
  })

for (const [text, shown] of [
  ['{"a":"x"}', '{"a":"x"}'],
  ['{"X-Token" : "x\\"y","b":"z"}', '{"X-Token" : "*****","b":"z"}'],
  ['{"my\\/token":"x"}', '{"my\\/token":"*****"}'],
  ['{"password":"cut', '{"password":"*****"'],
  ['{"url":"http://u:p@h/a"}', '{"url":"http://*****@h/a"}'],
  ['{"url":"http:\\/\\/u:p@h/a"}', '{"url":"http:\\/\\/*****@h/a"}'],
  ['{"url":"http://u:cut', '{"url":"http://*****'],
  ['{"url":"http://h/a"}', '{"url":"http://h/a"}'],
] as const)
  t.test(`the JSON ${text}`, async t => {
    t.equal(withoutSecretMembers(text), shown)
  })

t.test('names with escapes are found', async t => {
  t.ok(hasHiddenName('{"\\u0070assword":1}'))
  t.ok(hasHiddenName('{"token\\"":1}'))
  t.notOk(hasHiddenName('{"a\\/b":1}'))
})
