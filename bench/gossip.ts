// The costs of gossip and the time until it detects a death, measured in a simulated world beside the formulas of
// cluster/gossip/gossip-options.ts.
//
// Time is simulated and chance comes from a seed, so the numbers do not depend on the machine. They check the formulas
// against the code, and the code against the formulas. Bytes are those of real messages.
//
// Not here: CPU time of a message, which is that of the wire.

import { encodeMessage, type GossipMessage, rumourLength } from '../cluster/gossip/gossip-messages.js'
import {
  exchangeEveryMs,
  gossipOptionsDefault,
  gossipVersion,
  gossipVersionLowest,
  helperShare,
  suspicionMs,
} from '../cluster/gossip/gossip-options.js'
import { type GossipNode, GossipWorld } from '../test/cluster/simulated-gossip.js'
import { Random } from '../test/support/random.js'
import { type Finding, information } from './report.js'

const options = gossipOptionsDefault
const { periodMs, pingTimeoutMs, spreadMs } = options

/** Share of lost messages, each way. */
const lossShare = 0.05
const hourMs = 3_600_000
const apartMax = 0.2

/** Findings about gossip among this number of members. */
export async function gossip(size: number, isQuick: boolean, say: (line: string) => void): Promise<readonly Finding[]> {
  const seed = Number(process.env.SEED ?? 1)
  say(`${size} members that gossip, SEED=${seed}`)
  const world = await assemble(size, seed)
  say(`${size} members at rest`)
  const bytes = await rest(world, isQuick ? 60_000 : 10 * exchangeEveryMs(options, size))
  say(`${size} members, ${lossShare * 100} % of messages lost`)
  const losses = await lose(world, isQuick ? 1 : size === 3 ? 30 : 150)
  say(`${size} members, one after the other is killed`)
  const times = isQuick ? 5 : size > 100 ? 40 : 200
  const deaths = await detect(world, times, 'with its machine')
  const ends = await detect(world, times, 'alone')
  const first = mean(deaths.map(({ firstMs }) => firstMs))
  const all = mean(deaths.map(({ allMs }) => allMs))
  const worst = Math.max(...deaths.map(({ allMs }) => allMs))
  const endKnown = mean(ends.map(({ firstMs }) => firstMs))
  const endWorst = Math.max(...ends.map(({ allMs }) => allMs))
  return [
    againstFormula('dead to the first, mean', first, firstFormulaMs(size), 'ms'),
    againstFormula('dead to all, mean', all, firstFormulaMs(size) + spreadFormulaMs(size), 'ms'),
    information('dead to all, worst', `${worst.toFixed(0)} ms of ${deaths.length}`),
    againstFormula('only its process has ended: dead to the first, mean', endKnown, endFormulaMs(size), 'ms'),
    information('dead to all, worst', `${endWorst.toFixed(0)} ms of ${ends.length}`),
    againstFormula('bytes per member and second', bytes.found, bytes.formula, ''),
    againstFormula('suspicions per member-hour, 5 % lost', losses.suspicions, suspicionsFormula(size), ''),
    {
      name: 'taken for dead and alive, 5 % lost',
      found: `${losses.deaths} in ${losses.memberHours.toFixed(0)} member-hours`,
      needed: '0',
      isShort: losses.deaths > 0,
    },
  ]
}

function againstFormula(name: string, found: number, formula: number, unit: string): Finding {
  const ratio = found / formula
  const digits = formula < 10 ? 2 : 0
  return {
    name,
    found: `${found.toFixed(digits)} ${unit} / ${formula.toFixed(digits)} = ${ratio.toFixed(2)}`.replace('  ', ' '),
    needed: `${1 - apartMax} to ${1 + apartMax}`,
    isShort: !(Math.abs(ratio - 1) <= apartMax),
  }
}

function firstFormulaMs(size: number): number {
  const probedMs = (periodMs * (size - 1)) / size
  const failedMs = pingTimeoutMs + helperShare * (periodMs - pingTimeoutMs)
  return probedMs + failedMs + suspicionMs(options, size, options.confirmations)
}

function endFormulaMs(size: number): number {
  return (periodMs * (size - 1)) / size + suspicionMs(options, size, options.confirmations, true)
}

function spreadFormulaMs(size: number): number {
  const left = size - 1
  let harmonic = 0
  for (let n = 1; n < left; n++) harmonic += 1 / n
  return ((periodMs * 2) / (2 + periodMs / spreadMs)) * ((left - 1) / left) * harmonic
}

/** A probe fails when both pings and all helpers fail: two messages each, and four. */
function suspicionsFormula(size: number): number {
  const ping = 1 - (1 - lossShare) ** 2
  const helper = 1 - (1 - lossShare) ** 4
  return (hourMs / periodMs) * ping ** 2 * helper ** Math.min(options.helpers, size - 2)
}

function bytesFormula(nodes: readonly GossipNode[]): number {
  const length = (node: GossipNode, kind: 'ping' | 'acknowledgement') => {
    const { name, life } = node
    const head = {
      version: gossipVersion,
      lowestVersion: gossipVersionLowest,
      cluster: 'c',
      from: { name, life, incarnation: 1 },
    }
    const body: GossipMessage =
      kind === 'ping' ? { ...head, kind, to: { name, life }, rumours: [] } : { ...head, kind, rumours: [] }
    return encodeMessage(body).length
  }
  const ping = mean(nodes.map(node => length(node, 'ping')))
  const acknowledgement = mean(nodes.map(node => length(node, 'acknowledgement')))
  const member = mean(nodes.map(({ gossip }) => rumourLength({ member: gossip.members()[0]!, suspectedBy: [] })))
  const exchanges = (2 * nodes.length * member * 1000) / exchangeEveryMs(options, nodes.length)
  return ((ping + acknowledgement) * 1000) / periodMs + exchanges
}

async function assemble(size: number, seed: number): Promise<GossipWorld> {
  const world = new GossipWorld(new Random(seed))
  world.delayMs = () => 0.5 + world.world.random.fraction()
  const names = Array.from({ length: size }, (_, n) => `m${n}`)
  const nodes = await world.startAll(names, 20_000)
  const known = nodes.filter(node => world.view(node).length === size).length
  if (known !== size) throw new Error(`only ${known} of ${size} members know all`)
  return world
}

/** One after the other is killed, detected, and begins a new life. */
async function detect(
  world: GossipWorld,
  times: number,
  how: 'alone' | 'with its machine',
): Promise<{ firstMs: number; allMs: number }[]> {
  const { random } = world.world
  const found: { firstMs: number; allMs: number }[] = []
  for (let left = times; left > 0; left--) {
    await world.world.run(random.fraction() * 2000)
    const victim = random.pick(world.running as [GossipNode])
    const others = world.running.filter(node => node !== victim)
    const killedMs = world.world.nowMs
    for (const node of others) node.changes.length = 0
    world.kill(victim, how)
    const noticed = () =>
      others.flatMap(({ changes }) =>
        changes.filter(({ member }) => member.name === victim.name && member.status === 'dead').slice(0, 1),
      )
    for (let waits = 0; noticed().length < others.length; waits++) {
      if (waits > 600) throw new Error(`${victim.name} has been dead for a minute and not all know`)
      await world.world.run(100)
    }
    const timesMs = noticed().map(({ atMs }) => atMs - killedMs)
    found.push({ firstMs: Math.min(...timesMs), allMs: Math.max(...timesMs) })
    world.start(victim.name, { seeds: [others[0]!.address] })
    await world.world.run(5000)
  }
  return found
}

async function rest(world: GossipWorld, restMs: number): Promise<{ found: number; formula: number }> {
  const nodes = world.running
  const sent = () => nodes.reduce((sum, { gossip }) => sum + gossip.stats().bytesSent, 0)
  const before = sent()
  await world.world.run(restMs)
  return { found: ((sent() - before) * 1000) / restMs / nodes.length, formula: bytesFormula(nodes) }
}

async function lose(
  world: GossipWorld,
  memberHours: number,
): Promise<{ suspicions: number; deaths: number; memberHours: number }> {
  const nodes = world.running
  for (const { changes } of nodes) changes.length = 0
  const suspicions = () => nodes.reduce((sum, { gossip }) => sum + gossip.stats().suspicions, 0)
  const before = suspicions()
  world.faults.lost = lossShare
  await world.world.run((memberHours * hourMs) / nodes.length)
  world.faults.lost = 0
  const found = (suspicions() - before) / memberHours
  await world.world.run(20_000)
  const deaths = nodes.flatMap(({ changes }) => changes.filter(({ member }) => member.status === 'dead')).length
  return { suspicions: found, deaths, memberHours }
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}
