// The log line, byte by byte, and its way out of the process.

import { execFile } from 'node:child_process'
import t from 'tap'
import { type LogLevel, type LogSettings, noTraces } from '../../src/messages/admin.js'
import { type AreaLogger, openLogger } from '../../src/observe/logger.js'

const wallMs = () => Date.UTC(2026, 1, 3, 10, 15, 30, 123)

const lineBytesMax = 2048

const settingsAt = (level: LogLevel): LogSettings => ({
  level,
  infoPayloadBytesMax: 0,
  lineBytesMax,
  deprecate: false,
  traces: noTraces,
})

function logTo(lines: string[], level: LogLevel = 'DEBUG'): AreaLogger {
  return openLogger({ settings: settingsAt(level), write: line => lines.push(line), wallMs })
}

const messages = (lines: readonly string[]): string[] => lines.map(line => line.replace(/^.* \| msg=/, ''))

t.test('a line outside of requests has N/A for the fields of a request', async t => {
  const lines: string[] = []
  logTo(lines).info('Startup completed')
  t.same(lines, [
    'time=2026-02-03T10:15:30.123Z | lvl=INFO | corr=N/A | trans=N/A | from=N/A | srv=N/A | subsrv=N/A | ' +
      'comp=Orrery | op=main | msg=Startup completed',
  ])
})

t.test('a line as JSON has the same fields, without the empty ones', async t => {
  const lines: string[] = []
  const log = openLogger({ settings: settingsAt('INFO'), format: 'json', write: line => lines.push(line), wallMs })
  log.info('a "quoted"\nline')
  log.warn('x', { correlator: 'c-1', from: '10.0.0.1', tenant: '', path: '/a' })
  log.warn('y'.repeat(lineBytesMax))
  const [plain, full, long] = lines.map(line => JSON.parse(line))
  const time = '2026-02-03T10:15:30.123Z'
  t.same(plain, { time, lvl: 'INFO', comp: 'Orrery', op: 'main', msg: 'a "quoted"\nline' })
  t.match(full, { corr: 'c-1', trans: /^\d+-\d{3}-00000000001$/, from: '10.0.0.1', srv: undefined, subsrv: '/a' })
  t.same(long, { ...plain, lvl: 'WARN', msg: 'LINE TOO LONG' })
  t.equal(lines.join('').includes('\n'), false)
})

t.test('a line for human eyes is short', async t => {
  const lines: string[] = []
  openLogger({ settings: settingsAt('INFO'), forHumans: true, write: line => lines.push(line), wallMs })
    .area('storage')
    .info('opened\n')
  t.same(lines, ['INFO@2026-02-03T10:15:30.123Z  storage: opened\\n'])
})

t.test('a file gets the full line even when standard output is for human eyes', async t => {
  const [lines, filed]: [string[], string[]] = [[], []]
  const file = { write: (line: string) => void filed.push(line), flush: () => {}, reopen: () => {} }
  openLogger({ settings: settingsAt('INFO'), forHumans: true, file, write: line => lines.push(line), wallMs }).info('x')
  t.match(filed, [/^time=.* \| msg=x$/])
  t.match(lines, [/^INFO@/])
})

t.test('a summary is written at every level', async t => {
  const lines: string[] = []
  logTo(lines, 'NONE').summary('Transactions: 1')
  t.match(lines, [/ \| lvl=SUMMARY \| .* \| msg=Transactions: 1$/])
})

t.test('lines of one transaction have one number, and each transaction its own', async t => {
  const lines: string[] = []
  const log = logTo(lines)
  const [one, other] = [{ correlator: 'a' }, { correlator: 'b' }]
  for (const context of [one, other, one]) log.info('', context)
  const numbers = lines.map(line => / trans=(\S+) /.exec(line)?.[1])
  t.same(numbers, ['1770113730-123-00000000001', '1770113730-123-00000000002', '1770113730-123-00000000001'])
})

t.test('a line of a request carries its context', async t => {
  const lines: string[] = []
  logTo(lines).warn('x', { correlator: 'c-1', from: '10.0.0.1', tenant: 'smart', path: '/a/#' })
  t.match(
    lines[0],
    'lvl=WARN | corr=c-1 | trans=1770113730-123-00000000001 | from=10.0.0.1 | srv=smart | subsrv=/a/# | comp=Orrery',
  )
})

t.test('headers that a request has not are <none>', async t => {
  const lines: string[] = []
  logTo(lines).warn('x', { correlator: 'c-1', from: '10.0.0.1', tenant: '' })
  t.match(lines[0], ' | srv=<none> | subsrv=<none> | ')
})

const levels: readonly LogLevel[] = ['NONE', 'FATAL', 'ERROR', 'WARN', 'INFO', 'DEBUG']
for (const [index, level] of levels.entries()) {
  t.test(`at ${level} the lines are those of ${levels.slice(1, index + 1).join(', ') || 'no level'}`, async t => {
    const lines: string[] = []
    const log = logTo(lines, level)
    log.fatal('')
    log.error('')
    log.warn('')
    log.info('')
    log.debug('')
    t.same(
      lines.map(line => /lvl=(\w+)/.exec(line)?.[1]),
      levels.slice(1, index + 1),
    )
  })
}

t.test('a level can be changed, for all areas together', async t => {
  const lines: string[] = []
  const log = logTo(lines, 'WARN')
  const storage = log.area('storage')
  log.level = 'INFO'
  storage.info('opened')
  t.equal(storage.level, 'INFO')
  t.match(lines, [/ \| op=storage \| msg=opened$/])
})

t.test('every message is one line', async t => {
  const lines: string[] = []
  logTo(lines).info('a\r\nb\tc\u0000\u001b[31m\u2028 | é')
  t.same(messages(lines), ['a\\r\\nb\\tc\\u0000\\u001b[31m\\u2028 \\u007c é'])
})

t.test('a message cannot forge a field either', async t => {
  const lines: string[] = []
  logTo(lines).warn('Raising alarm BadInput me | lvl=FATAL | msg=all is lost: bad')
  t.match(lines[0], / \| lvl=WARN \| /)
  t.equal(lines[0]!.split(' | ').length, 10)
  t.match(lines[0], /\| msg=Raising alarm BadInput me \\u007c lvl=FATAL \\u007c msg=all is lost: bad$/)
})

t.test('a header cannot forge a field', async t => {
  const lines: string[] = []
  logTo(lines).info('m', { from: '1.2.3.4 | srv=other\n', tenant: 'a', path: '/' })
  t.match(lines[0], 'from=1.2.3.4 \\u007c srv=other\\n | srv=a | ')
})

t.test('a line of the highest length is written, one byte more is not', async t => {
  const lines: string[] = []
  const log = logTo(lines)
  log.info('')
  const room = lineBytesMax - Buffer.byteLength(lines[0] as string)
  log.info('x'.repeat(room))
  log.info('x'.repeat(room + 1))
  log.info(`${'x'.repeat(room - 1)}é`)
  t.equal(lines[1]?.length, lineBytesMax)
  t.same(lines.slice(2), ['LINE TOO LONG', 'LINE TOO LONG'])
})

/** Runs a script with a logger on standard output; returns the messages that it wrote. */
function outputOf(script: string): Promise<string[]> {
  const face = new URL('../../src/observe/logger.js', import.meta.url)
  const source = `import { openLogger } from '${face}'; const log = openLogger({ settings: ${JSON.stringify(settingsAt('INFO'))} }); ${script}`
  return new Promise(resolve => {
    execFile(process.execPath, ['--input-type=module', '-e', source], (_error, stdout) => {
      resolve(messages(stdout.trimEnd().split('\n')))
    })
  })
}

t.test('lines logged before the process exits are written, in order', async t => {
  t.same(await outputOf(`log.info('1'); log.info('2'); log.fatal('3'); log.info('4'); process.exit(1)`), [...'1234'])
})

t.test('lines logged before an exception ends the process are written', async t => {
  t.same(await outputOf(`log.info('1'); log.info('2'); throw new Error('bug')`), [...'12'])
})

t.test('a process that runs out of work has written its lines, more than a pipe holds', async t => {
  const lines = await outputOf(
    `for (let i = 0; i < 5000; i++) log.info(String(i)); setImmediate(() => log.info('end'))`,
  )
  t.same(lines, [...Array.from({ length: 5000 }, (_, i) => String(i)), 'end'])
})
