// The audit log of the program as operators have it: its file is rotated under load, shared by workers, and on a disk
// that is full; and what happens without it where it is required.

import { existsSync, readdirSync, readFileSync, renameSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { type BrokerProcess, runToEnd, startBroker, tempDir } from '../support/broker-process.js'
import { HttpClient } from '../support/http-client.js'
import { noMount, SmallDisk } from '../support/small-disk.js'

t.setTimeout(400_000)

const lamp = (id: string) => ({ id, type: 'Lamp', power: { value: 'hunter2' } })

type Line = Readonly<Record<string, unknown>>

/** The lines of a file and of those that it was before, and how many of them are no JSON. */
function linesOf(file: string): { readonly lines: Line[]; readonly broken: number } {
  const names = readdirSync(dirname(file)).filter(name => name.startsWith(basename(file)))
  const texts = names.flatMap(name => readFileSync(join(dirname(file), name), 'utf8').split('\n'))
  const lines = texts.filter(text => text !== '').map(parsed)
  const found = lines.filter(line => line !== undefined)
  return { lines: found, broken: lines.length - found.length }
}

function parsed(text: string): Line | undefined {
  try {
    return JSON.parse(text) as Line
  } catch {
    return undefined
  }
}

async function until(what: string, isSo: () => boolean | Promise<boolean>, broker: BrokerProcess): Promise<void> {
  for (const untilMs = performance.now() + 60_000; !(await isSo()); await pause(20))
    if (performance.now() > untilMs) throw new Error(`waited too long for ${what}\n${broker.printed()}`)
}

async function metric(client: HttpClient, name: string): Promise<number> {
  const { text } = await client.get('/metrics')
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1])
}

function clientOf(t: Test, { baseUrl }: BrokerProcess, connections = 1): HttpClient {
  const client = new HttpClient(baseUrl, 30_000, connections)
  t.teardown(() => client.close())
  return client
}

for (const workers of ['1', '2'])
  t.test(`the file is rotated under load without a lost line, with -workers ${workers}`, async t => {
    const file = join(tempDir(t), 'audit.log')
    const broker = await startBroker(t, { args: ['-auditLog', file, '-workers', workers] })
    const rotations = 5
    const acknowledged: string[] = []
    let isOver = false
    const writer = async (name: string): Promise<void> => {
      // Several connections, so that every worker has some.
      const clients = Array.from({ length: 4 }, () => clientOf(t, broker))
      for (let nth = 0; !isOver; nth++) {
        const id = `${name}:${nth}`
        const { status } = await clients[nth % clients.length]!.send('POST', '/v2/entities', lamp(id))
        if (status !== 201) throw new Error(`answered ${status}`)
        acknowledged.push(id)
      }
    }
    const writers = ['a', 'b', 'c', 'd'].map(writer)
    for (let nth = 1; nth <= rotations; nth++) {
      const count = acknowledged.length
      await until('some requests', () => acknowledged.length >= count + 200, broker)
      renameSync(file, `${file}.${nth}`)
      process.kill(broker.child.pid as number, 'SIGHUP')
      await until('the new file', () => existsSync(file), broker)
      t.equal(statSync(file).mode & 0o777, 0o600)
    }
    isOver = true
    await Promise.all(writers)
    t.equal((await broker.kill('SIGTERM')).code, 0)
    const { lines, broken } = linesOf(file)
    t.equal(broken, 0)
    t.equal(lines.length, acknowledged.length)
    t.strictSame(new Set(lines.map(({ id }) => id)), new Set(acknowledged))
    for (const name of ['a', 'b', 'c', 'd']) {
      const times = lines.filter(({ id }) => String(id).startsWith(name)).map(({ time }) => String(time))
      t.ok(times.length > 50, `${times.length} of ${name}`)
    }
  })

t.test('a file that was renamed or deleted is noticed without a signal', async t => {
  const file = join(tempDir(t), 'audit.log')
  const broker = await startBroker(t, { args: ['-auditLog', file] })
  renameSync(file, `${file}.1`)
  await until('the new file', () => existsSync(file), broker)
  t.equal((await clientOf(t, broker).send('POST', '/v2/entities', lamp('L1'))).status, 201)
  await until('a line', () => readFileSync(file, 'utf8').includes('"L1"'), broker)
})

const longId = 'x'.repeat(900)
const longCorrelator = 'c'.repeat(1_000)

t.test('on a full disk requests go on, and what does not fit into memory is counted', { skip: noMount }, async t => {
  const disk = new SmallDisk(t, 32)
  const file = join(disk.path, 'audit.log')
  const broker = await startBroker(t, { args: ['-auditLog', file] })
  const client = clientOf(t, broker, 8)
  t.equal((await client.send('POST', '/v2/entities', lamp('first'))).status, 201)
  await until('the first line', () => readFileSync(file, 'utf8').endsWith('\n'), broker)
  disk.fill('others')

  let sent = 0
  const flood = async (): Promise<void> => {
    const headers = { 'Fiware-Correlator': longCorrelator }
    for (let nth = 0; nth < 1_000; nth++) {
      const { status } = await client.send('DELETE', `/v2/entities/${longId}`, undefined, headers)
      if (status !== 400) t.fail(`answered ${status}`)
      sent++
    }
  }
  t.equal((await client.send('POST', '/v2/entities', lamp('second'))).status, 201)
  while ((await metric(client, 'orrery_audit_lines_lost_total')) === 0 && sent < 100_000)
    await Promise.all(Array.from({ length: 8 }, flood))
  t.equal((await client.send('POST', '/v2/entities', lamp('third'))).status, 201, 'requests go on')
  t.equal(await metric(client, 'orrery_audit_failing'), 1)
  t.ok((await metric(client, 'orrery_audit_waiting_bytes')) > 15 * 1024 * 1024)
  await until(
    'the report',
    () => /lvl=ERROR .* lines of the audit log \S+ were lost \(ENOSPC/.test(broker.stdout),
    broker,
  )
  t.match(broker.stdout, /lvl=ERROR .*the audit log \S+ cannot be written \(ENOSPC.*\): its lines wait in memory/)

  disk.remove('others')
  await until('a success', async () => (await metric(client, 'orrery_audit_failing')) === 0, broker)
  await until('the rest', async () => (await metric(client, 'orrery_audit_waiting_bytes')) === 0, broker)
  t.equal((await client.send('POST', '/v2/entities', lamp('last'))).status, 201)
  const lost = await metric(client, 'orrery_audit_lines_lost_total')
  await broker.kill('SIGTERM')
  t.match(
    broker.stdout,
    new RegExp(`the audit log \\S+ is written again, ${lost} of its lines were lost since the start`),
  )
  const { lines, broken } = linesOf(file)
  t.ok(lost > 0 && lines.length + lost === sent + 4, `${lines.length} lines, ${lost} lost, ${sent} sent`)
  t.ok(broken <= 1, 'the last one before the failure may be broken')
  const ids = lines.map(({ id }) => String(id))
  t.strictSame([ids[0], ids[1], ids.at(-1)], ['first', 'second', 'last'])
})

t.test('where the log is required, nothing changes while it cannot be written', { skip: noMount }, async t => {
  const disk = new SmallDisk(t, 4)
  const file = join(disk.path, 'audit.log')
  const broker = await startBroker(t, { args: ['-auditLog', file, '-auditRequired'] })
  const client = clientOf(t, broker)
  const create = (id: string) => client.send('POST', '/v2/entities', lamp(id))
  t.equal((await create('L1')).status, 201)
  await until('the first line', () => readFileSync(file, 'utf8').includes('"L1"'), broker)
  disk.fill('others')
  // The room of a page may be left in the file.
  const accepted = ['L1']
  for (let nth = 0; accepted.length < 1_000; nth++) {
    const id = `after:${nth}`
    if ((await create(id)).status !== 201) break
    accepted.push(id)
    await pause(2)
  }
  t.ok(accepted.length < 500, `${accepted.length} were accepted until the first failure`)

  const refused = await create('refused')
  t.match(refused, { status: 503, headers: { 'retry-after': '1' } })
  t.strictSame(refused.json, {
    error: 'Unavailable',
    description: 'the audit log cannot be written: no request may change anything until it can',
  })
  const batch = { actionType: 'append', entities: [lamp('refused')] }
  t.equal((await client.send('POST', '/v2/op/update', batch)).status, 503)
  t.equal((await client.send('DELETE', '/v2/entities/L1')).status, 503)
  t.equal((await client.send('PUT', '/admin/log?level=INFO')).status, 503)
  t.equal((await client.send('POST', '/v2/op/query', { entities: [{ idPattern: '.*' }] })).status, 200, 'reads go on')
  t.equal((await client.get('/statistics')).status, 200)
  t.equal((await client.get('/v2/entities/refused')).status, 404)
  t.match(
    broker.stdout,
    /cannot be written \(ENOSPC.*\): its lines wait in memory, and requests that change something are refused/,
  )

  disk.remove('others')
  await until('an accepted request', async () => (await create('after')).status === 201, broker)
  t.equal((await client.send('DELETE', '/v2/entities/L1')).status, 204)
  t.equal(await metric(client, 'orrery_audit_lines_lost_total'), 0)
  await broker.kill('SIGTERM')
  const { lines } = linesOf(file)
  const created = lines.filter(({ method, status }) => method === 'POST' && status === 201).map(({ id }) => id)
  t.strictSame(created, [...accepted, 'after'], 'every accepted request has its line')
  t.notOk(lines.some(({ status }) => status === 503))
})

t.test('on standard output lines are whole, beside those of the log', async t => {
  const broker = await startBroker(t, { args: ['-auditLog', '-', '-logLevel', 'INFO'] })
  const client = clientOf(t, broker, 8)
  const ids = Array.from({ length: 2_000 }, (_, nth) => `urn:lamp:${nth}`)
  await Promise.all(ids.map(id => client.send('POST', '/v2/entities', lamp(id))))
  await broker.kill('SIGTERM')
  const printed = broker.stdout.split('\n').filter(line => line !== '')
  const audited = printed.filter(line => line.startsWith('{')).map(line => JSON.parse(line) as Line)
  t.strictSame(new Set(audited.map(({ id }) => id)), new Set(ids))
  const others = printed.filter(line => !line.startsWith('{') && !line.startsWith('time=') && !/is ready at/.test(line))
  t.strictSame(others, [])
})

t.test('there is no start when the file cannot be written', async t => {
  const directory = tempDir(t)
  const missing = join(directory, 'missing')
  const cases: readonly (readonly [file: string, text: string])[] = [
    [join(missing, 'audit.log'), `-auditLog: there is no directory ${missing}`],
    [directory, `-auditLog: ${directory} is not a regular file`],
  ]
  for (const [file, text] of cases) {
    const started = await runToEnd(t, ['-auditLog', file, '-dataDir', join(directory, 'data'), '-port', '1'])
    t.match(started, { code: 1, stderr: `orrery: ${text}` })
    const checked = await runToEnd(t, ['config', 'check', '-auditLog', file, '-dataDir', join(directory, 'data')])
    t.match(checked, { code: 1, stderr: text })
  }
  t.equal(existsSync(missing), false)
})
