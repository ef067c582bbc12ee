// Loaded into each thread of a broker by NODE_OPTIONS. On demand it reports the size of the heap after a collection,
// and whether the prototypes that all objects share are as they were at the start.
//
// It looks ten times a second for a number in the file `ask`, and answers each new one with a file of its own. A broker
// without this file runs the same code.

import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { threadId } from 'node:worker_threads'

const folder = process.env.HOSTILE_INSPECTION
const lookMs = 100

/** The report of a thread about itself. */
export interface Inspection {
  readonly pid: number
  readonly thread: number
  readonly asked: number
  /** Heap and buffers after a collection. */
  readonly heapBytes: number
  readonly rssBytes: number
  /** Prototypes whose shape differs from the one at the start. */
  readonly changed: readonly string[]
}

const shared: Readonly<Record<string, object>> = {
  Object: Object.prototype,
  Array: Array.prototype,
  Function: Function.prototype,
  String: String.prototype,
  Number: Number.prototype,
  Map: Map.prototype,
  Set: Set.prototype,
  Promise: Promise.prototype,
  RegExp: RegExp.prototype,
  Error: Error.prototype,
  Uint8Array: Uint8Array.prototype,
  Buffer: Buffer.prototype,
}

/** The keys of a prototype, with their values and accessors. */
const shapeOf = (prototype: object): readonly unknown[] =>
  Reflect.ownKeys(prototype).flatMap(key => {
    const { value, get, set, writable } = Object.getOwnPropertyDescriptor(prototype, key)!
    return [key, value, get, set, writable]
  })

if (folder !== undefined) {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const shapes = new Map(Object.entries(shared).map(([name, prototype]) => [name, shapeOf(prototype)]))
  let answered = 0
  const answer = (asked: number): void => {
    collect()
    collect()
    const { heapUsed, external, rss } = process.memoryUsage()
    const changed = Object.entries(shared).filter(([name, prototype]) => {
      const [before, now] = [shapes.get(name)!, shapeOf(prototype)]
      return before.length !== now.length || before.some((part, index) => !Object.is(part, now[index]))
    })
    const inspection: Inspection = {
      pid: process.pid,
      thread: threadId,
      asked,
      heapBytes: heapUsed + external,
      rssBytes: rss,
      changed: changed.map(([name]) => name),
    }
    const file = join(folder, `${process.pid}-${threadId}.json`)
    writeFileSync(`${file}.new`, JSON.stringify(inspection))
    renameSync(`${file}.new`, file)
  }
  answer(0)
  setInterval(() => {
    const ask = join(folder, 'ask')
    const asked = existsSync(ask) ? Number(readFileSync(ask, 'utf8')) : 0
    if (asked <= answered) return
    answered = asked
    answer(asked)
  }, lookMs).unref()
}
