// When a path is announced, and which writes a deletion of tenants waits for.

import t from 'tap'
import { Announcements } from '../../src/broker/announcements.js'
import type { ShardReply } from '../../src/messages/messages.js'

const here = { tenant: 't', path: '/a' }
const there = { tenant: 'u', path: '/a' }
const done: ShardReply = { kind: 'done' }
const ignore = (): void => {}

/** Announcements whose keeper replies when the test calls its callback. */
function scene() {
  const asked: ((reply: ShardReply) => void)[] = []
  return { asked, announcements: new Announcements((_, onReply) => asked.push(onReply)) }
}

t.test('callers that wait for the same path share one announcement', async t => {
  const { asked, announcements } = scene()
  const replies: string[] = []
  announcements.announce(here, ({ kind }) => replies.push(`first ${kind}`))
  announcements.announce(here, ({ kind }) => replies.push(`second ${kind}`))
  t.equal(asked.length, 1)
  t.notOk(announcements.has(here))
  asked[0]!(done)
  t.strictSame(replies, ['first done', 'second done'])
  t.ok(announcements.has(here))
  t.notOk(announcements.has(there))
})

t.test('a path whose announcement failed is announced again', async t => {
  const { asked, announcements } = scene()
  announcements.announce(here, ignore)
  asked[0]!({ kind: 'busy' })
  t.notOk(announcements.has(here))
  announcements.announce(here, ignore)
  t.equal(asked.length, 2)
})

t.test('a tenant is forgotten with all its paths, and others are not', async t => {
  const { asked, announcements } = scene()
  for (const scope of [here, { tenant: 't', path: '/b' }, there]) announcements.announce(scope, ignore)
  for (const reply of asked) reply(done)
  announcements.forget(['t', 'never'], tenants => t.strictSame(tenants, ['t', 'never']))
  t.notOk(announcements.has(here))
  t.notOk(announcements.has({ tenant: 't', path: '/b' }))
  t.ok(announcements.has(there))
})

t.test('a tenant that is being announced is not forgotten', async t => {
  const { announcements } = scene()
  announcements.announce(here, ignore)
  announcements.forget(['t', 'u'], tenants => t.strictSame(tenants, ['u']))
})

t.test('forgetting waits for earlier requests, and not for later ones', async t => {
  const { announcements } = scene()
  const endFirst = announcements.letThrough(ignore)
  const endSecond = announcements.letThrough(ignore)
  const forgotten: (readonly string[] | undefined)[] = []
  announcements.forget(['t'], tenants => forgotten.push(tenants))
  announcements.letThrough(ignore)
  endFirst(done)
  t.strictSame(forgotten, [])
  announcements.forget(['u'], tenants => forgotten.push(tenants))
  t.strictSame(forgotten, [undefined], 'one at a time')
  endSecond(done)
  t.strictSame(forgotten, [undefined, ['t']])
  announcements.letThrough(ignore)(done)
  announcements.forget([], tenants => forgotten.push(tenants))
  t.equal(forgotten.length, 2, 'the one that came between is still on its way')
})
