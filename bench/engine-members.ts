// The view of clients when one of the three members of the log's engine stops or is killed.
//
// Writes come due at a pace, to all shards in turn. The wait counts from the due time of a write to its answer, for the
// writes that wait at some time from the fault on until the member is back. A member that follows is replaced by a
// second try at another one. If the leader fails, the engine elects another one, which takes longer: its own time limits
// decide.

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { EtcdMemberProcess } from '../test/support/etcd.js'
import { countersOf, createCounters } from './counters.js'
import { steadyMs } from './machine.js'
import { startNodes } from './nodes.js'
import { startOpenLoop } from './open-loop.js'
import { atMost, type Finding, information, median, progress, thousands } from './report.js'
import type { Subject } from './servers.js'

const needed = { waitMs: 500 }
const perSecond = 160
const connections = 192
/** Before a fault, and how long it lasts. */
const restMs = 2_000
const faultMs = 4_000

interface Fault {
  readonly name: string
  readonly hasLed: boolean
  begin(member: EtcdMemberProcess): void | Promise<void>
  end(member: EtcdMemberProcess): void | Promise<void>
}

const stopped = {
  begin: (member: EtcdMemberProcess) => member.stop(),
  end: (member: EtcdMemberProcess) => member.goOn(),
}
const killed = {
  begin: (member: EtcdMemberProcess) => member.kill(),
  end: (member: EtcdMemberProcess) => member.restart(),
}

const faults: readonly Fault[] = [
  { name: 'a member that follows is stopped', hasLed: false, ...stopped },
  { name: 'a member that follows is killed', hasLed: false, ...killed },
  { name: 'the leader is stopped', hasLed: true, ...stopped },
  { name: 'the leader is killed', hasLed: true, ...killed },
]

interface Write {
  readonly dueMs: number
  readonly answeredMs: number
}

export async function engineMembers(subject: Subject, folder: string, rounds: number): Promise<Finding[]> {
  const dataDir = join(folder, 'members')
  const nodes = await startNodes(subject, dataDir, 3)
  const counters = countersOf(1, nodes.shards)
  await createCounters(nodes.urls, counters)
  const writes: Write[] = []
  let failed = 0
  const loop = await startOpenLoop({
    urls: nodes.urls,
    perSecond,
    connections,
    request: n => counters[n % counters.length]!.increment,
    onAnswer: (_, { isSuccess }, dueMs, answeredMs) => {
      writes.push({ dueMs, answeredMs })
      if (!isSuccess) failed++
    },
  })
  const waits = new Map<Fault, number[]>(faults.map(fault => [fault, []]))
  const failing = async (): Promise<void> => {
    for (let round = 1; round <= rounds; round++)
      for (const fault of faults) {
        await delay(restMs)
        const leader = await nodes.etcd.leader()
        const member = fault.hasLed ? leader : nodes.etcd.members.find(one => one !== leader)!
        const fromMs = steadyMs()
        await fault.begin(member)
        await delay(faultMs)
        await fault.end(member)
        const during = writes.filter(({ dueMs, answeredMs }) => answeredMs >= fromMs && dueMs <= fromMs + faultMs)
        const longest = Math.max(...during.map(({ dueMs, answeredMs }) => answeredMs - dueMs))
        waits.get(fault)!.push(longest)
        progress(`round ${round}, ${fault.name}: longest wait ${longest.toFixed(0)} ms of ${during.length} writes`)
      }
    await delay(restMs)
  }
  // The first failure is reported.
  await Promise.race([failing(), loop.ended])
  await loop.end()
  await nodes.stop()
  rmSync(dataDir, { recursive: true })
  return [
    ...faults.map(fault => {
      const found = waits.get(fault)!
      const text = `median ${median(found).toFixed(0)}, worst ${Math.max(...found).toFixed(0)} ms`
      const name = `${fault.name}: longest wait of a write`
      return fault.hasLed ? information(name, text) : atMost(name, text, median(found), needed.waitMs, 'ms')
    }),
    information('writes refused meanwhile', `${thousands(failed)} of ${thousands(writes.length)}`),
  ]
}
