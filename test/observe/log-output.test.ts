// Where log lines go when the disk is full: nowhere, for a while, and never into another file.

import { openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { openLogOutput } from '../../src/observe/log-output.js'
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
    // Whoever opens a file now may get the number that was closed: no line may come to stand in it.
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

async function until(holdsNow: () => boolean): Promise<void> {
  const untilMs = performance.now() + waitMs
  while (!holdsNow()) {
    if (performance.now() > untilMs) throw new Error(`waited ${waitMs} ms for ${holdsNow}`)
    await pause(10)
  }
}
