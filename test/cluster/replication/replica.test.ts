// A copy that follows a log: it takes records that fit, reads missed ones, and stops where continuing would be a guess.

import t from 'tap'
import type { LogRecord, ReadOutcome } from '../../../cluster/logs/shard-log.js'
import { beginning, decodeRecord, encodeRecord, positionOf } from '../../../cluster/replication/log-record.js'
import { Replica } from '../../../cluster/replication/replica.js'
import { replicationOptionsDefault } from '../../../cluster/replication/replication-options.js'
import type { LogPosition } from '../../../cluster/replication/shard-host.js'
import { Random } from '../../support/random.js'
import { World } from '../simulated-world.js'

const shard = 5

/** A log that a test writes, with a copy that follows it. */
class Scene {
  readonly world = new World(new Random(1))
  readonly records: LogRecord[] = []
  readonly applied: string[] = []
  /** The position up to which the host has written. */
  written: LogPosition | undefined
  readonly stopped: string[] = []
  /** The result of every apply of the host; undefined: success. */
  failure: Error | undefined
  /** Its states when it got ahead of its log, and when it no longer was. */
  readonly turns: string[] = []
  end: LogPosition = beginning
  reads = 0
  /** The outcomes of the next reads, in place of the true ones. */
  readonly lies: ReadOutcome[] = []
  readonly replica: Replica

  constructor(options: { readonly position?: LogPosition | undefined; readonly pageBytesMax?: number } = {}) {
    const { clock } = this.world.process('node')
    const { position = beginning, pageBytesMax = 1000 } = options
    this.replica = new Replica(shard, position, {
      log: {
        read: (_shard, after, bytesMax, onDone) => {
          this.reads++
          clock.endOfTick(() => onDone(this.lies.shift() ?? this.readFrom(after, bytesMax)))
        },
      },
      host: {
        apply: (_shard, payloads, position, onDone) => {
          for (const payload of payloads) this.applied.push(payload.toString())
          this.written = position
          clock.endOfTick(() => onDone(this.failure))
        },
        position: () => this.written,
      },
      clock,
      options: { ...replicationOptionsDefault, pageBytesMax },
      onStopped: (_shard, reason) => this.stopped.push(reason),
      onAhead: () => {
        this.turns.push(this.replica.state)
      },
      onFailure: error => {
        throw error
      },
    })
  }

  private readFrom(after: number, bytesMax: number): ReadOutcome {
    const records: LogRecord[] = []
    let bytes = 0
    for (const record of this.records.filter(({ sequence }) => sequence > after)) {
      if (records.length > 0 && bytes + record.bytes.length > bytesMax) break
      records.push(record)
      bytes += record.bytes.length
    }
    return { kind: 'read', records, last: this.end.sequence, takeover: { epoch: 1, owner: 'other 1' } }
  }

  append(text: string, fragment = { continues: false, continuesPrevious: false }): LogRecord {
    const bytes = encodeRecord(shard, 1, this.end, Buffer.from(text), fragment)
    this.end = positionOf(bytes, decodeRecord(bytes)!)
    const record = { sequence: this.end.sequence, bytes }
    this.records.push(record)
    return record
  }

  settle(): Promise<void> {
    return this.world.run(1000)
  }
}

t.test('reported records are applied in order, and once', async t => {
  const scene = new Scene()
  const appended = ['a', 'b', 'c'].map(text => scene.append(text))
  for (const record of [...appended, ...appended]) scene.replica.onRecord(record)
  await scene.settle()
  t.strictSame(scene.applied, ['a', 'b', 'c'])
  t.equal(scene.replica.applied.sequence, 3)
  t.equal(scene.reads, 0)
})

t.test('missed records are read, page by page', async t => {
  const scene = new Scene({ pageBytesMax: 80 })
  for (const text of ['a', 'b', 'c', 'd']) scene.append(text)
  scene.replica.onRecord(scene.append('e'))
  await scene.settle()
  t.strictSame(scene.applied, ['a', 'b', 'c', 'd', 'e'])
  t.ok(scene.reads > 1)
})

t.test('records that are reported during a read are not lost', async t => {
  const scene = new Scene()
  scene.append('a')
  scene.replica.read()
  scene.replica.onRecord(scene.append('b'))
  await scene.settle()
  t.strictSame(scene.applied, ['a', 'b'])
})

t.test('a payload in several records is one step, and an incomplete one is void', async t => {
  const scene = new Scene()
  for (const record of [
    scene.append('one ', { continues: true, continuesPrevious: false }),
    scene.append('step', { continues: false, continuesPrevious: true }),
    scene.append('broken ', { continues: true, continuesPrevious: false }),
    scene.append('next'),
  ])
    scene.replica.onRecord(record)
  await scene.settle()
  t.strictSame(scene.applied, ['one step', 'next'])
})

t.test('a record that was changed stops the copy at the next one', async t => {
  const scene = new Scene()
  const { sequence, bytes } = scene.append('truth')
  const next = scene.append('next')
  const changed = Buffer.from(bytes)
  changed[changed.length - 1]! ^= 1
  scene.replica.onRecord({ sequence, bytes: changed })
  scene.replica.onRecord(next)
  await scene.settle()
  t.match(scene.stopped, [/another past/])
  t.equal(scene.replica.state, 'stopped')
  t.ok(scene.replica.hasDiverged)
  t.strictSame(scene.applied.length, 1, 'nothing is applied any more')
})

t.test('a copy waits while its log ends before its position, and continues when the log has it again', async t => {
  const scene = new Scene()
  scene.replica.onRecord(scene.append('a'))
  await scene.settle()
  const shorter: ReadOutcome = { kind: 'read', records: [], last: 0, takeover: undefined }
  scene.lies.push(shorter)
  scene.replica.read()
  await scene.settle()
  t.strictSame([scene.replica.state, scene.turns], ['ahead', ['ahead']])
  scene.replica.onRecord(scene.append('b'))
  scene.lies.push(shorter)
  scene.replica.resume()
  await scene.settle()
  t.strictSame([scene.replica.state, scene.applied], ['ahead', ['a']], 'it is as short as before')
  scene.replica.resume()
  await scene.settle()
  t.strictSame([scene.replica.state, scene.turns, scene.applied], ['following', ['ahead', 'following'], ['a', 'b']])
  t.strictSame(scene.stopped, [])
})

t.test('where the log does not reach back any more a snapshot is needed, and then it goes on', async t => {
  const scene = new Scene()
  for (const text of ['a', 'b', 'c']) scene.append(text)
  const after2 = positionOf(scene.records[1]!.bytes, decodeRecord(scene.records[1]!.bytes)!)
  scene.records.splice(0, 2)
  scene.replica.read()
  await scene.settle()
  t.equal(scene.replica.state, 'incomplete')
  scene.replica.restart(after2)
  await scene.settle()
  t.strictSame(scene.applied, ['c'])
})

t.test('a caller that waits for a record is called when it is applied', async t => {
  const scene = new Scene()
  const calls: number[] = []
  for (const sequence of [2, 1]) scene.replica.afterApplied(sequence, () => calls.push(sequence))
  scene.replica.onRecord(scene.append('a'))
  await scene.settle()
  t.strictSame(calls, [1])
  scene.replica.onRecord(scene.append('b'))
  await scene.settle()
  t.strictSame(calls, [1, 2])
})

t.test('catching up returns the latest takeover, after everything is applied', async t => {
  const scene = new Scene()
  for (const text of ['a', 'b']) scene.append(text)
  let known: unknown
  scene.replica.catchUp(caughtUp => {
    known = { ...caughtUp, applied: [...scene.applied] }
  })
  await scene.settle()
  t.match(known, { takeover: { epoch: 1 }, applied: ['a', 'b'] })
})

t.test('a caller during a read waits for the next read, and does not wait for later callers', async t => {
  const scene = new Scene()
  const calls: string[] = []
  const ask = (name: string, then = (): void => {}): void =>
    scene.replica.catchUp(() => {
      calls.push(`${name} after ${scene.reads}`)
      then()
    })
  ask('first', () => ask('fourth'))
  ask('second')
  ask('third')
  await scene.settle()
  t.strictSame(calls, ['first after 1', 'second after 2', 'third after 2', 'fourth after 2'])
})

t.test('an owner reads no more, and answers the callers that still wait', async t => {
  const scene = new Scene()
  const calls: unknown[] = []
  scene.replica.catchUp(() => scene.replica.own())
  scene.replica.catchUp(caughtUp => calls.push(caughtUp))
  await scene.settle()
  t.strictSame(calls, [undefined])
  t.equal(scene.reads, 1)
})

t.test('an owner does not apply records that it has appended itself', async t => {
  const scene = new Scene()
  scene.replica.own()
  const record = scene.append('mine')
  scene.replica.onRecord(record)
  scene.replica.advance(scene.end)
  scene.written = scene.end
  await scene.settle()
  t.strictSame(scene.applied, [])
  scene.replica.disown()
  t.equal(scene.replica.applied.sequence, 1)
  scene.replica.onRecord(scene.append('theirs'))
  await scene.settle()
  t.strictSame(scene.applied, ['theirs'])
})

t.test('a deposed owner continues from the records that its host has written, not from its later appends', async t => {
  const scene = new Scene()
  scene.append('written')
  scene.replica.read()
  await scene.settle()
  scene.replica.own()
  scene.append('half of ', { continues: true, continuesPrevious: false })
  scene.replica.advance(scene.end)
  scene.append('theirs')
  scene.replica.disown()
  await scene.settle()
  t.strictSame(scene.applied, ['written', 'theirs'])
  t.equal(scene.replica.applied.sequence, 3)
  t.strictSame(scene.stopped, [])
})

t.test('a record of another version stops the copy, with a hint to the build that reads it', async t => {
  const scene = new Scene()
  const { sequence, bytes } = scene.append('a')
  bytes[0] = 2
  scene.replica.onRecord({ sequence, bytes })
  await scene.settle()
  t.strictSame(scene.stopped, ['record 1 has version 2, and this build reads version 1: start the build that wrote it'])
  t.notOk(scene.replica.hasDiverged)
  t.strictSame(scene.applied, [])
})

t.test('a record that the host cannot read stops the copy, and not the node', async t => {
  const scene = new Scene()
  scene.failure = Object.assign(new Error('a stored entity has version 9'), { code: 'unreadable' })
  for (const record of ['a', 'b'].map(text => scene.append(text))) scene.replica.onRecord(record)
  await scene.settle()
  t.strictSame(scene.stopped, ['a stored entity has version 9'])
  t.equal(scene.replica.state, 'stopped')
  t.notOk(scene.replica.isBusy)
})
