// Events that happen to a cluster. Each lasts for a while, and is over when its function resolves. All but the restart
// in turn are faults.

import { setTimeout as pause } from 'node:timers/promises'
import { type ClusterScene, memberName, type NodeName, nodeNames, untilStopped } from '../support/cluster-scene.js'
import type { EtcdMemberProcess } from '../support/etcd.js'
import type { Random } from '../support/random.js'
import type { ClusterLoad } from './cluster-load.js'

/** The cluster to hurt, the clients that notice it, and the source of random choices. */
export interface Victims {
  readonly scene: ClusterScene
  readonly load: ClusterLoad
  readonly random: Random
}

/** Returns a report for people. */
type Fault = (victims: Victims) => Promise<string>

export const faults = {
  'a node is killed': async ({ scene, random }) => {
    const name = random.pick(nodeNames)
    const awayMs = random.between(0, 4_000)
    await scene.kill(name)
    await pause(awayMs)
    await scene.begin(name)
    return `${name}, away for ${awayMs} ms`
  },

  'all nodes are restarted in turn': async ({ scene, load }) => {
    for (const name of nodeNames) {
      const status = await scene.restart(name)
      if (status !== 0) load.problems.push(`${name} was asked to end, and ended with ${status}`)
    }
    return nodeNames.join(', ')
  },

  'a node is stopped': async ({ scene, random }) => {
    const name = random.pick(nodeNames)
    const stoppedMs = lastingMs(random)
    await scene.stop(name)
    await pause(stoppedMs)
    scene.goOn(name)
    return `${name}, for ${stoppedMs} ms`
  },

  'a node is cut off': async ({ scene, random }) => {
    const name = random.pick(nodeNames)
    const cutMs = lastingMs(random)
    const from = random.pick(['the others', 'etcd', 'both'])
    const manner = random.pick(['deaf', 'dumb', 'silent', 'refused'])
    for (const other of across(scene, name, from)) {
      if (manner === 'refused') scene.network.refuse(name, other)
      if (manner === 'deaf' || manner === 'silent') scene.network.silence(other, name)
      if (manner === 'dumb' || manner === 'silent') scene.network.silence(name, other)
    }
    await pause(cutMs)
    scene.network.mend()
    return `${name} from ${from}, ${manner}, for ${cutMs} ms`
  },

  'a member of etcd is stopped': ({ scene, random }) => standStill([random.pick(membersOf(scene))], random),

  'two members of etcd are stopped': async ({ scene, load, random }) => {
    const well: EtcdMemberProcess = random.pick(membersOf(scene))
    const others = scene.etcd.members.filter(member => member !== well)
    return standStill(others, random, isStill => {
      load.silentSinceMs = isStill ? performance.now() : undefined
    })
  },

  'the leader of etcd is killed': async ({ scene, random }) => {
    const leader = await scene.etcd.leader()
    const awayMs = random.between(0, 4_000)
    await leader.kill()
    await pause(awayMs)
    await leader.restart()
    return `away for ${awayMs} ms`
  },
} as const satisfies Record<string, Fault>

export type FaultKind = keyof typeof faults

/** `count` kinds in random order, each as often as the others as far as possible. */
export function pickKinds(count: number, random: Random): FaultKind[] {
  const picked: FaultKind[] = []
  while (picked.length < count) {
    const left = Object.keys(faults) as FaultKind[]
    while (left.length > 0 && picked.length < count) picked.push(...left.splice(random.between(0, left.length - 1), 1))
  }
  return picked
}

/** Short enough that nothing happens, or long enough for other nodes to take over and acknowledge a write. */
function lastingMs(random: Random): number {
  return random.fraction() < 0.5 ? random.between(1_000, 3_000) : random.between(6_000, 9_000)
}

/** The nodes and members of etcd that a node does not reach. */
function across(scene: ClusterScene, name: NodeName, from: 'the others' | 'etcd' | 'both'): string[] {
  const nodes = nodeNames.filter(other => other !== name)
  const members = scene.etcd.members.map((_, at) => memberName(at))
  return [...(from === 'etcd' ? [] : nodes), ...(from === 'the others' ? [] : members)]
}

/** Stops members for some seconds. Calls `onStill` when all of them are stopped, and before they continue. */
async function standStill(
  members: readonly EtcdMemberProcess[],
  random: Random,
  onStill = (_isStill: boolean): void => {},
): Promise<string> {
  const stoppedMs = random.between(2_000, 6_000)
  for (const member of members) member.stop()
  await Promise.all(members.map(({ pid }) => untilStopped(pid ?? 0)))
  onStill(true)
  await pause(stoppedMs)
  onStill(false)
  for (const member of members) member.goOn()
  return `for ${stoppedMs} ms`
}

const membersOf = ({ etcd }: ClusterScene): readonly [EtcdMemberProcess, ...EtcdMemberProcess[]] =>
  etcd.members as [EtcdMemberProcess, ...EtcdMemberProcess[]]
