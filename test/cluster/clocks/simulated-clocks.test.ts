// Nodes compare clocks of different value and rate over links with faults, under many seeds. What a node measures
// contains the true difference. Only wrong clocks are found wrong, and each node's bounded clock stays within the
// bound.
//
// SEED=<number> SIMULATIONS=1 repeats one run.

import t from 'tap'
import { openAsks } from '../../../cluster/asks/asks.js'
import { ClockWatch } from '../../../cluster/clocks/clock-watch.js'
import { BoundedClock } from '../../../src/process/bounded-clock.js'
import { Random } from '../../support/random.js'
import { type Process, World } from '../simulated-world.js'

const simulations = Number(process.env.SIMULATIONS ?? 10)
const skewMaxMs = 500
/** The error of the clocks that are right, and of those that are wrong. */
const rightMs = 100
const wrongMs = { min: 5_000, max: 20_000 }
/** How long the world runs before the clocks are checked: a difference counts after three seconds. */
const settleMs = 8_000
/** Clocks drift by 0.00045 at most. */
const driftMs = 20

interface Node {
  readonly process: Process
  readonly isWrong: boolean
  readonly clock: BoundedClock
  readonly watch: ClockWatch
  range(of: string): { readonly earliestMs: number; readonly latestMs: number } | undefined
}

async function start(world: World, names: readonly string[], name: string, isWrong: boolean): Promise<Node> {
  const process = world.process(name)
  const { random } = world
  const sign = random.fraction() < 0.5 ? -1 : 1
  process.wallAheadMs = isWrong ? sign * random.between(wrongMs.min, wrongMs.max) : random.between(-rightMs, rightMs)
  const host = { onAsk: (_: number, request: Uint8Array, onReply: (reply: Uint8Array) => void) => onReply(request) }
  const others = names.filter(other => other !== name)
  const peer = (of: string) => ({ name: of, address: `unix:/${of}` })
  const asks = await openAsks(process.transport, peer(name), 'life', others.map(peer), host, process.clock, {
    chance: () => random.fraction(),
  })
  const machine = { ...process.clock, fineWallMs: () => process.clock.wallMs() }
  const clock = new BoundedClock(machine, skewMaxMs)
  const watch = new ClockWatch({
    clock: process.clock,
    skewMaxMs,
    others: () => others.flatMap(other => asks.originOf(other) ?? []),
    onLook: ({ originMs }) => clock.follow(originMs),
  })
  watch.start()
  return { process, isWrong, clock, watch, range: of => asks.originOf(of) }
}

for (let run = 0; run < simulations; run++) {
  const first = Random.fromEnvironment()
  const random = run === 0 ? first : new Random(first.seed + run)
  t.test(`clocks of three to seven nodes, seed ${random.seed}`, async t => {
    const world = new World(random)
    world.settled = () => new Promise(resolve => setImmediate(resolve))
    const size = random.between(3, 7)
    const names = Array.from({ length: size }, (_, n) => `n${n}`)
    const wrong = random.between(0, (size - 1) >> 1)
    const nodes = await Promise.all(names.map((name, n) => start(world, names, name, n < wrong)))
    await world.run(settleMs)
    for (const [n, node] of nodes.entries()) {
      const { state } = node.watch
      t.equal(state.verdict, node.isWrong ? 'unsafe' : 'close', `n${n} is ${node.process.wallAheadMs} ms ahead`)
      const bounded = node.clock.wallMs() - world.wallMs
      t.ok(Math.abs(bounded) <= skewMaxMs + rightMs + driftMs, `n${n} shows ${bounded} ms`)
      for (const [of, other] of nodes.entries()) {
        if (of === n) continue
        const { earliestMs, latestMs } = node.range(`n${of}`)!
        const origin = other.process.clock.wallMs() - node.process.clock.monoMs()
        t.ok(earliestMs - driftMs <= origin && origin <= latestMs + driftMs, `n${n} has measured n${of}`)
      }
    }
  })
}
