// Looks into a broker under attack: its threads report their heap and their prototypes (inspection-preload.ts), and its
// log must have only the lines of a log.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Inspection } from './inspection-preload.js'

/** The longest wait for the threads of the broker. */
const inspectionWaitMs = 30_000
const lookMs = 20

export class Inspector {
  /** The heap of all threads together after each inspection, in bytes. */
  readonly heaps: number[] = []
  private asked = 0
  private partialLine = ''

  /** `folder`: the threads report into it. `onProblem`: called with a sentence. */
  constructor(
    private readonly folder: string,
    private readonly onProblem: (problem: string) => void,
  ) {
    mkdirSync(folder)
  }

  /** The start options of a broker that reports. */
  get process(): { readonly wrapper: string[]; readonly env: Readonly<Record<string, string>> } {
    const preload = new URL('./inspection-preload.js', import.meta.url)
    return { wrapper: ['env', `NODE_OPTIONS=--import ${preload}`], env: { HOSTILE_INSPECTION: this.folder } }
  }

  /** Asks each thread for its heap and its prototypes. */
  async inspect(): Promise<void> {
    this.asked++
    writeFileSync(join(this.folder, 'ask'), String(this.asked))
    const untilMs = performance.now() + inspectionWaitMs
    let all: Inspection[] = []
    do {
      await pause(lookMs)
      all = readdirSync(this.folder)
        .filter(name => name.endsWith('.json'))
        .map(name => JSON.parse(readFileSync(join(this.folder, name), 'utf8')) as Inspection)
    } while (all.some(({ asked }) => asked < this.asked) && performance.now() < untilMs)
    const silent = all.filter(({ asked }) => asked < this.asked)
    if (silent.length > 0) this.onProblem(`${silent.length} of ${all.length} threads do not answer`)
    for (const { changed } of all) if (changed.length > 0) this.onProblem(`prototypes have changed: ${changed.join()}`)
    this.heaps.push(all.reduce((sum, { heapBytes }) => sum + heapBytes, 0))
  }

  /** Checks what the broker has printed since the last call. `check`: further conditions for a line. */
  readLog(printed: string, check: (line: string) => void): void {
    const lines = (this.partialLine + printed).split('\n')
    this.partialLine = lines.pop() ?? ''
    for (const line of lines) {
      if (line !== 'LINE TOO LONG' && !/^time=\S+ \| lvl=\w+ \| corr=/.test(line))
        this.onProblem(`a line that is none of the log: ${line.slice(0, 500)}`)
      check(line)
    }
  }

  /** Some ten of the heaps, in MB: a figure for a reader. */
  get figures(): string {
    const some = this.heaps.filter((_, index) => index % Math.ceil(this.heaps.length / 10) === 0)
    return `heap after collections, in MB: ${some.map(megabytes).join(' ')}`
  }
}

/** Whether a line of the log reports a failure. */
export const isFailure = (line: string): boolean => /^\S+ \| lvl=(?:FATAL|ERROR) \|/.test(line)

export const megabytes = (bytes: number): string => (bytes / 1024 / 1024).toFixed(0)
