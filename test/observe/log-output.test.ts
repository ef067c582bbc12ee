// Log lines on a full disk: they are dropped for a while, and never written to another file. After the terminal is
// closed, they are dropped for ever.

import { spawn, spawnSync } from 'node:child_process'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { openLogOutput } from '../../src/observe/log-output.js'
import { plainly, tempDir } from '../support/broker-process.js'
import { bytesPerMb, noMount, SmallDisk } from '../support/small-disk.js'

const waitMs = 10_000

t.test(
  'a log file on a full disk goes on when there is room, and has its own number as long as it is written',
  { skip: noMount },
  async t => {
    const disk = new SmallDisk(t, 2)
    const path = join(disk.path, 'log')
    const opened: number[] = []
    const output = openLogOutput(() => {
      const fd = openSync(path, 'a')
      opened.push(fd)
      return fd
    })
    output.write('first')
    await until(() => readFileSync(path, 'utf8') === 'first\n')
    disk.fill('others')
    const long = 'x'.repeat(bytesPerMb)
    output.write(long)
    await until(() => opened.length === 2)
    t.not(opened[1], opened[0], 'another number: the first one is closed by who was given it')
    // A file that is opened now may get the number of the closed one: no line may be written to it.
    const bystander = join(disk.path, 'bystander')
    const bystanders = Array.from({ length: 20 }, () => openSync(bystander, 'a'))
    t.equal(bystanders.length, 20)
    disk.remove('others')
    await until(() => {
      output.write('last')
      return readFileSync(path, 'utf8').endsWith('last\n')
    })
    t.equal(readFileSync(bystander, 'utf8'), '')
  },
)

const noScript =
  spawnSync('script', ['--version']).error && 'script (of util-linux) is not there, which makes a terminal'

/**
 * Logs a line every 5 ms, and records the outcomes of its writes to standard output: `1` for success, `0` for failure.
 */
const logging = (module: string, marks: string): string => `
  import fs from 'node:fs'
  const write = fs.write
  fs.write = (fd, ...rest) => {
    const done = rest.pop()
    return write(fd, ...rest, (error, ...more) => {
      if (fd === 1) fs.appendFileSync('${marks}', error ? '0' : '1')
      done(error, ...more)
    })
  }
  const { openLogOutput } = await import('${module}')
  const output = openLogOutput()
  let after = 0
  setTimeout(() => process.exit(1), 20_000).unref()
  process.on('SIGHUP', () => {})
  const timer = setInterval(() => {
    output.write('a line')
    if (fs.readFileSync('${marks}', 'utf8').includes('0') && ++after === 40) {
      clearInterval(timer)
      process.on('exit', () => fs.appendFileSync('${marks}', 'end'))
    }
  }, 5)
`

t.test('a terminal that was closed is written to no more', { skip: noScript ?? false }, async t => {
  const marks = join(tempDir(t), 'marks')
  closeSync(openSync(marks, 'w'))
  const program = join(tempDir(t), 'logging.mjs')
  writeFileSync(program, logging(new URL('../../src/observe/log-output.js', import.meta.url).href, marks))
  const [command, words] = plainly([process.execPath, program])
  const terminal = spawn('script', ['-qfc', [command, ...words].map(word => `'${word}'`).join(' '), '/dev/null'], {
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  await until(() => readFileSync(marks, 'utf8').length > 5)
  terminal.kill('SIGKILL')
  await until(() => readFileSync(marks, 'utf8').endsWith('end'))
  t.match(readFileSync(marks, 'utf8'), /^1+0end$/, 'one write has failed, and none came after it')
})

async function until(holdsNow: () => boolean): Promise<void> {
  const untilMs = performance.now() + waitMs
  while (!holdsNow()) {
    if (performance.now() > untilMs) throw new Error(`waited ${waitMs} ms for ${holdsNow}`)
    await pause(10)
  }
}
