// Many readers of streams that read nothing, beside as many that do: what waits stays within its bounds, and the others
// get every event (docs/interface/live.md#slow-readers). If all of them together may exceed the bound for all readers,
// the broker may close some of those that stop. STALLED_STREAMS sets the number of each.

import t from 'tap'
import { waitingTogetherMax } from '../../src/broker/streams/reader-queue.js'
import { startBroker } from '../support/broker-process.js'
import { type EventData, EventReader, numberIn } from '../support/event-reader.js'

t.setTimeout(600_000)

const count = Number(process.env.STALLED_STREAMS ?? 30)
const entities = 5
const changes = 300
const textLength = 20_000
/** From here on events of a reader are folded: a little more than this waits, with the newest state of each entity. */
const foldedFrom = 256 * 1024
const waitingMax = foldedFrom + (entities + 1) * (textLength + 500)

/** Whether a reader has the last change. */
const isAtEnd = ({ events }: EventReader): boolean =>
  events.some(({ data }) => data.data?.[0] && numberIn(data.data[0], 'n') === changes - 1)

/** Thousands of readers with all texts do not fit into the memory of one process. */
const withoutTexts = (message: EventData): EventData =>
  message.data ? { ...message, data: message.data.map(({ id, type, n }) => ({ id, type, n })) } : message

t.test(`${count} readers that stop delay none of ${count} others`, async t => {
  const broker = await startBroker(t, { args: ['-maxConnections', String(3 * count + 100)] })
  const url = `http://127.0.0.1:${broker.port}`
  const open = (): Promise<readonly EventReader[]> =>
    Promise.all(Array.from({ length: count }, () => EventReader.open(t, `${url}/v2/stream?type=Lamp`)))
  const metric = async (name: string): Promise<number> => {
    const text = await (await fetch(`${url}/metrics`)).text()
    const values = [...text.matchAll(new RegExp(`^${name}(?:{[^}]*})? (\\S+)$`, 'gm'))].map(([, value]) =>
      Number(value),
    )
    return values.reduce((sum, value) => sum + value, 0)
  }
  const stalled = await open()
  for (const reader of stalled) {
    reader.keep = withoutTexts
    reader.pause()
  }
  const others = await open()
  for (const reader of others) reader.keep = withoutTexts
  const text = { value: 'x'.repeat(textLength), type: 'Text' }
  for (let n = 0; n < changes; n++) {
    const response = await fetch(`${url}/v2/entities?options=upsert`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ id: `lamp${n % entities}`, type: 'Lamp', text, n: { value: n } }),
    })
    await response.arrayBuffer()
    if (response.status >= 300) return void t.fail(`status ${response.status}`)
  }
  for (const reader of others) await reader.until('every event', isAtEnd)
  const whole = others.filter(({ events }) => events.filter(({ kind }) => kind.startsWith('entity')).length === changes)
  t.equal(whole.length + others.filter(reader => reader.kinds().includes('coalesced')).length, count)
  t.notOk(
    others.some(({ isClosed }) => isClosed),
    'each reader that reads keeps its connection',
  )
  const closed = await metric('orrery_streams_closed_total')
  t.equal((await metric('orrery_streams')) + closed, 2 * count)
  if (count * waitingMax <= waitingTogetherMax) t.equal(closed, 0, 'no reader has lost its connection')
  const waiting = await metric('orrery_stream_waiting_bytes')
  const left = count - closed
  t.ok(waiting >= left * textLength && waiting <= left * waitingMax, `${waiting} bytes wait for ${left} readers`)
  t.ok((await metric('orrery_stream_coalesced_total')) > 0, 'events were folded')
  for (const reader of stalled) reader.resume()
  const isDone = (reader: EventReader): boolean => reader.isClosed || isAtEnd(reader)
  for (const reader of stalled) await reader.until('the newest state, or the end', isDone)
  t.equal(stalled.filter(isAtEnd).length, left)
  t.equal(await metric('orrery_stream_waiting_bytes'), 0)
})
