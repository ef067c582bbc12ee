// When the disk fails, acknowledged writes stay, and the broker stops instead of guessing.
//
// After a failed write or sync the content of the disk is unknown. So the broker answers 500 to all waiting clients,
// accepts no more writes, logs the reason and ends with a non-zero code. The next start recovers from the real content
// of the disk.
//
// The disk is a small tmpfs that fills up (needs root on Linux), or strace makes a sync fail. Where one of them is not
// possible the test is skipped with the reason.

import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type BrokerProcess, startBroker, tempDir } from '../support/broker-process.js'
import { type Answer, HttpClient } from '../support/http-client.js'
import { lacks, noMount, SmallDisk } from '../support/small-disk.js'

const connections = 8
const bytesPerEntity = 4096
/** With the reserve the broker would refuse writes before the disk is full (full-disk.test.ts). */
const unwatched = ['-diskReserve', '0']
const id = (n: number) => `urn:disk:${n}`

const noStrace =
  process.platform === 'linux'
    ? lacks('strace', '-f', '-qq', '-o', '/dev/null', '-e', 'inject=fdatasync:error=EIO', 'true')
    : 'strace is of Linux'

t.test(
  'a full disk: 500 to waiting requests, a reason, an exit, and nothing acknowledged is lost',
  { skip: noMount },
  async t => {
    const disk = new SmallDisk(t, 24)
    const dataDir = join(disk.path, 'data')

    const broker = await startBroker(t, { dataDir, args: unwatched })
    const written = await writeUntilItFails(broker, 20_000)
    await stopsWithAReason(t, broker, written, /space|ENOSPC|full/i)

    disk.resize(96)
    await holds(t, await startBroker(t, { dataDir, args: unwatched }), written.acknowledged)
  },
)

for (const call of ['fdatasync', 'fsync,fdatasync,sync_file_range'] as const) {
  t.test(`a failing disk (${call}): nothing acknowledged is lost, the broker stops`, { skip: noStrace }, async t => {
    const dataDir = tempDir(t)
    // A first start creates the files, so that the failure hits a commit and not the start.
    await (await startBroker(t, { dataDir })).kill('SIGTERM')

    const inject = `inject=${call}:error=EIO:when=60+`
    const wrapper = ['strace', '-f', '-qq', '-o', '/dev/null', '-e', `trace=${call}`, '-e', inject]
    const broker = await startBroker(t, { dataDir, wrapper })
    const written = await writeUntilItFails(broker, 3_000)
    await stopsWithAReason(t, broker, written, /I\/O error|Input\/output error|EIO/i)

    await holds(t, await startBroker(t, { dataDir }), written.acknowledged)
  })
}

interface Written {
  readonly acknowledged: readonly number[]
  /** Statuses of the requests that were not acknowledged; 0 for a connection that broke. */
  readonly refused: readonly number[]
  /** The texts of the refusals. */
  readonly texts: readonly string[]
}

/** Creates entities on several connections until each connection gets a refusal, or `most` are written. */
async function writeUntilItFails(broker: BrokerProcess, most: number): Promise<Written> {
  const acknowledged: number[] = []
  const refused: number[] = []
  const texts: string[] = []
  let next = 0
  const writer = async (): Promise<void> => {
    const client = new HttpClient(broker.baseUrl)
    while (next < most) {
      const n = next++
      const { status, text } = await create(client, n)
      if (status !== 201) {
        refused.push(status)
        texts.push(text)
        break
      }
      acknowledged.push(n)
    }
    client.close()
  }
  await Promise.all(Array.from({ length: connections }, writer))
  return { acknowledged, refused, texts }
}

function create(client: HttpClient, n: number): Promise<Pick<Answer, 'status' | 'text'>> {
  const entity = { id: id(n), type: 'Block', text: { type: 'Text', value: filling(n) } }
  return client.send('POST', '/v2/entities', entity).catch(() => ({ status: 0, text: '' }))
}

/** Text that compression does not shorten, the same for the same number. */
function filling(n: number): string {
  let text = ''
  for (let x = n + 1; text.length < bytesPerEntity; x = (Math.imul(x, 1664525) + 1013904223) >>> 0)
    text += x.toString(36)
  return text
}

async function stopsWithAReason(t: Test, broker: BrokerProcess, written: Written, reason: RegExp): Promise<void> {
  t.ok(written.acknowledged.length > 0, `${written.acknowledged.length} writes were acknowledged before`)
  t.ok(written.refused.includes(500), `what waited got 500: ${written.refused}`)
  t.strictSame(
    written.refused.filter(status => status !== 500 && status !== 503 && status !== 0),
    [],
    'and what came later 503, or no connection',
  )
  const exit = await broker.exitWithin(20_000)
  t.notMatch(written.texts.join(), broker.dataDir, 'no answer says where the data is')
  t.not(exit.code, 0, `it ended with a code that says so: ${exit.code ?? exit.signal}`)
  t.equal(exit.signal, null, 'by its own decision')
  t.match(exit.stderr + exit.stdout, reason, 'and said why')
}

async function holds(t: Test, broker: BrokerProcess, acknowledged: readonly number[]): Promise<void> {
  const client = new HttpClient(broker.baseUrl)
  const lost: string[] = []
  for (const n of acknowledged) {
    const answer = await client.get(`/v2/entities/${id(n)}?options=keyValues&attrs=text`)
    const entity = answer.json as { text?: unknown } | undefined
    if (answer.status !== 200 || JSON.stringify(entity).indexOf(filling(n)) < 0) lost.push(`${id(n)}: ${answer.status}`)
  }
  t.strictSame(lost, [], `all ${acknowledged.length} acknowledged entities are there after the restart`)
  t.equal((await create(client, 10_000_000)).status, 201, 'and it takes writes again')
  client.close()
}
