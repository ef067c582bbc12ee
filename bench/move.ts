// A million entities into a data directory and out again: time, memory, and whether both exports are equal.
//
// This file writes the first input, as another program would: with times of creation, and without the rows that only
// Orrery exports. An import of our own export must then give the same bytes again, with another number of workers.
//
// Not pinned to a core, and with the disk's own flushes: these are the times that an operator waits.

import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, createWriteStream, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { residentBytes } from './machine.js'
import type { Subject } from './servers.js'

export interface MoveResult {
  readonly count: number
  readonly imported: Step
  readonly exported: Step
  readonly importedAgain: Step
  /** Whether both exports are the same, byte by byte. */
  readonly isSame: boolean
}

export interface Step {
  readonly seconds: number
  readonly peakBytes: number
}

export interface MoveOptions {
  readonly subject: Subject
  readonly folder: string
  readonly count: number
  readonly say: (line: string) => void
}

const madeMs = Date.UTC(2024, 0)
const lookMs = 100

export async function moving({ subject, folder, count, say }: MoveOptions): Promise<MoveResult> {
  const place = join(folder, `move-${subject.name}`)
  rmSync(place, { recursive: true, force: true })
  mkdirSync(place, { recursive: true })
  const file = (name: string): string => join(place, name)
  await pipeline(lines(count), createWriteStream(file('given.ndjson')))
  const imported = await run(subject, ['import', '-file', file('given.ndjson'), '-dataDir', file('one')])
  say(`imported after ${imported.seconds.toFixed(0)} s`)
  const exported = await run(subject, ['export', '-dataDir', file('one'), '-to', file('one.ndjson')])
  say(`exported after ${exported.seconds.toFixed(0)} s`)
  const again = ['import', '-file', file('one.ndjson'), '-dataDir', file('two'), '-workers', '2']
  const importedAgain = await run(subject, again)
  await run(subject, ['export', '-dataDir', file('two'), '-to', file('two.ndjson')])
  const isSame = (await digest(file('one.ndjson'))) === (await digest(file('two.ndjson')))
  rmSync(place, { recursive: true })
  return { count, imported, exported, importedAgain, isSame }
}

function* lines(count: number): Iterable<string> {
  yield `${JSON.stringify({ 'orrery-export': 1 })}\n`
  for (let n = 0; n < count; n++) {
    const entity = {
      id: `urn:sensor:${((n * 7919) % count).toString().padStart(7, '0')}`,
      type: n % 5 === 0 ? 'Meter' : 'Sensor',
      temperature: { type: 'Number', value: n % 500, metadata: { accuracy: { type: 'Number', value: 0.5 } } },
      status: { type: 'Text', value: `state ${n % 7}`, metadata: {} },
      location: { type: 'geo:json', value: { type: 'Point', coordinates: [n % 180, n % 90] }, metadata: {} },
    }
    const dateCreated = new Date(madeMs + n * 3).toISOString()
    yield `${JSON.stringify({ entity, servicePath: `/plant${n % 8}`, dateCreated })}\n`
  }
  yield `${JSON.stringify({ 'orrery-export-end': 1, entities: count, registrations: 0, subscriptions: 0 })}\n`
}

async function run({ script }: Subject, args: readonly string[]): Promise<Step> {
  const beganMs = performance.now()
  const child = spawn(process.execPath, [script, ...args], { stdio: ['ignore', 'ignore', 'pipe'] })
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  let peakBytes = 0
  const look = setInterval(() => {
    try {
      peakBytes = residentBytes(child.pid as number).peak
    } catch {
      // The process has just ended.
    }
  }, lookMs)
  const [code] = (await once(child, 'close')) as [number | null]
  clearInterval(look)
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}:\n${stderr}`)
  return { seconds: (performance.now() - beganMs) / 1000, peakBytes }
}

async function digest(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer)
  return hash.digest('hex')
}
