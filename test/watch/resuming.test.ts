// Where a watch continues after a cut: messages of the broker, and the cursor that is kept of them.

import t from 'tap'
import type { JsonObject } from '../../src/domain/json.js'
import {
  beginning,
  type MessageOutcome,
  pauseAfter,
  pauseMsMax,
  pauseMsMin,
  received,
  reconnecting,
  type WatchState,
} from '../../src/watch/resuming.js'

/** The state after these messages, and the last outcome. */
function after(state: WatchState, ...messages: readonly JsonObject[]): readonly [WatchState, MessageOutcome] {
  let all: readonly [WatchState, MessageOutcome] = [state, { kind: 'none' }]
  for (const message of messages) all = received(all[0], message)
  return all
}

/** The cursor with which the next connection begins. */
const next = (state: WatchState, ...messages: readonly JsonObject[]): string | undefined =>
  reconnecting(after(state, ...messages)[0]).cursor

const watching = (cursor: string): JsonObject => ({ op: 'watching', id: 'watch', cursor })
const event = (kind: string, cursor: string | undefined, members: JsonObject = {}): JsonObject => ({
  op: 'event',
  id: 'watch',
  event: kind,
  ...(cursor !== undefined && { cursor }),
  ...members,
})
const part = event('snapshot', undefined, { data: [] })
const end = event('snapshot', 'end', { end: true, count: 0 })
const gap = event('gap', 'gap', { reason: 'too old' })

t.test('a watch continues after the last cursor', async t => {
  const state = beginning(false, undefined)
  t.equal(next(state), undefined)
  t.equal(next(state, watching('a')), 'a', 'the cursor of the beginning counts before the first event')
  t.equal(next(state, watching('a'), event('entityChange', 'b')), 'b')
  t.equal(next(state, watching('a'), event('bookmark', 'b')), 'b')
  t.equal(next(state, watching('a'), event('entityChange', undefined)), 'a', 'an event without one leaves it')
  t.equal(next(state, watching('a'), gap), 'gap')
  t.equal(next(beginning(false, 'given')), 'given')
})

t.test('a cut within a snapshot begins anew', async t => {
  const state = beginning(true, undefined)
  t.equal(next(state, watching('a')), undefined)
  t.equal(next(state, watching('a'), part, event('bookmark', 'b')), undefined)
  t.equal(next(state, watching('a'), part, end), 'end')
  t.equal(next(state, watching('a'), part, end, event('entityChange', 'c')), 'c')
})

t.test('so does a cut between a gap and the end of its snapshot', async t => {
  const [live] = after(beginning(true, undefined), watching('a'), end)
  t.equal(next(live, gap), undefined)
  t.equal(next(live, gap, part, event('entityChange', 'x')), undefined)
  t.equal(next(live, gap, part, end), 'end')
  const given = beginning(true, 'given')
  t.equal(next(given, watching('given')), 'given')
  t.equal(next(given, watching('given'), gap), undefined)
})

t.test('a watch is anew without a cursor', async t => {
  t.strictSame(after(beginning(true, undefined), watching('a'))[1], { kind: 'begun', isAnew: true })
  t.strictSame(after(beginning(true, 'x'), watching('x'))[1], { kind: 'begun', isAnew: false })
})

const outcomes: readonly (readonly [name: string, message: unknown, outcome: MessageOutcome])[] = [
  [
    'an event has its members in their order',
    event('entityChange', 'c', { data: [], time: 't' }),
    { kind: 'event', event: { kind: 'entityChange', members: { cursor: 'c', data: [], time: 't' } } },
  ],
  [
    'a leave keeps the id of its entity',
    JSON.parse('{"op":"event","id":"watch","event":"entityLeave","entity":{"id":"R1","type":"Room"}}'),
    { kind: 'event', event: { kind: 'entityLeave', members: { id: 'R1', type: 'Room' } } },
  ],
  ['an end gives its reason', event('end', undefined, { reason: 'stopping' }), { kind: 'ending', reason: 'stopping' }],
  [
    'a refusal is for good',
    { op: 'error', id: 'watch', error: 'BadRequest', description: 'no' },
    { kind: 'refused', reason: 'BadRequest: no', isTemporary: false },
  ],
  [
    'or may pass',
    { op: 'error', error: 'Unavailable', description: 'later' },
    { kind: 'refused', reason: 'Unavailable: later', isTemporary: true },
  ],
  ['an answer to something else is nothing', { op: 'pong' }, { kind: 'none' }],
  ...[null, 7, [], {}, { op: 7 }, { op: 'event' }].map(
    message => [`${JSON.stringify(message)} is no message`, message, { kind: 'foreign' }] as const,
  ),
]
for (const [name, message, outcome] of outcomes)
  t.test(name, async t => {
    t.strictSame(received(beginning(false, undefined), message as JsonObject)[1], outcome)
  })

t.test('pauses grow up to a limit, and half of each is chance', async t => {
  t.strictSame(
    [1, 2, 3, 6, 7, 100].map(cuts => pauseAfter(cuts, 0)),
    [125, 250, 500, 4000, 5000, 5000],
  )
  t.equal(pauseAfter(1, 1), pauseMsMin)
  t.equal(pauseAfter(1_000_000, 1), pauseMsMax)
})
