// Alarms: when they are logged, and in which words; and the summary's arithmetic
// (docs/interface/administration.md#alarms, docs/interface/administration.md#summary).

import t from 'tap'
import { Alarms, keysMax, linesPerMinuteMax, Summary } from '../../src/observe/alarms.js'
import type { Logger } from '../../src/ports.js'
import { FakeClock } from '../support/fake-clock.js'

function logTo(lines: string[]): Logger {
  const at = (level: string) => (message: string) => {
    lines.push(`${level} ${message}`)
  }
  return {
    level: 'DEBUG',
    fatal: at('FATAL'),
    error: at('ERROR'),
    warn: at('WARN'),
    info: at('INFO'),
    debug: at('DEBUG'),
    summary: at('SUMMARY'),
  }
}

t.test('an alarm is logged when it is raised and when it is released, and not in between', async t => {
  const lines: string[] = []
  const alarms = new Alarms(logTo(lines), false, new FakeClock())
  alarms.release('BadInput', '10.0.0.1')
  alarms.raise('BadInput', '10.0.0.1', 'empty payload')
  alarms.raise('BadInput', '10.0.0.1', 'another')
  alarms.release('BadInput', '10.0.0.2')
  alarms.release('BadInput', '10.0.0.1')
  t.same(lines, ['WARN Raising alarm BadInput 10.0.0.1: empty payload', 'WARN Releasing alarm BadInput 10.0.0.1'])
})

t.test('of many alarms in a minute some are logged, and then the number of the others', async t => {
  const lines: string[] = []
  const clock = new FakeClock()
  const alarms = new Alarms(logTo(lines), false, clock)
  for (let n = 0; n < 40_000; n++) alarms.raise('BadInput', `client ${n}`, 'bad')
  alarms.raise('ForwardingError', 'h:1', 'another kind has lines of its own')
  t.equal(lines.length, linesPerMinuteMax + 1)
  t.match(alarms.numbers('BadInput'), { raised: 40_000, active: keysMax })
  clock.advance(60_000)
  alarms.raise('BadInput', 'one more', 'bad')
  t.same(lines.slice(-2), [
    `WARN ${40_000 - linesPerMinuteMax} more lines about BadInput alarms were left out`,
    'WARN Raising alarm BadInput one more: bad',
  ])
})

t.test('repetitions are logged with the option', async t => {
  const lines: string[] = []
  const alarms = new Alarms(logTo(lines), true, new FakeClock())
  for (const kind of ['NotificationError', 'DatabaseError'] as const)
    for (const detail of ['a', 'b']) alarms.raise(kind, kind === 'DatabaseError' ? '' : 'h:1/x', detail)
  t.same(lines, [
    'WARN Raising alarm NotificationError h:1/x: a',
    'WARN Repeated NotificationError h:1/x: b',
    'ERROR Raising alarm DatabaseError: a',
    'ERROR Repeated Database Error: b',
  ])
})

t.test('kinds do not touch each other', async t => {
  const alarms = new Alarms(logTo([]), false, new FakeClock())
  alarms.raise('NotificationError', 'h:1', '')
  alarms.release('ForwardingError', 'h:1')
  t.equal(alarms.isActive('NotificationError'), true)
  t.equal(alarms.isActive('ForwardingError'), false)
})

t.test('however many keys there are, the latest are kept', async t => {
  const alarms = new Alarms(logTo([]), false, new FakeClock())
  for (let n = 0; n < keysMax + 5; n++) alarms.raise('BadInput', String(n), '')
  t.match(alarms.numbers('BadInput'), { active: keysMax, raised: keysMax + 5 })
  alarms.release('BadInput', '0')
  alarms.release('BadInput', String(keysMax))
  t.match(alarms.numbers('BadInput'), { active: keysMax - 1, released: 1 })
})

t.test('a summary has six lines, and reports changes since the one before', async t => {
  const lines: string[] = []
  const logger = logTo(lines)
  const clock = new FakeClock()
  const alarms = new Alarms({ ...logger, warn: () => {}, error: () => {} }, false, clock)
  const summary = new Summary(alarms)
  summary.start(5, clock, logger)
  summary.transactions += 3
  alarms.raise('BadInput', 'a', '')
  alarms.raise('BadInput', 'b', '')
  alarms.release('BadInput', 'a')
  clock.advance(4_999)
  t.same(lines, [])
  clock.advance(1)
  t.same(lines.splice(0), [
    'SUMMARY Transactions: 3 (new: 3)',
    'SUMMARY DB status: ok, raised: (total: 0, new: 0), released: (total: 0, new: 0)',
    'SUMMARY Notification failure active alarms: 0, raised: (total: 0, new: 0), released: (total: 0, new: 0)',
    'SUMMARY Forwarding failure active alarms: 0, raised: (total: 0, new: 0), released: (total: 0, new: 0)',
    'SUMMARY MQTT connection failure active alarms: 0, raised: (total: 0, new: 0), released: (total: 0, new: 0)',
    'SUMMARY Bad input active alarms: 1, raised: (total: 2, new: 2), released: (total: 1, new: 1)',
  ])
  summary.transactions += 2
  alarms.raise('DatabaseError', '', '')
  clock.advance(5_000)
  t.match(lines, [
    'SUMMARY Transactions: 5 (new: 2)',
    'SUMMARY DB status: erroneous, raised: (total: 1, new: 1), released: (total: 0, new: 0)',
  ])
  t.equal(lines.at(-1), 'SUMMARY Bad input active alarms: 1, raised: (total: 2, new: 0), released: (total: 1, new: 0)')
  alarms.raise('ClusterLogError', '', '')
  clock.advance(5_000)
  t.match(lines.at(-1), /^SUMMARY Cluster log failure active alarms: 1, /, 'which only nodes of a cluster have')
  summary.stop()
  t.equal(clock.waiting, 0)
})
