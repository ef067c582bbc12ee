// Records of a shard's log: their bytes, and the chain they make.

import t from 'tap'
import {
  beginning,
  decodeRecord,
  encodeRecord,
  type Fragment,
  misfit,
  positionOf,
} from '../../../cluster/replication/log-record.js'
import type { LogPosition } from '../../../cluster/replication/shard-host.js'

const whole: Fragment = { continues: false, continuesPrevious: false }

/** A record behind a position, and the position behind the record. */
function after(
  position: LogPosition,
  text: string,
  epoch = 7,
): { readonly bytes: Buffer; readonly position: LogPosition } {
  const bytes = encodeRecord(3, epoch, position, Buffer.from(text), whole)
  return { bytes, position: positionOf(bytes, decodeRecord(bytes)!) }
}

t.test('a record returns its contents', async t => {
  for (const continues of [true, false])
    for (const continuesPrevious of [true, false]) {
      const bytes = encodeRecord(65_535, 2 ** 50, beginning, Buffer.from('payload'), {
        continues,
        continuesPrevious,
      })
      const record = decodeRecord(bytes)!
      t.match(record, { shard: 65_535, epoch: 2 ** 50, sequence: 1, fragment: { continues, continuesPrevious } })
      t.equal(record.payload.toString(), 'payload')
      t.ok(record.before.equals(beginning.hash))
    }
})

t.test('a record fits behind the one that it was made for', async t => {
  const first = after(beginning, 'a')
  const second = after(first.position, 'b')
  t.equal(misfit(3, beginning, decodeRecord(first.bytes)!), undefined)
  t.equal(misfit(3, first.position, decodeRecord(second.bytes)!), undefined)
  t.match(second.position, { sequence: 2, epoch: 7 })
})

t.test('a record of another past does not fit, though number and epoch do', async t => {
  const first = after(beginning, 'a')
  const other = after(beginning, 'A')
  const second = decodeRecord(after(other.position, 'b').bytes)!
  t.match(misfit(3, first.position, second), /record 2 was appended to another past/)
})

t.test('a record of another shard, number or of an older epoch does not fit', async t => {
  const first = after(beginning, 'a')
  const second = after(first.position, 'b')
  t.match(misfit(4, first.position, decodeRecord(second.bytes)!), /record 2 is of shard 3/)
  t.match(misfit(3, beginning, decodeRecord(second.bytes)!), /record 2 follows record 0/)
  t.match(misfit(3, first.position, decodeRecord(after(first.position, 'b', 6).bytes)!), /epoch 6 after 7/)
})

t.test('every byte of a record is part of the chain', async t => {
  const { bytes, position } = after(beginning, 'some payload')
  for (let at = 0; at < bytes.length; at++) {
    const changed = Buffer.from(bytes)
    changed[at]! ^= 1
    t.notOk(positionOf(changed, position).hash.equals(position.hash), `byte ${at}`)
  }
})

t.test('bytes that are too short or of another version are no record', async t => {
  const { bytes } = after(beginning, '')
  t.equal(decodeRecord(bytes.subarray(0, bytes.length - 1)), undefined)
  t.equal(decodeRecord(Buffer.concat([Buffer.from([2]), bytes.subarray(1)])), undefined)
})
