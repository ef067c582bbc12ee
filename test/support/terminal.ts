// A bash that runs one command after another, as a reader at a terminal does.
//
// One shell runs all commands, so that variables, `cd` and background jobs carry over. Output and errors come together,
// in the order in which they were written. A configuration file makes curl draw no progress meter, as at a terminal;
// errors of `curl -s` are not shown, as there. The end of a command is recognised by a line that only this shell can
// write.

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Teardown, tempDir, within } from './broker-process.js'

export class Terminal {
  readonly #shell: ChildProcessWithoutNullStreams
  readonly #mark = `end-${randomUUID()}`
  #shown = ''
  #wake = () => {}

  constructor(t: Teardown) {
    const home = tempDir(t)
    writeFileSync(join(home, '.curlrc'), 'no-progress-meter\n')
    const env = { ...process.env, HOME: home, CURL_HOME: home, LC_ALL: 'C.UTF-8' }
    this.#shell = spawn('bash', ['--norc', '--noprofile'], { cwd: home, env, detached: true })
    for (const stream of [this.#shell.stdout, this.#shell.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.#shown += text
        this.#wake()
      })
    this.#shell.once('close', () => this.#wake())
    t.teardown(() => this.#end())
  }

  /** Runs a command to its end; resolves with its output, or rejects when it takes longer than `waitMs`. */
  async run(command: string, waitMs = 30_000): Promise<string> {
    this.#shown = ''
    this.#shell.stdin.write(`{ ${command}\n} </dev/null 2>&1\necho; echo ${this.#mark}\n`)
    const ended = await within(waitMs, this.#marked())
    if (!ended) throw new Error(`\`${command}\` did not end within ${waitMs} ms; it showed:\n${this.#shown}`)
    return this.#shown.slice(0, this.#shown.indexOf(`\n${this.#mark}`)).replace(/\r$/gm, '')
  }

  async #marked(): Promise<true> {
    while (!this.#shown.includes(`${this.#mark}\n`)) {
      if (this.#shell.exitCode !== null) throw new Error(`the shell ended; it showed:\n${this.#shown}`)
      await new Promise<void>(resolve => {
        this.#wake = resolve
      })
    }
    return true
  }

  #end(): void {
    if (this.#shell.exitCode !== null || this.#shell.pid === undefined) return
    process.kill(-this.#shell.pid, 'SIGKILL')
  }
}
