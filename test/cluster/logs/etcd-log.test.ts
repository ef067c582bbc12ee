// The driver of etcd keeps the promises of the port with a real etcd, also with faults of its members and connections.

import assert from 'node:assert/strict'
import t, { type Test } from 'tap'
import { type EtcdLog, openEtcdLog } from '../../../cluster/logs/etcd-log.js'
import { type EtcdAddress, type EtcdOptions, parseEtcdAddress } from '../../../cluster/logs/etcd-options.js'
import type { AppendOutcome } from '../../../cluster/logs/shard-log.js'
import { systemClock } from '../../../src/clock.js'
import { certificateFor } from '../../deliver/receivers.js'
import { type Etcd, noEtcd, startEtcd } from '../../support/etcd.js'
import { FaultyProxy } from '../../support/faulty-proxy.js'
import { type Engine, Node, record, shardLogContract } from '../shard-log-contract.js'

const skip = noEtcd()
if (skip) t.comment(skip)

let clusters = 0

/** Nodes of one test in the contract. */
const nodesMax = 4

const ahead: Partial<EtcdOptions> = { deadlineMs: 1000, refollowMsMin: 5, refollowMsMax: 50 }

const plain: Engine = {
  connect: () => assert.fail('nodes are opened'),
  goAway: async () => {},
  comeBack: async () => {},
  run: promise => promise,
}

/** A node whose log is closed when the test ends. */
function open(t: Test, address: EtcdAddress, options: Partial<EtcdOptions> = {}, cluster = `c${clusters++}`): Opened {
  const log = openEtcdLog(address, cluster, systemClock, { ...ahead, ...options })
  t.teardown(() => log.close())
  const none = (): void => {}
  const connection = { log, holdRequests: none, dropAnswers: none, releaseLate: none, mend: none }
  return Object.assign(new Node(connection, plain), { etcdLog: log, cluster })
}

type Opened = Node & { readonly etcdLog: EtcdLog; readonly cluster: string }

/** Tries until the outcome is known, as long as a test may take. */
async function certainly<Outcome extends { readonly kind: string }>(ask: () => Promise<Outcome>): Promise<Outcome> {
  for (let left = 200; left > 0; left--) {
    const outcome = await ask()
    if (outcome.kind !== 'unknown') return outcome
    await new Promise(resolve => setTimeout(resolve, 20))
  }
  throw new Error('it stays unknown')
}

t.test('the contract', { skip }, async t => {
  const etcd = await startEtcd(t)
  const target = etcd.members[0]?.address ?? ''
  shardLogContract(t, async t => {
    const cluster = `c${clusters++}`
    const proxies: FaultyProxy[] = []
    for (let n = 0; n < nodesMax; n++) proxies.push(await FaultyProxy.start(t, target))
    let connected = 0
    return {
      connect: () => {
        const proxy = proxies[connected++]
        assert(proxy, 'a test has no more nodes than proxies')
        return {
          log: openEtcdLog(etcd.address([proxy]), cluster, systemClock, ahead),
          holdRequests: () => {
            proxy.mode = 'hold requests'
          },
          dropAnswers: () => {
            proxy.mode = 'drop answers'
          },
          releaseLate: () => proxy.releaseLate(),
          mend: () => proxy.mend(),
        }
      },
      goAway: async () => {
        for (const proxy of proxies) proxy.goAway()
      },
      comeBack: async () => {
        for (const proxy of proxies) proxy.mend()
      },
      run: promise => promise,
    }
  })
})

t.test(
  'requests go on over the other members when the leader is killed, and nothing that was appended is lost',
  { skip },
  async t => {
    const etcd = await startEtcd(t, { members: 3 })
    const leader = await etcd.leader()
    // The leader is the first member that a client asks, too.
    const members = [leader, ...etcd.members.filter(member => member !== leader)]
    const a = open(t, etcd.address(members), { chance: () => 0 })
    const followed = a.follow()
    await followed.until('gap')
    const appended = await appendAll(a, 60, async n => {
      if (n === 20) await leader.kill()
      if (n === 40) await leader.restart()
    })
    await followed.until(`record 1 60 ${appended.at(-1)}`)
    t.strictSame(
      (await a.texts(1)).map(text => text.split(' ')[1]),
      appended,
    )
    t.not(a.etcdLog.stats().member, leader.address)
  },
)

t.test('requests go on over the other members when the one that is asked is stopped', { skip }, async t => {
  const etcd = await startEtcd(t, { members: 3 })
  const leader = await etcd.leader()
  for (const [who, stopped] of [
    ['that leads', leader],
    ['that follows', etcd.members.find(member => member !== leader)],
  ] as const) {
    assert(stopped)
    const members = [stopped, ...etcd.members.filter(member => member !== stopped)]
    const a = open(t, etcd.address(members), { chance: () => 0, followPingMs: 100, followSilentMs: 500 })
    const followed = a.follow()
    await followed.until('gap')
    const from = followed.events.length
    let stoppedMs = 0
    let tookMs = 0
    const appended = await appendAll(a, 20, async n => {
      if (n === 10) {
        stopped.stop()
        stoppedMs = performance.now()
      }
      if (n === 19) {
        tookMs = performance.now() - stoppedMs
        // Changes reach the follower over another member from then on.
        await followed.until('gap', from)
      }
    })
    await followed.until(`record 1 20 ${appended.at(-1)}`)
    t.strictSame(
      (await a.texts(1)).map(text => text.split(' ')[1]),
      appended,
    )
    t.comment(`a member ${who} was stopped: ${Math.round(tookMs)} ms until all was appended`)
    stopped.goOn()
    await certainly(() => a.takeovers())
  }
})

t.test(
  'a write waits only shortly for a member that is stopped or killed: another one gets it, too',
  { skip },
  async t => {
    const etcd = await startEtcd(t, { members: 3 })
    const leader = await etcd.leader()
    const [first, second] = etcd.members.filter(member => member !== leader)
    assert(first && second)
    const a = open(t, etcd.address([first, second, leader]), { chance: () => 0, deadlineMs: 5000 })
    const epoch = await a.own(1)
    await a.write(1, epoch, 1, 'before')
    /** The time of one write after a fault of the member that is asked. */
    const timed = async (sequence: number, text: string): Promise<number> => {
      const beganMs = performance.now()
      await a.write(1, epoch, sequence, text)
      return performance.now() - beganMs
    }
    t.equal(a.etcdLog.stats().member, first.address)
    first.stop()
    const stoppedMs = await timed(2, 'stopped')
    const nextMs = await timed(3, 'next')
    t.comment(
      `a member was stopped: ${Math.round(stoppedMs)} ms for a write, and ${Math.round(nextMs)} ms for the next`,
    )
    t.ok(stoppedMs < 2000 && nextMs < 1000)
    t.equal(a.etcdLog.stats().member, second.address)
    first.goOn()
    // It passes on now what it found in its socket.
    await certainly(() => open(t, etcd.address([first]), {}, a.cluster).takeovers())
    await second.kill()
    const killedMs = await timed(4, 'killed')
    t.comment(`a member was killed: ${Math.round(killedMs)} ms`)
    t.ok(killedMs < 2000)
    t.strictSame(
      (await a.texts(1)).map(text => text.split(' ')[1]),
      ['before', 'stopped', 'next', 'killed'],
    )
  },
)

t.test('a second try is safe: the first may be executed before it, or long after', { skip }, async t => {
  const etcd = await startEtcd(t)
  const [member] = etcd.members
  assert(member)
  const proxy = await FaultyProxy.start(t, member.address)
  const options = { chance: () => 0, secondTryMs: 50, deadlineMs: 5000 }
  const direct = open(t, etcd.address())
  const epoch = await direct.own(1)
  const texts = async () => (await direct.texts(1)).map(text => text.split(' ')[1])

  proxy.mode = 'drop answers'
  const executed = open(t, etcd.address([proxy, member]), options, direct.cluster)
  t.match(await executed.append(record(1, epoch, 1, 'once')), { kind: 'appended' })
  t.strictSame(await texts(), ['once'])

  proxy.mode = 'pass'
  const late = open(t, etcd.address([proxy, member]), options, direct.cluster)
  await late.read(1)
  proxy.mode = 'hold requests'
  t.match(await late.append(record(1, epoch, 2, 'twice')), { kind: 'appended' })
  await direct.write(1, epoch, 3, 'after')
  proxy.releaseLate()
  await direct.write(1, epoch, 4, 'last')
  t.strictSame(await texts(), ['once', 'twice', 'after', 'last'])
})

t.test('a takeover is not tried twice', { skip }, async t => {
  const etcd = await startEtcd(t)
  const [member] = etcd.members
  assert(member)
  const proxy = await FaultyProxy.start(t, member.address)
  proxy.mode = 'drop answers'
  const a = open(t, etcd.address([proxy, member]), { chance: () => 0, secondTryMs: 20, deadlineMs: 500 })
  t.match(await a.takeOver(1), { kind: 'unknown' })
})

t.test('the version of each member that answers is known', { skip }, async t => {
  const etcd = await startEtcd(t)
  const address = etcd.address([...etcd.members, { address: '127.0.0.1:1' }])
  const versions = await open(t, address).etcdLog.versions()
  t.strictSame([...versions.keys()], [etcd.members[0]?.address])
  t.match([...versions.values()][0], /^\d+\.\d+\.\d+/)
})

/**
 * Appends `count` records one after the other. For each unknown outcome it finds out by retake and read whether the
 * record is in the log.
 */
async function appendAll(node: Opened, count: number, before: (n: number) => Promise<void>): Promise<string[]> {
  let epoch = await node.own(1)
  const texts: string[] = []
  for (let n = 1; n <= count; n++) {
    await before(n)
    const text = `text${n}`
    for (let outcome: AppendOutcome['kind'] = 'unknown'; outcome !== 'appended'; ) {
      outcome = (await node.append(record(1, epoch, n, text))).kind
      if (outcome === 'appended') break
      const taken = await certainly(() => node.takeOver(1))
      assert(taken.kind === 'taken')
      epoch = taken.epoch
      const reading = await certainly(() => node.read(1, n - 1))
      assert(reading.kind === 'read')
      if (reading.last === n) outcome = 'appended'
    }
    texts.push(text)
  }
  return texts
}

t.test('while all members are stopped every request ends in time', { skip }, async t => {
  const etcd = await startEtcd(t)
  const a = open(t, etcd.address(), { deadlineMs: 300 })
  const epoch = await a.own(1)
  etcd.members[0]?.stop()
  const beganMs = performance.now()
  const outcomes = await Promise.all([a.takeovers(), a.append(record(1, epoch, 1, 'x')), a.read(1)])
  t.strictSame(
    outcomes.map(({ kind }) => kind),
    ['unknown', 'unknown', 'unknown'],
  )
  t.ok(performance.now() - beganMs < 1500, 'in time')
  etcd.members[0]?.goOn()
  t.match(await certainly(() => a.takeovers()), { kind: 'read' })
})

t.test('a connection without answers is given up for a new one', { skip }, async t => {
  const etcd = await startEtcd(t)
  const proxy = await FaultyProxy.start(t, etcd.members[0]?.address ?? '')
  proxy.mode = 'drop answers'
  const a = open(t, etcd.address([proxy]), { deadlineMs: 100, connectMs: 300, followSilentMs: 300, followPingMs: 100 })
  const followed = a.follow()
  t.match(await a.takeovers(), { kind: 'unknown' })
  // Bytes pass again, but the open connections have lost their greeting.
  proxy.mode = 'pass'
  t.match(await certainly(() => a.takeovers()), { kind: 'read' })
  await followed.until('gap')
})

t.test('it is known for how long everything was reported', { skip }, async t => {
  const etcd = await startEtcd(t)
  const [member] = etcd.members
  const a = open(t, etcd.address(), { followPingMs: 50, followSilentMs: 300 })
  const { etcdLog } = a
  const until = async (isSo: () => boolean): Promise<void> => {
    while (!isSo()) await new Promise(resolve => setTimeout(resolve, 10))
  }
  t.equal(etcdLog.followedMs, 0, 'nothing is followed yet')
  a.follow()
  await until(() => etcdLog.followedMs > 500)
  member!.stop()
  await until(() => etcdLog.followedMs === 0)
  t.pass('a member that is stopped reports nothing')
  member!.goOn()
  await until(() => etcdLog.followedMs > 100)
})

t.test('with too many requests in flight another one is unknown at once', { skip }, async t => {
  const etcd = await startEtcd(t)
  const a = open(t, etcd.address(), { requestsMax: 2 })
  const outcomes = await Promise.all([a.takeovers(), a.takeovers(), a.takeovers()])
  t.match(outcomes, [{ kind: 'read' }, { kind: 'read' }, { kind: 'unknown', reason: /too many/ }])
  t.match(await a.takeovers(), { kind: 'read' })
})

t.test(
  'trimmed records do not fill a quota: ten times of it is written, and the kept records are read',
  { skip },
  async t => {
    const quotaBytes = 16 * 1024 * 1024
    const etcd = await startEtcd(t, { args: [`--quota-backend-bytes=${quotaBytes}`, '--auto-compaction-retention=0'] })
    const a = open(t, etcd.address(), { compactMs: 50, deadlineMs: 5000 })
    const epoch = await a.own(1)
    const kept = 20
    const bytes = Buffer.alloc(32 * 1024, 'x')
    const count = (10 * quotaBytes) / bytes.length
    for (let n = 1; n <= count; n++) {
      const outcome = await a.append({ shard: 1, epoch, sequence: n, bytes })
      if (outcome.kind !== 'appended') return t.match(outcome, { kind: 'appended' }, `record ${n}`)
      if (n % 10 === 0) a.log.trim(1, n - kept)
    }
    a.log.trim(1, count - kept)
    await a.untilReading(1, ({ records }) => records[0]?.sequence === count - kept + 1)
    const sequences: number[] = []
    for (let after = 0; after < count; ) {
      const { records } = await a.reading(1, after)
      for (const one of records) sequences.push(one.sequence)
      after = sequences.at(-1) ?? count
    }
    t.strictSame(
      sequences,
      Array.from({ length: kept }, (_, n) => count - kept + 1 + n),
    )
    t.ok(a.etcdLog.stats().requests.compact.requests > 10)
  },
)

t.test('several nodes may compact, and none of them takes that for a failure', { skip }, async t => {
  const etcd = await startEtcd(t)
  const cluster = `c${clusters++}`
  const nodes = [1, 2, 3].map(() => open(t, etcd.address(), { compactMs: 10 }, cluster))
  for (let turn = 0; turn < 100; turn++) await Promise.all(nodes.map((node, shard) => node.own(shard)))
  const stats = nodes.map(node => node.etcdLog.stats().requests.compact)
  t.ok(stats.every(({ requests }) => requests > 0))
  t.strictSame(
    stats.map(({ failures }) => failures),
    [0, 0, 0],
  )
})

t.test('requests, records, bytes, times and failures are counted by kind', { skip }, async t => {
  const etcd = await startEtcd(t)
  const a = open(t, etcd.address())
  const followed = a.follow()
  await followed.until('gap')
  const epoch = await a.own(1)
  await a.write(1, epoch, 1, 'x'.repeat(1000), 'y')
  await a.texts(1)
  await followed.until('record 1 2 y')
  const { requests, followed: records, rotations } = a.etcdLog.stats()
  t.match(requests, {
    takeOver: { requests: 1, failures: 0, bytes: 0 },
    append: { requests: 2, failures: 0, records: 2, bytes: 1001 },
    read: { requests: 2, failures: 0, records: 2, bytes: 1001 },
  })
  t.ok(requests.append.milliseconds > 0)
  t.strictSame(records, { records: 2, bytes: 1001, takeovers: 1, gaps: 1 })
  t.equal(rotations, 0)
  await etcd.members[0]?.kill()
  await a.takeovers()
  t.match(a.etcdLog.stats().requests.takeovers, { requests: 1, failures: 1 })
})

t.test('over TLS only a client that knows the authority gets through', { skip }, async t => {
  const tls = certificateFor(t, 'IP:127.0.0.1')
  const etcd = await startEtcd(t, { tls })
  const a = open(t, etcd.address(), { tls: { ca: tls.cert } })
  t.match(await certainly(() => a.takeOver(1, 'a')), { kind: 'taken' })
  const b = open(t, etcd.address())
  t.match(await b.takeOver(1, 'b'), { kind: 'unknown' })
})

t.test('after a renewal requests show the new certificate, and followers continue', { skip }, async t => {
  const tls = certificateFor(t, 'IP:127.0.0.1')
  const [ours, stranger] = [certificateFor(t, 'IP:127.0.0.1'), certificateFor(t, 'IP:127.0.0.1')]
  const args = ['--client-cert-auth', `--trusted-ca-file=${ours.certFile}`]
  const etcd = await startEtcd(t, { tls, args })
  const shown = ({ cert, key }: typeof ours) => ({ ca: tls.cert, cert, key })
  const a = open(t, etcd.address(), { tls: shown(ours) })
  const followed = a.follow()
  await followed.until('gap')
  await a.own(1, 'first')
  await followed.until('takeover 1 first')
  const b = open(t, etcd.address(), { tls: shown(ours) }, a.cluster)
  t.match(await certainly(() => b.takeovers()), { kind: 'read' })

  b.etcdLog.renew(shown(stranger))
  t.match(await b.takeovers(), { kind: 'unknown' }, 'etcd lets in no stranger')
  b.etcdLog.renew(shown(ours))
  a.etcdLog.renew(shown(ours))
  const from = followed.events.length
  t.match(await certainly(() => b.takeOver(1, 'second')), { kind: 'taken' })
  await followed.until('takeover 1 second', from)
  t.notOk(followed.events.slice(from).includes('gap'), 'the watch goes on over its old connection')
  t.throws(() => a.etcdLog.renew({ ca: tls.cert, key: ours.key }), /a key its certificate/)
})

t.test(
  'with a password requests and following get through, also after etcd has forgotten its tokens',
  { skip },
  async t => {
    const etcd = await startEtcd(t)
    await protect(etcd)
    const address = { ...etcd.address(), user: 'root', password: 'p@ss:word' }
    const a = open(t, address, { deadlineMs: 5000 })
    const followed = a.follow()
    await followed.until('gap')
    await a.own(1, 'before')
    await followed.until('takeover 1 before')
    const from = followed.events.length
    await etcd.members[0]?.kill()
    await etcd.members[0]?.restart()
    t.match(await certainly(() => a.takeOver(1, 'after')), { kind: 'taken' })
    await followed.until('gap', from)
    await a.own(1, 'heard')
    await followed.until('takeover 1 heard')
    const refused = { kind: 'unknown', isRefused: true }
    t.match(await open(t, etcd.address()).takeOver(1, 'nobody'), refused)
    const wrong = open(t, { ...address, password: 'wrong' }, { deadlineMs: 5000 })
    t.match(await wrong.takeOver(1, 'nobody'), { ...refused, reason: /authentication failed/ })
  },
)

async function protect(etcd: Etcd): Promise<void> {
  const { Etcd3 } = await import('etcd3')
  const client = new Etcd3({ hosts: `http://${etcd.members[0]?.address}` })
  await client.user('root').create('p@ss:word')
  const role = await client
    .role('root')
    .create()
    .catch(() => client.role('root'))
  await client.user('root').addRole(role)
  await client.auth.authEnable()
  client.close()
}

t.test('an address is read, or refused with its fault', async t => {
  t.strictSame(parseEtcdAddress('etcd://a:2379,10.0.0.1:2380,[::1]:1'), {
    members: ['a:2379', '10.0.0.1:2380', '[::1]:1'],
    secure: false,
    user: undefined,
    password: undefined,
  })
  t.strictSame(parseEtcdAddress('etcds://us%40er:p%3Aw:x@a:1/'), {
    members: ['a:1'],
    secure: true,
    user: 'us@er',
    password: 'p:w:x',
  })
  const wrong = [
    '',
    'http://a:1',
    'etcd://',
    'etcd://a',
    'etcd://a:0',
    'etcd://a:1,',
    'etcd://a:65536',
    'etcd://u@a:1',
    'etcd://:p@a:1',
    'etcd://%:p@a:1',
  ]
  for (const text of [...wrong, `etcd://${Array.from({ length: 17 }, () => 'a:1')}`]) {
    t.type(parseEtcdAddress(text), 'string', text)
  }
})
