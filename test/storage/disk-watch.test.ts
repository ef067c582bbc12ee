// The watch on the disk: states with hysteresis, and a reserve that is there when it is needed.

import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import t from 'tap'
import {
  type DiskSight,
  DiskWatch,
  lookAfterMs,
  lookMsMax,
  lookMsMin,
  nextState,
  ReserveFile,
  type RoomState,
  reserveStep,
  roomStates,
} from '../../src/storage/disk-watch.js'
import { FakeClock } from '../support/fake-clock.js'
import { Random } from '../support/random.js'
import { temporaryDirectory } from './store-contract.js'

const mb = 1024 * 1024
const reserveBytes = 64 * mb

/** A fake disk, with a reserve file that takes room. */
class FakeDisk {
  /** Free bytes besides the reserve, if there is one. */
  spareBytes: number
  heldBytes: number
  looks = 0
  failure: Error | undefined

  constructor(spareMb: number, heldMb = 64) {
    this.spareBytes = spareMb * mb
    this.heldBytes = heldMb * mb
  }

  lookNow(): DiskSight {
    this.looks++
    if (this.failure) throw this.failure
    return { freeBytes: this.spareBytes, heldBytes: this.heldBytes }
  }

  async look(): Promise<DiskSight> {
    return this.lookNow()
  }

  giveUpNow(): void {
    this.spareBytes += this.heldBytes
    this.heldBytes = 0
  }

  async giveUp(): Promise<void> {
    this.giveUpNow()
  }

  async hold(bytes: number): Promise<void> {
    this.spareBytes -= bytes - this.heldBytes
    this.heldBytes = bytes
  }
}

/** Waits until the look in flight has ended. */
async function rest(): Promise<void> {
  for (let turns = 0; turns < 5; turns++) await turnOfTheLoop()
}

function watching(disk: FakeDisk, keeper = true) {
  const clock = new FakeClock()
  const reports: string[] = []
  const watch = new DiskWatch({
    disk,
    reserveBytes,
    keeper,
    clock,
    onState: (state, before) => reports.push(`${before} -> ${state}`),
    onFailure: (_, error) => reports.push(error.message),
  })
  /** Makes the watch look again. */
  const look = async (): Promise<void> => {
    await rest()
    clock.advance(lookMsMax)
    await rest()
  }
  return { watch, clock, reports, look }
}

t.test('writes are refused below the reserve, and taken again above twice that', async t => {
  const disk = new FakeDisk(200)
  const { watch, reports, look } = watching(disk)
  watch.begin()
  watch.start()
  for (const [spareMb, isShort] of [
    [64, false],
    [63, true],
    [64, true],
    [128, true],
    [129, false],
    [65, false],
    [63, true],
  ] as const) {
    disk.spareBytes = spareMb * mb
    await look()
    t.equal(watch.isShort, isShort, `${spareMb} MB`)
    t.equal(watch.freeBytes, spareMb * mb)
  }
  t.same(reports, ['ample -> short', 'short -> ample', 'ample -> short'])
  await watch.stop()
})

t.test('the reserve is given up when room is scarce, and made anew when there is some', async t => {
  const disk = new FakeDisk(20)
  const { watch, look } = watching(disk)
  watch.start()
  await look()
  t.match(watch, { isShort: true, isScarce: false })
  t.equal(disk.heldBytes, reserveBytes)
  disk.spareBytes = 10 * mb
  await look()
  t.match(watch, { isShort: true, isScarce: true, isExhausted: false })
  t.equal(disk.heldBytes, 0)
  t.equal(watch.freeBytes, 10 * mb, 'it tells the same room as before')
  disk.spareBytes += 20 * mb
  await look()
  t.equal(disk.heldBytes, 0, 'not yet')
  disk.spareBytes += 2 * mb
  await look()
  await look()
  t.match(watch, { isShort: true, isScarce: false })
  t.equal(disk.heldBytes, reserveBytes)
  t.equal(disk.spareBytes, 32 * mb)
  await watch.stop()
})

t.test('a disk that another program fills at once is not exhausted, because of the reserve', async t => {
  const disk = new FakeDisk(500)
  const { watch, reports, look } = watching(disk)
  watch.start()
  await look()
  disk.spareBytes = 0
  await look()
  t.match(watch, { isScarce: true, isExhausted: false })
  t.same(reports, ['ample -> scarce'])
  disk.spareBytes = 3 * mb
  await look()
  t.equal(watch.isExhausted, true, 'now the reserve is used up as well')
  disk.spareBytes = 7 * mb
  await look()
  t.equal(watch.isExhausted, true)
  disk.spareBytes = 8 * mb
  await look()
  t.equal(watch.isExhausted, false)
  await watch.stop()
})

t.test('a start on a full disk gives the reserve up before the store is opened', async t => {
  const disk = new FakeDisk(0)
  const { watch, reports } = watching(disk)
  watch.begin()
  t.equal(disk.heldBytes, 0)
  t.equal(disk.spareBytes, reserveBytes)
  t.equal(watch.isShort, true)
  t.same(reports, ['ample -> exhausted', 'exhausted -> scarce'].slice(-reports.length))
  t.equal(watch.isExhausted, false)
})

t.test('a start with room keeps the reserve, and one with a smaller option gives up the surplus', async t => {
  const disk = new FakeDisk(100)
  const first = watching(disk)
  first.watch.begin()
  t.equal(disk.heldBytes, reserveBytes)
  disk.heldBytes = 2 * reserveBytes
  watching(disk).watch.begin()
  t.equal(disk.heldBytes, 0)
})

t.test('of several processes only the keeper makes the reserve', async t => {
  const disk = new FakeDisk(500, 0)
  const other = watching(disk, false)
  other.watch.start()
  await other.look()
  t.equal(disk.heldBytes, 0)
  const keeper = watching(disk)
  keeper.watch.start()
  await keeper.look()
  t.equal(disk.heldBytes, reserveBytes)
  await other.watch.stop()
  await keeper.watch.stop()
})

t.test('a caller that waits for room goes on when it is not scarce, and when the watch ends', async t => {
  const disk = new FakeDisk(0)
  const { watch, look } = watching(disk)
  const ran: number[] = []
  watch.afterScarce(() => ran.push(1))
  t.same(ran, [1])
  watch.start()
  await look()
  watch.afterScarce(() => ran.push(2))
  t.same(ran, [1])
  disk.spareBytes = 500 * mb
  await look()
  t.same(ran, [1, 2])
  disk.giveUpNow()
  disk.spareBytes = 70 * mb
  await look()
  watch.afterScarce(() => ran.push(3))
  await watch.stop()
  t.same(ran, [1, 2, 3])
})

t.test('a disk that cannot be looked at is reported once, and changes nothing', async t => {
  const disk = new FakeDisk(10)
  const { watch, reports, look } = watching(disk)
  watch.start()
  await look()
  reports.length = 0
  disk.failure = new Error('no such disk')
  await look()
  await look()
  t.same(reports, ['no such disk'])
  t.equal(watch.isShort, true)
  await watch.stop()
})

t.test('it looks more often the less room there is', async t => {
  const after = (freeMb: number) => lookAfterMs({ freeBytes: freeMb * mb, heldBytes: reserveBytes }, reserveBytes)
  t.equal(after(100_000), lookMsMax)
  t.equal(after(564), 500)
  t.equal(after(64), lookMsMin)
  t.equal(after(0), lookMsMin)
})

t.test('on any disk states keep their promises, and changes of the reserve change no state', async t => {
  const random = Random.fromEnvironment()
  t.comment(`SEED=${random.seed}`)
  let state: RoomState = 'ample'
  let heldBytes = reserveBytes
  let spareBytes = 300 * mb
  for (let step = 0; step < 20_000; step++) {
    spareBytes = Math.max(0, spareBytes + random.between(-20, 20) * mb)
    const room = spareBytes + heldBytes - reserveBytes
    const was = roomStates.indexOf(state)
    state = nextState(state, { freeBytes: spareBytes, heldBytes }, reserveBytes)
    const is = roomStates.indexOf(state)
    if (room < reserveBytes) t.ok(is >= 1) || t.bailout()
    if (room > 2 * reserveBytes) if (is !== 0) return t.fail('it is short though there is room')
    if (was === 0 && is > 0 && room >= reserveBytes) return t.fail('it became short too early')
    const action = reserveStep(state, { freeBytes: spareBytes, heldBytes }, reserveBytes)
    if (action === 'keep') continue
    const wanted = action === 'make' ? reserveBytes : 0
    spareBytes -= wanted - heldBytes
    heldBytes = wanted
    if (spareBytes < 0) return t.fail('the reserve was made though there is no room for it')
    const then = nextState(state, { freeBytes: spareBytes, heldBytes }, reserveBytes)
    if (state !== 'exhausted') if (then !== state) return t.fail(`${action} made ${then} of ${state}`)
    state = then
  }
})

t.test('the reserve takes its room, and leaves nothing behind', async t => {
  const directory = temporaryDirectory(t)
  const file = new ReserveFile(directory)
  const path = join(directory, 'reserve')
  t.equal((await file.look()).heldBytes, 0)
  await file.hold(3 * mb + 5, new AbortController().signal)
  t.equal((await file.look()).heldBytes, 3 * mb + 5)
  t.ok(statSync(path).blocks * 512 >= 3 * mb, 'in real blocks')
  await file.hold(4 * mb, new AbortController().signal)
  t.equal(file.lookNow().heldBytes, 4 * mb, 'it grows')
  await file.giveUp()
  await file.giveUp()
  t.equal(existsSync(path), false)
  const stopped = new AbortController()
  stopped.abort()
  await file.hold(4 * mb, stopped.signal)
  t.equal(file.lookNow().heldBytes, 0, 'not begun when the node stops')
})
