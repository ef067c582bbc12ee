// The writer of the audit log, with a file that fails as the test wants.

import t, { type Test } from 'tap'
import {
  AuditLog,
  type AuditParts,
  auditDelayMs,
  auditProbeMs,
  auditReportMs,
} from '../../src/observe/audit/audit-log.js'
import type { LineFile, Reopened } from '../../src/observe/audit/line-file.js'
import type { AuditEntry } from '../../src/ports.js'
import { FakeClock } from '../support/fake-clock.js'

const entryOf = (id: string): AuditEntry => ({
  ...{ principal: undefined, shown: undefined, address: 'a', peer: undefined, method: 'DELETE', path: '/', query: '' },
  ...{ tenant: '', servicePath: '', status: 204, correlator: 'c', entities: 1, id, isMessage: false },
})

/** A failure of a write, and how many of its bytes are written before. */
interface Failure {
  readonly code: string
  readonly after?: number
}

/** What it holds is one text. Writes end when the test says so. */
class FakeFile implements LineFile {
  readonly name = 'a.log'
  readonly batchBytesMax = 1_000
  text = ''
  failure: Failure | undefined
  next: Reopened = { file: 'same' }
  reopened = 0
  isAnother = false
  isClosed = false
  private ending: (() => void) | undefined

  append(bytes: Uint8Array, onDone: (error: NodeJS.ErrnoException | undefined, written: number) => void): void {
    this.ending = () => {
      const { failure } = this
      const written = failure ? (failure.after ?? 0) : bytes.length
      this.text += Buffer.from(bytes.subarray(0, written)).toString()
      onDone(failure && Object.assign(new Error(failure.code), { code: failure.code }), written)
    }
  }

  appendNow(): void {}

  reopen(onDone: (reopened: Reopened) => void): void {
    this.reopened++
    this.ending = () => onDone(this.next)
  }

  look(onDone: (isAnother: boolean) => void): void {
    onDone(this.isAnother)
  }

  close(): void {
    this.isClosed = true
  }

  get isBusy(): boolean {
    return this.ending !== undefined
  }

  /** Ends the operation that is under way, and those that follow. */
  end(): void {
    for (let { ending } = this; ending; { ending } = this) {
      this.ending = undefined
      ending()
    }
  }

  get ids(): unknown[] {
    return this.text
      .split('\n')
      .filter(line => line !== '')
      .map(idIn)
  }
}

function idIn(line: string): unknown {
  try {
    return (JSON.parse(line) as { id: string }).id
  } catch {
    return 'broken'
  }
}

function scene(t: Test, given: Partial<AuditParts> = {}) {
  const clock = new FakeClock()
  const file = new FakeFile()
  const logged: string[] = []
  const logger = { error: (line: string) => logged.push(line), warn: (line: string) => logged.push(line) }
  const log = new AuditLog({ file, isRequired: false, isMultitenant: true, clock, logger, ...given })
  t.teardown(async () => {
    const closed = log.close()
    file.end()
    await closed
  })
  const add = (...ids: string[]): void => {
    for (const id of ids) log.add(entryOf(id))
  }
  /** Lets the writer begin, and ends what it does. */
  const write = (): void => {
    clock.advance(auditDelayMs)
    file.end()
  }
  return { clock, file, logged, log, add, write }
}

t.test('lines keep their order, and those of 20 ms are written together', async t => {
  const { clock, file, add, log } = scene(t)
  add('1', '2')
  t.equal(file.isBusy, false, 'nothing is written in the turn of a request')
  clock.advance(auditDelayMs)
  add('3')
  t.strictSame(file.ids, [])
  file.end()
  add('4')
  clock.advance(auditDelayMs)
  file.end()
  t.strictSame(file.ids, ['1', '2', '3', '4'])
  t.match(log.numbers(), { written: 4, lost: 0, waitingBytes: 0, isFailing: false })
})

t.test('a write has no more bytes than a batch, and whole lines', async t => {
  const { file, add, write } = scene(t)
  const sizes: number[] = []
  const append = file.append.bind(file)
  file.append = (bytes, onDone) => {
    sizes.push(bytes.length)
    append(bytes, (error, written) => {
      t.ok(file.text.endsWith('\n'))
      onDone(error, written)
    })
  }
  add(...Array.from({ length: 30 }, (_, at) => String(at)))
  write()
  t.ok(sizes.length > 2 && Math.max(...sizes) <= file.batchBytesMax, `${sizes}`)
  t.equal(file.ids.length, 30)
})

t.test('a failed write is tried again each second, with the file opened anew, and no line is lost', async t => {
  const { clock, file, add, write, log, logged } = scene(t)
  file.failure = { code: 'ENOSPC' }
  add('1')
  write()
  t.equal(log.numbers().isFailing, true)
  add('2')
  for (let second = 0; second < 3; second++) {
    const { reopened } = file
    clock.advance(auditProbeMs - 1)
    t.equal(file.isBusy, false)
    clock.advance(1)
    file.end()
    t.equal(file.reopened, reopened + 1)
  }
  file.failure = undefined
  clock.advance(auditProbeMs)
  file.end()
  t.strictSame(file.ids, ['1', '2'])
  t.match(log.numbers(), { written: 2, lost: 0, waitingBytes: 0, isFailing: false })
  t.strictSame(logged, [
    'the audit log a.log cannot be written (ENOSPC): its lines wait in memory',
    'the audit log a.log is written again, 0 of its lines were lost since the start',
  ])
})

t.test('a write that ends in the middle of a line is continued on a fresh line', async t => {
  const { clock, file, add, write, log } = scene(t)
  add('1')
  write()
  const { length } = file.text
  file.failure = { code: 'ENOSPC', after: length + 20 }
  add('2', '3')
  write()
  t.strictSame(file.ids, ['1', '2', 'broken'], 'the line that was written whole counts')
  t.equal(log.numbers().written, 2)
  file.failure = undefined
  clock.advance(auditProbeMs)
  file.end()
  t.strictSame(file.ids, ['1', '2', 'broken', '3'])
  add('4')
  write()
  t.strictSame(file.ids, ['1', '2', 'broken', '3', '4'])
  t.notMatch(file.text, '\n\n')
})

t.test('lines beyond the room are lost, counted, and reported at most once a minute', async t => {
  const { clock, file, add, write, log, logged } = scene(t, { waitingBytesMax: 1_000 })
  file.failure = { code: 'EIO' }
  add('1')
  write()
  logged.length = 0
  add(...Array.from({ length: 20 }, () => 'more'))
  const { lost } = log.numbers()
  t.ok(lost > 5 && lost < 20, `${lost} lines lost`)
  clock.advance(auditProbeMs)
  file.end()
  t.strictSame(logged, [`${lost} lines of the audit log a.log were lost (EIO)`])
  for (let seconds = 0; seconds < 59; seconds++) {
    add('again')
    clock.advance(1_000)
    file.end()
  }
  t.equal(logged.length, 1)
  clock.advance(auditReportMs)
  file.end()
  t.equal(logged.length, 2)
  t.equal(logged[1], '59 lines of the audit log a.log were lost (EIO)')
  file.failure = undefined
  clock.advance(auditProbeMs)
  file.end()
  t.match(logged[2], `is written again, ${lost + 59} of its lines were lost since the start`)
})

t.test('where the log is required, changes are refused from the first failure until a write succeeds', async t => {
  const { clock, file, add, write, log, logged } = scene(t, { isRequired: true })
  t.equal(log.refusesChanges, false)
  file.failure = { code: 'ENOSPC' }
  add('1')
  write()
  t.equal(log.refusesChanges, true)
  t.match(logged, [/: its lines wait in memory, and requests that change something are refused$/])
  clock.advance(auditProbeMs)
  file.end()
  t.equal(log.refusesChanges, true)
  file.failure = undefined
  clock.advance(auditProbeMs)
  file.end()
  t.equal(log.refusesChanges, false)
  t.strictSame(file.ids, ['1'])
})

t.test('and while half of the room is taken, so that lines of requests under way find room', async t => {
  const { clock, file, add, log } = scene(t, { isRequired: true, waitingBytesMax: 1_000 })
  add(...Array.from({ length: 6 }, () => 'slow'))
  t.equal(log.refusesChanges, true)
  clock.advance(auditDelayMs)
  file.end()
  t.equal(log.refusesChanges, false)
})

t.test('the file is opened again between two writes', async t => {
  const { clock, file, add, log } = scene(t)
  add('1')
  clock.advance(auditDelayMs)
  log.reopen()
  t.equal(file.reopened, 0, 'a write is under way')
  file.end()
  t.equal(file.reopened, 1)
  log.reopen()
  t.equal(file.reopened, 2)
  file.end()
})

t.test('another file under the name is noticed without a signal', async t => {
  const { clock, file } = scene(t)
  clock.advance(2_000)
  t.equal(file.reopened, 0)
  file.isAnother = true
  clock.advance(2_000)
  t.equal(file.reopened, 1)
})

t.test('when the new file cannot be opened, a renamed one stays in use, and a deleted one is a failure', async t => {
  const { clock, file, add, write, log, logged } = scene(t, { isRequired: true })
  file.next = { file: 'kept', error: new Error('EACCES') }
  log.reopen()
  file.end()
  t.strictSame(logged, ['the audit log a.log cannot be opened again (EACCES): the old file stays in use'])
  add('1')
  write()
  t.strictSame(file.ids, ['1'])
  file.next = { file: 'lost', error: new Error('ENOENT') }
  log.reopen()
  file.end()
  t.equal(log.refusesChanges, true)
  file.next = { file: 'other' }
  clock.advance(auditProbeMs)
  file.end()
  t.equal(log.refusesChanges, false, 'also if no line waits')
})

t.test('a slow reader of a pipe is no failure', async t => {
  const { clock, file, add, write, log, logged } = scene(t, { isRequired: true })
  file.failure = { code: 'EAGAIN' }
  add('1')
  write()
  t.equal(log.refusesChanges, false)
  file.failure = undefined
  clock.advance(50)
  file.end()
  t.strictSame(file.ids, ['1'])
  t.strictSame(logged, [])
})

t.test('at the end what waits is written, and what cannot be written is reported', async t => {
  const good = scene(t)
  good.add('1', '2')
  const closed = good.log.close()
  good.file.end()
  await closed
  t.strictSame(good.file.ids, ['1', '2'])
  t.equal(good.file.isClosed, true)
  good.add('late')
  t.equal(good.log.numbers().lost, 1)

  const bad = scene(t)
  bad.file.failure = { code: 'ENOSPC' }
  bad.add('1', '2')
  const ended = bad.log.close()
  bad.file.end()
  await ended
  t.equal(bad.log.numbers().lost, 2)
  t.match(bad.logged.at(-1), '2 lines of the audit log a.log were lost (ENOSPC)')
})
