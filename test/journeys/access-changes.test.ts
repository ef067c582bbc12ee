// The access file changes again and again under load: keys are rotated, and rules come and go. Each request is decided by
// the file before a change or by the one after it, and by no other one.

import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { keyHash, newKey } from '../../src/access/keys.js'
import { Wire } from '../http/wire.js'
import { everything } from '../support/access-scene.js'
import { startBroker, tempDir } from '../support/broker-process.js'

t.setTimeout(400_000)

/** A change counts after 2 s; a machine that is busy with other tests may be late. */
const changedMsMax = 30_000

const changes = Number(process.env.ACCESS_CHANGES ?? 8)

const [root, first, second] = [newKey(), newKey(), newKey()]

/** What differs between the files: which of two keys of one name are there, and whether they may update. */
interface State {
  readonly keys: readonly string[]
  readonly mayUpdate: boolean
}

/** A rotation of keys and back, with changes of the rules in between. */
const states: readonly State[] = [
  { keys: [first], mayUpdate: true },
  { keys: [first, second], mayUpdate: true },
  { keys: [first, second], mayUpdate: false },
  { keys: [second], mayUpdate: false },
  { keys: [second], mayUpdate: true },
  { keys: [first, second], mayUpdate: true },
]

const stateOf = (change: number): State => states[change % states.length]!

function fileOf({ keys, mayUpdate }: State): string {
  const entry = (name: string, key: string) => ({ name, sha256: keyHash(key), roles: [name] })
  const gateway = [{ actions: mayUpdate ? ['read', 'update'] : ['read'] }]
  return JSON.stringify({
    keys: [entry('root', root), ...keys.map(key => entry('gateway', key))],
    roles: { root: everything, gateway },
  })
}

/** A kind of request, and the status that a file gives it. */
interface Probe {
  readonly line: string
  readonly key: string
  readonly body: string
  readonly statusBy: (state: State) => number
}

const update = JSON.stringify({ power: { value: 1 } })
const probes: readonly Probe[] = [
  { line: 'GET /v2/entities/L1', key: root, body: '', statusBy: () => 200 },
  ...[first, second].flatMap((key): Probe[] => [
    { line: 'GET /v2/entities/L1', key, body: '', statusBy: ({ keys }) => (keys.includes(key) ? 200 : 401) },
    {
      line: 'PATCH /v2/entities/L1/attrs',
      key,
      body: update,
      statusBy: ({ keys, mayUpdate }) => (!keys.includes(key) ? 401 : mayUpdate ? 204 : 403),
    },
  ]),
]

const ways = [
  { words: ['-httpServer', 'uws'], processes: 1 },
  { words: ['-httpServer', 'node', '-workers', '2'], processes: 2 },
]

for (const { words, processes } of ways)
  t.test(`each request is decided by the file before or after a change: ${words.join(' ')}`, async t => {
    const path = join(tempDir(t), 'access.json')
    const put = (state: State): void => {
      writeFileSync(`${path}.new`, fileOf(state))
      renameSync(`${path}.new`, path)
    }
    put(stateOf(0))
    const broker = await startBroker(t, { args: ['-access', path, ...words], readyWaitMs: 60_000 })
    const status = async (wire: Wire, { line, key, body }: Probe): Promise<number> => {
      const content = body === '' ? [] : ['Content-Type: application/json']
      await wire.request(line, [`X-Api-Key: ${key}`, ...content], body)
      return (await wire.answer()).status
    }
    const creating = await Wire.to(broker.port)
    const body = JSON.stringify({ id: 'L1', type: 'Lamp', power: { value: 0 } })
    t.equal(await status(creating, { ...probes[0]!, line: 'POST /v2/entities', body }), 201)
    creating.leave()

    /** The number of the latest file, and of the latest one that a decision could only have come from. */
    let written = 0
    let seen = 0
    /** Requests in a row that the latest file has decided. */
    let inRow = 0
    let answered = 0
    let isOver = false
    const wrong: string[] = []
    const load = Array.from({ length: 4 * processes }, async (_, client) => {
      for (let nth = client; !isOver; ) {
        // Connections are short, so that each process gets some.
        const wire = await Wire.to(broker.port)
        for (let more = 0; more < 10 && !isOver; more++, nth++) {
          const probe = probes[nth % probes.length]!
          const [writtenBefore, seenBefore] = [written, seen]
          const got = await status(wire, probe)
          answered++
          // A process that has used a file never goes back to the one before.
          const from = Math.max(writtenBefore - 1, 0)
          const oldest = processes === 1 ? Math.max(from, seenBefore) : from
          const allowed: number[] = []
          for (let file = oldest; file <= written; file++) allowed.push(probe.statusBy(stateOf(file)))
          if (!allowed.includes(got))
            wrong.push(`${probe.line}: ${got} and not ${allowed} (files ${oldest}-${written})`)
          const [byBefore, byLatest] = [
            probe.statusBy(stateOf(written - 1 + states.length)),
            probe.statusBy(stateOf(written)),
          ]
          if (byBefore === byLatest || written !== writtenBefore) continue
          if (got === byLatest) {
            inRow++
            if (processes === 1) seen = written
          } else inRow = 0
        }
        wire.leave()
      }
    })
    const lags: number[] = []
    for (let change = 1; change <= changes; change++) {
      const beganMs = performance.now()
      // Before the file is there, so no answer may be earlier than its number.
      written = change
      inRow = 0
      put(stateOf(change))
      if (change % 4 === 0) process.kill(broker.child.pid as number, 'SIGHUP')
      // So many, that each process and each connection has answered some.
      while (inRow < 40 * processes) {
        if (performance.now() - beganMs > changedMsMax)
          throw new Error(`change ${change} has no effect\n${broker.printed()}`)
        await pause(10)
      }
      lags.push(Math.round(performance.now() - beganMs))
    }
    isOver = true
    await Promise.all(load)
    t.strictSame(wrong, [], `${answered} requests`)
    t.comment(`${answered} requests, ${changes} changes, each counted everywhere after ${Math.max(...lags)} ms at most`)
    t.equal((await broker.kill('SIGTERM')).code, 0)
  })
