// The output beside the log, as text and as JSON. A process whose log is JSON prints nothing else.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type LineFormat, logBug, logFailure, logReady } from '../../src/observe/standard-lines.js'
import { plainly, tempDir } from '../support/broker-process.js'
import { root } from '../support/project.js'

function printed(t: Test, format: LineFormat, print: (format: LineFormat) => void): { out: string; err: string } {
  const out = t.capture(process.stdout, 'write')
  const err = t.capture(process.stderr, 'write')
  print(format)
  const answer = { out: String(out()[0]?.args[0] ?? ''), err: String(err()[0]?.args[0] ?? '') }
  out.restore()
  err.restore()
  return answer
}

const pipe: LineFormat = { format: 'pipe', forHumans: false }
const json: LineFormat = { format: 'json', forHumans: false }
const humans: LineFormat = { format: 'json', forHumans: true }
const error = new Error('no')

t.test('as text each line is as it always was', async t => {
  t.same(
    printed(t, pipe, format => logReady(format, 'it is ready')),
    { out: 'it is ready\n', err: '' },
  )
  t.same(
    printed(t, pipe, format => logFailure(format, 'no port')),
    { out: '', err: 'orrery: no port\n' },
  )
  t.same(
    printed(t, pipe, format => logBug(format, error)),
    { out: '', err: `${error.stack}\n` },
  )
})

t.test('as JSON each has the fields of the log', async t => {
  const { out } = printed(t, json, format => logReady(format, 'it is ready'))
  t.match(JSON.parse(out), { time: /^\d{4}-.*Z$/, lvl: 'INFO', comp: 'Orrery', op: 'main', msg: 'it is ready' })
  const failure = printed(t, json, format => logFailure(format, 'no port'))
  t.match(JSON.parse(failure.err), { lvl: 'FATAL', msg: 'no port' })
  const bug = printed(t, json, format => logBug(format, error))
  t.match(JSON.parse(bug.err), { lvl: 'FATAL', msg: `Runtime Error (${error.stack})` })
})

t.test('for human eyes standard output is text, and standard error is not', async t => {
  t.equal(printed(t, humans, format => logReady(format, 'it is ready')).out, 'it is ready\n')
  t.match(JSON.parse(printed(t, humans, format => logFailure(format, 'no port')).err), { msg: 'no port' })
})

/**
 * Logs more than is kept for a slow reader, causes a warning of Node, and ends with a bug. Lines are long, so that few
 * suffice.
 */
const program = (folder: string): string => `
  const { openLog } = await import('${root}/dist/src/observe/logger.js')
  const { logNodeLines } = await import('${root}/dist/src/observe/standard-lines.js')
  const logging = { format: 'json', forHumans: false, file: { directory: '${folder}', append: false } }
  logNodeLines(logging)
  const logger = openLog(logging, { level: 'WARN', lineBytesMax: 4194304 }, true)
  for (let n = 0; n < 10; n++) logger.warn('x'.repeat(4000000))
  logger.fatal('flushed')
  process.emitWarning('beware')
  setImmediate(() => { throw new Error('a bug') })
`

t.test('a process whose log is JSON writes JSON only, lost lines, warnings and bugs included', async t => {
  const folder = tempDir(t)
  const words = [process.execPath, '--input-type=module', '-e', program(folder)]
  const child = spawn(...plainly(words), { stdio: ['ignore', 'ignore', 'pipe'] })
  let printedText = ''
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    printedText += text
  })
  t.same(await once(child, 'close'), [1, null], printedText)
  const text = readFileSync(join(folder, 'contextBroker.log'), 'utf8') + printedText
  const messages = text
    .split('\n')
    .filter(Boolean)
    .map(line => (JSON.parse(line) as { msg: string }).msg)
  t.ok(messages.some(message => /^\d+ LINES LOST$/.test(message)))
  t.ok(messages.includes('Warning: beware'))
  t.ok(messages.some(message => message.startsWith('Runtime Error (Error: a bug')))
})
