// Large answers over whole nodes (docs/operations/answers.md): a list that is too large is refused before it is read,
// bytes in flight are limited and counted, and bodies arrive whole. On both servers, on one node and on two workers.

import { createHash } from 'node:crypto'
import t, { type Test } from 'tap'
import { parseExposition } from '../support/exposition-parser.js'
import { httpServers, type LocalNode, type LocalNodeOptions, startLocalNode } from '../support/local-node.js'
import { startLocalWorkers } from '../support/local-workers.js'
import { SlowReader } from './slow-reader.js'

const mb = 1024 * 1024
const entityBytes = 60_000
/** More entities than the broker reads one by one. */
const count = 300
/** The number of entities that fit into 4 MB. */
const fitting = 69

const entityOf = (n: number): object => ({
  id: `E${String(n).padStart(3, '0')}`,
  type: 'T',
  n: { type: 'Number', value: n, metadata: {} },
  text: { type: 'Text', value: String.fromCharCode(97 + (n % 26)).repeat(entityBytes), metadata: {} },
})

async function fill(node: LocalNode): Promise<void> {
  for (let n = 0; n < count; n++) {
    const { status } = await node.json('POST /v2/entities', entityOf(n))
    if (status !== 201) throw new Error(`${status}`)
  }
}

/** The expected body of the list of all entities. */
const allText = JSON.stringify(Array.from({ length: count }, (_, n) => entityOf(n)))
const allHash = createHash('sha256').update(allText).digest('hex')

async function metric(node: LocalNode, name: string, labels: Record<string, string> = {}): Promise<number> {
  const { text } = await node.ask('GET /metrics')
  const { samples } = parseExposition(text)
  const isMeant = (sample: (typeof samples)[number]): boolean =>
    sample.name === name && Object.entries(labels).every(([label, value]) => sample.labels[label] === value)
  return samples.filter(isMeant).reduce((sum, { value }) => sum + value, 0)
}

const inFlight = 'orrery_http_answers_in_flight_bytes'
const failures = 'orrery_http_answer_failures_total'

/** Repeats the check until it holds. */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise(resolve => setTimeout(resolve, 20))
}

const lists = [
  '',
  '&q=n>=0',
  '&orderBy=!n',
  '&idPattern=E',
  `&id=${idsOf(count)}`,
  '&q=text',
  '&attrs=n',
  '&options=keyValues',
]

function idsOf(some: number): string {
  return Array.from({ length: some }, (_, n) => `E${String(n).padStart(3, '0')}`).join()
}

for (const server of httpServers)
  for (const workers of [1, 2]) {
    const start = async (t: Test, options: LocalNodeOptions): Promise<LocalNode> => {
      const nodes =
        workers === 1
          ? [await startLocalNode(t, { server, ...options })]
          : await startLocalWorkers(t, workers, { server, ...options })
      return nodes[0]!
    }
    const where = `${server}, ${workers} of them`

    t.test(
      `${where}: a list that would be too large is refused, in every form; a smaller part is answered`,
      async t => {
        for (const viewBytesMax of workers === 1 ? [0, 64 * mb] : [0]) {
          const node = await start(t, { answers: { answerBytesMax: 4 * mb }, queries: { viewBytesMax } })
          await fill(node)
          const description = `answer size: more than ${4 * mb} bytes, max size supported: ${4 * mb}, ask for fewer entities at a time with limit`
          for (const list of lists) {
            const refused = await node.ask(`GET /v2/entities?limit=1000${list}`)
            t.strictSame([refused.status, refused.json], [400, { error: 'BadRequest', description }], list)
            const answered = await node.ask(`GET /v2/entities?limit=${fitting}${list}`)
            t.equal(answered.status, 200, list)
            t.equal((answered.json as object[]).length, fitting, list)
            const further = await node.ask(`GET /v2/entities?limit=${fitting}&offset=${count - fitting}${list}`)
            t.equal((further.json as object[]).length, fitting, list)
            const [first] = further.json as { id: string }[]
            t.equal(first!.id, list.includes('!') ? 'E068' : 'E231')
            t.equal((await node.ask(`GET /v2/entities?limit=${fitting + 1}&offset=20${list}`)).status, 400, list)
          }
          const query = await node.json('POST /v2/op/query?limit=1000', { entities: [{ idPattern: '.*' }] })
          t.strictSame([query.status, query.json], [400, { error: 'BadRequest', description }])
          t.equal(await metric(node, failures, { cause: 'too_large' }), 2 * lists.length + 1)
          t.equal(await metric(node, inFlight), 0)
        }
      },
    )

    t.test(
      `${where}: a list of ${count} entities of 60 KB arrives whole at a slow reader, and is counted until then`,
      async t => {
        const node = await start(t, {})
        await fill(node)
        const readers = await Promise.all([1, 2].map(() => SlowReader.to(node.port)))
        for (const reader of readers) reader.ask('/v2/entities?limit=1000')
        const [first, second] = await Promise.all(readers.map(reader => reader.bodyHash(allText.length)))
        t.strictSame([first, second], [allHash, allHash])
        await until(async () => (await metric(node, inFlight)) === 0)
        for (const reader of readers) reader.leave()
      },
    )

    t.test(
      `${where}: clients that do not read hold the memory set apart for answers and no more; small answers go on`,
      async t => {
        const bytesMax = 20 * mb
        const node = await start(t, { answers: { answerBytesMax: bytesMax, answersInFlightMax: bytesMax } })
        await fill(node)
        const silent = async (): Promise<SlowReader> => {
          const reader = await SlowReader.to(node.port)
          reader.stop()
          reader.ask('/v2/entities?limit=1000')
          return reader
        }
        const readers = [await silent()]
        await until(async () => (await metric(node, inFlight)) > 0.9 * allText.length)
        const refused = await node.ask('GET /v2/entities?limit=1000')
        t.strictSame([refused.status, refused.headers['retry-after']], [503, '1'])
        const description = 'the answers under way take all the memory that answers may have, try again later'
        t.equal(refused.text.slice(0, 200), JSON.stringify({ error: 'Unavailable', description }))
        t.equal((await node.ask('GET /v2/types')).status, 200)
        t.equal((await node.ask('GET /v2/entities?limit=1&attrs=n')).status, 200)
        for (let more = 0; more < 20; more++) readers.push(await silent())
        const turnedAway = { route: '/v2/entities', status: '503' }
        await until(async () => {
          t.ok((await metric(node, inFlight)) <= workers * bytesMax)
          return (await metric(node, 'orrery_http_requests_total', turnedAway)) === 21
        })
        t.ok((await metric(node, failures, { cause: 'no_room' })) > 0)
        for (const reader of readers) reader.leave()
        await until(async () => (await metric(node, inFlight)) === 0)
        t.equal((await node.ask('GET /v2/entities?limit=1000')).status, 200)
      },
    )
  }

for (const server of httpServers)
  t.test(`an entity of 3 MB is answered whole in every form, over ${server}`, async t => {
    const node = await startLocalNode(t, { server })
    const text = (n: number): string => String.fromCharCode(97 + n).repeat(200_000)
    const attribute = (n: number) => ({ type: 'Text', value: text(n), metadata: {} })
    const numbers = Array.from({ length: 15 }, (_, n) => n)
    await node.json('POST /v2/entities', { id: 'E', type: 'T' })
    for (const n of numbers) await node.json('POST /v2/entities/E/attrs', { [`a${n}`]: attribute(n) })
    const normalized = Object.fromEntries(numbers.map(n => [`a${n}`, attribute(n)]))
    const keyValues = Object.fromEntries(numbers.map(n => [`a${n}`, text(n)]))
    const head = { id: 'E', type: 'T' }
    const forms: readonly (readonly [string, unknown])[] = [
      ['', { ...head, ...normalized }],
      ['?options=keyValues', { ...head, ...keyValues }],
      ['?options=unique&attrs=a1,a0', [text(1), text(0)]],
      ['/attrs', normalized],
      ['/attrs?options=keyValues', keyValues],
      ['?attrs=a3', { ...head, a3: attribute(3) }],
    ]
    for (const [form, expected] of forms)
      t.ok((await node.ask(`GET /v2/entities/E${form}`)).text === JSON.stringify(expected), form)
    await node.json('POST /v2/entities', { id: 'F', type: 'T', n: { value: 1 } })
    const both = JSON.stringify([
      { ...head, ...keyValues },
      { id: 'F', type: 'T', n: 1 },
    ])
    t.ok((await node.ask('GET /v2/entities?options=keyValues')).text === both, 'a list')
  })
