// `orrery watch` from outside: the program against a real broker, as a shell runs it
// (docs/interface/live.md#orrery-watch).

import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { certificate } from '../http/front-contract.js'
import {
  type BrokerOptions,
  type BrokerProcess,
  freePort,
  plainly,
  startBroker,
  tempDir,
  within,
} from '../support/broker-process.js'
import { FaultyProxy } from '../support/faulty-proxy.js'
import { HttpClient } from '../support/http-client.js'
import { sectionOf } from '../support/markdown.js'
import { main, root } from '../support/project.js'
import { Terminal } from '../support/terminal.js'
import { difference, shows, transcriptOfPage } from '../support/transcript.js'

t.setTimeout(400_000)

// biome-ignore lint/suspicious/noExplicitAny: tests look into whatever was printed
type Line = any

/** A running `orrery watch`, with its output. */
class WatchProcess {
  stdout = ''
  stderr = ''
  private readonly child: ChildProcess
  private readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>
  private wake = (): void => {}

  constructor(t: Test, words: readonly string[], command: readonly string[] = [process.execPath, main, 'watch']) {
    this.child = spawn(...plainly([...command, ...words]), { stdio: ['ignore', 'pipe', 'pipe'] })
    this.child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text
      this.wake()
    })
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text
      this.wake()
    })
    this.exited = new Promise(resolve => {
      this.child.once('close', (code, signal) => resolve({ code, signal }))
    })
    t.teardown(() => this.child.kill('SIGKILL'))
  }

  /** The events, one a line. */
  get events(): Line[] {
    return this.stdout
      .split('\n')
      .slice(0, -1)
      .map(line => JSON.parse(line))
  }

  async until(what: string, isSo: (watch: this) => boolean): Promise<void> {
    const lateMs = performance.now() + 60_000
    while (!isSo(this)) {
      const leftMs = lateMs - performance.now()
      if (leftMs <= 0)
        throw new Error(`waited too long for ${what}\n--- stdout\n${this.stdout}\n--- stderr\n${this.stderr}`)
      await new Promise<void>(resolve => {
        const timer = setTimeout(resolve, leftMs)
        this.wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
  }

  /** Sends a signal, if one is given, and waits for the end; resolves with the exit status. */
  async end(signal?: NodeJS.Signals): Promise<number | null> {
    if (signal) this.child.kill(signal)
    const exit = await within(30_000, this.exited)
    if (!exit) throw new Error(`it still runs\n--- stdout\n${this.stdout}\n--- stderr\n${this.stderr}`)
    return exit.code
  }
}

/** A broker and a client that changes its lamps. */
class Lamps {
  readonly client: HttpClient

  constructor(
    t: Test,
    readonly broker: BrokerProcess,
  ) {
    this.client = new HttpClient(broker.baseUrl)
    t.teardown(() => this.client.close())
  }

  static async start(t: Test, options: BrokerOptions = {}): Promise<Lamps> {
    return new Lamps(t, await startBroker(t, options))
  }

  async upsert(id: string, level: number, more: Record<string, unknown> = {}): Promise<void> {
    const entity = { id, type: 'Lamp', level: { value: level, type: 'Number' }, ...more }
    const { status, text } = await this.client.send('POST', '/v2/entities?options=upsert', entity)
    if (status !== 201 && status !== 204) throw new Error(text)
  }

  async remove(id: string): Promise<void> {
    const { status, text } = await this.client.send('DELETE', `/v2/entities/${id}`)
    if (status !== 204) throw new Error(`${status} ${text}`)
  }
}

/** The last level of each lamp, as a reader that folds the events has it. */
function folded(events: readonly Line[]): Record<string, number> {
  const levels = new Map<string, number>()
  for (const { event, data, id } of events) {
    if (event === 'gap') levels.clear()
    else if (event === 'entityLeave') levels.delete(id)
    else if (event === 'entityDelete') levels.delete(data[0].id)
    else for (const entity of data ?? []) levels.set(entity.id, entity.level.value ?? entity.level)
  }
  return Object.fromEntries([...levels].sort())
}

/** The watch has begun when its snapshot is complete. */
const isWhole = ({ events }: WatchProcess): boolean => events.some(({ end }) => end === true)

for (const args of [[], ['-httpServer', 'node'], ['-workers', '2']]) {
  const how = args.join(' ') || 'one process'

  t.test(`it prints a line for each change of the watched entities (${how})`, async t => {
    const lamps = await Lamps.start(t, { args })
    await lamps.upsert('L1', 1)
    const words = ['--url', lamps.broker.baseUrl, '--type', 'Lamp', '-q', 'level<100', '--snapshot', '--leave']
    const watch = new WatchProcess(t, [...words, '--format', 'keyValues'])
    await watch.until('the snapshot', isWhole)
    await lamps.upsert('L1', 2)
    await lamps.upsert('L2', 2)
    await lamps.upsert('L2', 200)
    await lamps.remove('L1')
    await lamps.upsert('L3', 3)
    await watch.until('the last change', ({ events }) => events.length === 7)
    const [first, end, ...changes] = watch.events
    t.match(first, { event: 'snapshot', data: [{ id: 'L1', type: 'Lamp', level: 1 }] })
    t.match(end, { event: 'snapshot', cursor: /^1\./, end: true, count: 1 })
    // The order of an entity's events is that of its changes; between entities there is none.
    const about = (id: string): Line[] => changes.filter(change => (change.id ?? change.data[0].id) === id)
    t.match(about('L1'), [
      { event: 'entityChange', cursor: /^1\./, data: [{ level: 2 }], changed: ['level'], servicePath: '/' },
      { event: 'entityDelete' },
    ])
    t.match(about('L2'), [{ event: 'entityCreate', data: [{ level: 2 }] }, { event: 'entityLeave' }])
    t.match(about('L3'), [{ event: 'entityCreate', data: [{ level: 3 }] }])
    t.equal(await watch.end('SIGTERM'), 0)
    t.equal(watch.stderr, '')
  })

  t.test(`after a cut it misses nothing, and repeats nothing that it need not (${how})`, async t => {
    const lamps = await Lamps.start(t, { args })
    const proxy = await FaultyProxy.start(t, `127.0.0.1:${lamps.broker.port}`)
    const watch = new WatchProcess(t, ['--url', `http://${proxy.address}`, '--type', 'Lamp', '--snapshot'])
    await watch.until('the snapshot', isWhole)
    await lamps.upsert('L1', 1)
    await watch.until('the first change', ({ events }) => folded(events).L1 === 1)
    proxy.goAway()
    await watch.until('the cut', ({ stderr }) => stderr.includes('connects again in'))
    for (let level = 2; level <= 20; level++) await lamps.upsert('L1', level)
    proxy.mend()
    await lamps.upsert('L2', 1)
    await watch.until('the last changes', ({ events }) => JSON.stringify(folded(events)) === '{"L1":20,"L2":1}')
    const levels = watch.events.filter(({ event }) => event === 'entityChange').map(({ data }) => data[0].level.value)
    t.strictSame(
      levels,
      Array.from({ length: 19 }, (_, at) => at + 2),
      'each change once, in order',
    )
    t.notOk(watch.events.some(({ event }) => event === 'gap'))
    t.match(watch.stderr, /connects again in \d+\.\d s\n(.*\n)*orrery watch: connected again, continues\n$/)
    t.equal(await watch.end('SIGINT'), 0)
  })

  t.test(`it outlives the broker (${how})`, async t => {
    const lamps = await Lamps.start(t, { args })
    await lamps.upsert('L1', 1)
    await lamps.upsert('L2', 1)
    const watch = new WatchProcess(t, ['--url', lamps.broker.baseUrl, '--snapshot'])
    await watch.until('the snapshot', isWhole)
    await lamps.broker.kill('SIGKILL')
    const { port, dataDir } = lamps.broker
    const again = await Lamps.start(t, { args, port, dataDir })
    await again.remove('L1')
    await again.upsert('L2', 2)
    await again.upsert('L3', 3)
    await watch.until('the present state', ({ events }) => JSON.stringify(folded(events)) === '{"L2":2,"L3":3}')
    t.match(
      watch.events.find(({ event }) => event === 'gap'),
      { reason: 'restarted' },
    )
    t.equal(await watch.end('SIGTERM'), 0)
  })
}

t.test('a cursor of an event continues a watch in another command', async t => {
  const lamps = await Lamps.start(t)
  const words = ['--url', lamps.broker.baseUrl, '--type', 'Lamp']
  const first = new WatchProcess(t, [...words, '--snapshot'])
  await first.until('the snapshot', isWhole)
  await lamps.upsert('L1', 1)
  await first.until('the change', ({ events }) => folded(events).L1 === 1)
  await first.end('SIGTERM')
  await lamps.upsert('L1', 2)
  const second = new WatchProcess(t, [...words, '--from', first.events.at(-1).cursor])
  await second.until('the change meanwhile', ({ events }) => folded(events).L1 === 2)
  t.equal(second.events.length, 1)
})

t.test('ids, tenant and path choose', async t => {
  const lamps = await Lamps.start(t, { args: ['-multiservice'] })
  const send = async (id: string, tenant: string, path: string): Promise<void> => {
    const headers = { 'Ctx-Service': tenant, 'Ctx-ServicePath': path }
    await lamps.client.send('POST', '/v2/entities', { id, type: 'Lamp', level: { value: 1 } }, headers)
  }
  await send('L1', 'city', '/a')
  await send('L1', 'city', '/b')
  await send('L1', 'park', '/a')
  await send('L2', 'city', '/a')
  const words = ['--url', lamps.broker.baseUrl, '--tenant', 'city', '--path', '/a/#', '--id', 'L1,L3', '--snapshot']
  const watch = new WatchProcess(t, [...words, '--attrs', '*,servicePath', '--format', 'keyValues'])
  await watch.until('the snapshot', isWhole)
  t.strictSame(watch.events[0].data, [{ id: 'L1', type: 'Lamp', level: 1, servicePath: '/a' }])
  t.match(watch.events[1], { count: 1 })
})

t.test('a refusal ends it, with the reason of the broker', async t => {
  const lamps = await Lamps.start(t)
  const off = await Lamps.start(t, { args: ['-noStreams'] })
  const nowhere = `http://127.0.0.1:${await freePort()}`
  const refused: readonly (readonly [words: readonly string[], text: RegExp])[] = [
    [['--url', lamps.broker.baseUrl, '-q', 'a=='], /^orrery watch: http:\S+: BadRequest: .*\n$/],
    [['--url', lamps.broker.baseUrl, '--from', 'x'], /BadRequest: from, .* is not a cursor/],
    [['--url', lamps.broker.baseUrl, '--path', '/a/#/b'], /--path: /],
    [['--url', off.broker.baseUrl], /answered 404: streams are off/],
    [['--url', `${lamps.broker.baseUrl}/elsewhere`], /answered 4\d\d: /],
    [['--url', nowhere], /^orrery watch: http:\S+: Couldn't connect to server\n$/],
    [['--url', lamps.broker.baseUrl, '--notifCaFile', '/nowhere'], /\/nowhere/],
  ]
  for (const [words, text] of refused) {
    const watch = new WatchProcess(t, words)
    t.equal(await watch.end(), 1, words.join(' '))
    t.match(watch.stderr, text)
    t.equal(watch.stdout, '')
  }
})

t.test('a reader of its output that goes ends it quietly', async t => {
  const lamps = await Lamps.start(t)
  await lamps.upsert('L1', 1)
  const command = `"$0" "$1" watch --url "$2" --snapshot | head -1; echo "$?" "\${PIPESTATUS[0]}"`
  const words = ['bash', '-c', command, process.execPath, main, lamps.broker.baseUrl]
  const watch = new WatchProcess(t, [], words)
  await watch.until('the first line', ({ stdout }) => stdout.includes('\n'))
  // It learns with a line that there is no reader.
  for (let level = 2; level < 4; level++) await lamps.upsert('L1', level)
  await watch.until('the end', ({ stdout }) => stdout.split('\n').length > 2)
  t.equal(await watch.end(), 0)
  t.match(watch.stdout, /\n0 0\n$/)
  t.equal(watch.stderr, '')
})

t.test('a table comes once, at the end, where no terminal is', async t => {
  const lamps = await Lamps.start(t)
  await lamps.upsert('L1', 10)
  await lamps.upsert('L3', 3, { note: { type: 'TextUnrestricted', value: '\u001b[2J' } })
  const table = 'ID  TYPE  level  note\nL1  Lamp  10\nL3  Lamp  3      \\u001b[2J\n'
  // Nothing shows when the snapshot has come, so each try lasts longer.
  for (let lastsMs = 1_000; ; lastsMs *= 2) {
    const watch = new WatchProcess(t, ['--url', lamps.broker.baseUrl, '--format', 'table'])
    await new Promise(resolve => setTimeout(resolve, lastsMs))
    t.equal(watch.stdout, '')
    const status = await watch.end('SIGTERM')
    if (watch.stdout !== table && lastsMs < 30_000) continue
    t.strictSame([status, watch.stdout], [0, table])
    break
  }
})

const hasScript = process.platform === 'linux'

t.test('on a terminal the table follows', { skip: !hasScript && 'script(1) has other options here' }, async t => {
  const lamps = await Lamps.start(t)
  for (let at = 0; at < 10; at++) await lamps.upsert(`L${at}`, at)
  const command = `stty rows 8 cols 60; exec '${process.execPath}' '${main}' watch --url ${lamps.broker.baseUrl} --format table`
  const watch = new WatchProcess(t, [], ['script', '-qefc', command, '/dev/null'])
  await watch.until('the snapshot', ({ stdout }) => stdout.includes('-- 10 entities, live'))
  const drawn = '\u001b[K\r\n'
  t.match(watch.stdout, `L3  Lamp  3${drawn}… 6 more${drawn}-- 10 entities, live`)
  await lamps.upsert('L0', 77)
  await watch.until('the change', ({ stdout }) => stdout.includes('L0  Lamp  77'))
  t.ok(
    watch.stdout.slice(watch.stdout.lastIndexOf('\u001b[?7l')).startsWith('\u001b[?7l\u001b[7A\r'),
    'it is drawn over itself',
  )
  await lamps.broker.kill('SIGKILL')
  await watch.until('the cut', ({ stdout }) => /orrery watch: .*connects again[\s\S]*not connected/.test(stdout))
})

t.test('over TLS it verifies the broker', async t => {
  const { keyFile, certFile } = certificate(t, 'localhost')
  const { broker } = await Lamps.start(t, { args: ['-https', '-key', keyFile, '-cert', certFile] })
  const url = ['--url', `https://localhost:${broker.port}`, '--snapshot']
  const refused = new WatchProcess(t, url)
  t.equal(await refused.end(), 1)
  t.match(refused.stderr, /Peer certificate cannot be authenticated/)
  for (const words of [['--insecureNotif'], ['--notifCaFile', certFile]]) {
    const watch = new WatchProcess(t, [...url, ...words])
    await watch.until('the snapshot', isWhole)
    t.equal(await watch.end('SIGTERM'), 0, words.join(' '))
  }
})

t.test('the transcript of docs/interface/live.md is true', { skip: lacking() }, async t => {
  const page = readFileSync(join(root, 'docs/interface/live.md'), 'utf8')
  const steps = transcriptOfPage(sectionOf(page, 'orrery watch').replaceAll('```sh\n', '```console\n'))
  t.ok(steps.length > 1, `${steps.length} commands`)
  const { broker } = await Lamps.start(t)
  const terminal = new Terminal(t)
  const bin = tempDir(t)
  const program = `#!/bin/sh\nunset NODE_OPTIONS\nexec '${process.execPath}' '${main}' "$@"\n`
  writeFileSync(join(bin, 'orrery'), program, { mode: 0o755 })
  await terminal.run(`PATH="${bin}:$PATH"`)
  for (const step of steps) {
    const output = await terminal.run(
      step.command.replaceAll('localhost:1026', `127.0.0.1:${broker.port}`).replace('timeout 3', 'timeout 10'),
    )
    if (shows(step, output)) t.pass(step.command)
    else t.fail(step.command, { difference: difference(step, output, 'docs/interface/live.md') })
  }
})

function lacking(): string | false {
  try {
    execFileSync('bash', ['-c', 'command -v curl'], { stdio: 'pipe' })
    return false
  } catch {
    return 'bash or curl is missing'
  }
}
