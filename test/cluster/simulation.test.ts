// The promises of links and calls (cluster/README.md, cluster/ports.ts), on a network and among processes with many
// faults, under many seeds: processes are stopped and killed, come back under the same address or another one, and are
// taken for gone and met again.
//
// SEED=<number> SIMULATIONS=1 repeats one run; SIMULATIONS=<number> makes more of them.

import t from 'tap'
import { type Asks, openAsks } from '../../cluster/asks/asks.js'
import type { AskResult, Peer } from '../../cluster/ports.js'
import { Random } from '../support/random.js'
import { type End, type Process, World } from './simulated-world.js'

const simulations = Number(process.env.SIMULATIONS ?? 12)

const options = {
  askDeadlineMs: 400,
  inFlightMax: 25,
  pingMs: 50,
  silentMs: 200,
  abandonMs: 700,
  redialMsMin: 10,
  redialMsMax: 100,
}

/**
 * How much later than its deadline an ask may end, in a process that runs: a turn of its timer, on a clock of its own.
 */
const lateMsMax = 5

const names = ['a', 'b', 'c'] as const

type Name = (typeof names)[number]

/** How long a call may take. */
const callMs = 150

interface AskRecord {
  readonly sender: Process
  readonly askedMs: number
  readonly deadlineMs: number
  begun: number
  readonly outcomes: AskResult['kind'][]
}

interface Called {
  readonly caller: Process
  readonly calledMs: number
  readonly deadlineMs: number
  arrived: number
  ended: number
}

interface Node {
  process: Process
  asks: Asks
}

/** All events of one run, and the errors among them. */
class Story {
  readonly wrong: string[] = []
  readonly asked: AskRecord[] = []
  readonly called: Called[] = []
  readonly counts = { reply: 0, unavailable: 0, unknown: 0, answered: 0, unanswered: 0, parted: 0, moved: 0 }
  readonly world: World
  /** Hosts reply at once. */
  peace = false
  private readonly nodes = new Map<string, Node>()
  /** The address of each node now, or in its next life. */
  private readonly addresses = new Map<string, string>(names.map(name => [name, `unix:/${name}`]))
  private lives = 0

  constructor(random: Random) {
    this.world = new World(random)
  }

  /** Begins the (next) life of a node. */
  async start(name: Name): Promise<void> {
    const process = this.world.process(name)
    const others = names.filter(other => other !== name).map(other => this.peer(other))
    const host = {
      onAsk: (shard: number, request: Uint8Array, onReply: (reply: Uint8Array) => void, view: number) => {
        this.onBegun(process, shard, request, onReply, view)
      },
    }
    const onCall = (message: Buffer, onReply: (reply: Uint8Array) => void): void => {
      const one = this.called[message.readUInt32LE()]!
      if (++one.arrived > 1) this.wrong.push(`a call arrived ${one.arrived} times`)
      if (this.world.chance(0.9)) onReply(message)
    }
    const chance = () => this.world.random.fraction()
    const given = { ...options, chance }
    const life = `life ${this.lives++}`
    const asks = await openAsks(process.transport, this.peer(name), life, others, host, process.clock, given, {
      onCall,
    })
    asks.onTrouble(trouble => this.wrong.push(trouble))
    this.nodes.set(name, { process, asks })
  }

  node(name: string): Node {
    return this.nodes.get(name)!
  }

  /** A node learns the address of another one; of itself it learns nothing. */
  report(name: Name, of: Name): void {
    if (name !== of) this.node(name).asks.meet(this.peer(of))
  }

  call(from: Name, to: Name): void {
    const { process: caller } = this.node(from)
    const deadlineMs = caller.clock.monoMs() + callMs
    const one: Called = { caller, calledMs: this.world.nowMs, deadlineMs, arrived: 0, ended: 0 }
    const message = Buffer.alloc(4)
    message.writeUInt32LE(this.called.push(one) - 1)
    caller.transport.call(this.peer(to).address, message, callMs, reply => {
      if (++one.ended > 1) this.wrong.push(`a call ended ${one.ended} times`)
      if (reply && (one.arrived === 0 || !reply.equals(message))) this.wrong.push('a call has the reply of another')
      if (reply) this.counts.answered++
      else this.counts.unanswered++
      const lateMs = caller.clock.monoMs() - one.deadlineMs
      if (lateMs > lateMsMax && caller.resumedMs < one.calledMs) this.wrong.push(`a call ended ${lateMs} ms late`)
    })
  }

  private peer(name: Name): Peer {
    return { name, address: this.addresses.get(name)! }
  }

  ask(from: string, to: string): AskRecord {
    const { process: sender, asks } = this.node(from)
    const nowMs = sender.clock.monoMs()
    const one: AskRecord = {
      sender,
      askedMs: this.world.nowMs,
      deadlineMs: nowMs + options.askDeadlineMs,
      begun: 0,
      outcomes: [],
    }
    const number = this.asked.push(one) - 1
    const request = Buffer.alloc(this.world.chance(0.02) ? 50_000 : 8)
    request.writeUInt32LE(number)
    asks.ask(to, number % 256, request, outcome => this.onOutcome(number, one, outcome), undefined, number % 5)
    return one
  }

  private onBegun(
    host: Process,
    shard: number,
    request: Uint8Array,
    onReply: (reply: Uint8Array) => void,
    view: number,
  ): void {
    const { random } = this.world
    const number = Buffer.from(request).readUInt32LE()
    const one = this.asked[number]!
    one.begun++
    if (shard !== number % 256) this.wrong.push(`ask ${number} came to shard ${shard}`)
    if (view !== number % 5) this.wrong.push(`ask ${number} came with view ${view}`)
    if (one.begun > 1) this.wrong.push(`ask ${number} was begun ${one.begun} times`)
    if (one.outcomes.includes('unavailable')) this.wrong.push(`ask ${number} was begun although unavailable`)
    const lateMs = one.sender.clock.monoMs() - one.deadlineMs
    if (lateMs >= 0) this.wrong.push(`ask ${number} was begun ${lateMs} ms after its deadline`)
    const reply = Buffer.alloc(
      random.pick([0, 20, 20, 20, 20, 2000, this.world.chance(0.1) ? 600_000 : 20]),
      number % 251,
    )
    const delayMs = this.peace ? 0 : random.pick([0, 0, random.between(1, 30), random.between(1, 600)])
    if (delayMs === 0) onReply(reply)
    else host.at(this.world.nowMs + delayMs, () => onReply(reply))
  }

  private onOutcome(number: number, one: AskRecord, outcome: AskResult): void {
    one.outcomes.push(outcome.kind)
    this.counts[outcome.kind]++
    if (one.outcomes.length > 1) this.wrong.push(`ask ${number} ended ${one.outcomes.length} times`)
    if (outcome.kind === 'unavailable' && one.begun > 0) this.wrong.push(`ask ${number} is unavailable and was begun`)
    if (outcome.kind === 'reply') {
      if (one.begun === 0) this.wrong.push(`ask ${number} was answered by nobody`)
      if (outcome.reply.some(byte => byte !== number % 251)) this.wrong.push(`ask ${number} has the reply of another`)
    }
    const { sender, askedMs, deadlineMs } = one
    const lateMs = sender.clock.monoMs() - deadlineMs
    if (lateMs > lateMsMax && sender.resumedMs < askedMs) this.wrong.push(`ask ${number} ended ${lateMs} ms late`)
  }

  /** Causes a random fault. */
  disturb(): void {
    const { world } = this
    const { random } = world
    const name = random.pick(names)
    const { process, asks } = this.node(name)
    const what = random.between(0, 12)
    if (what < 4) {
      process.stop()
      world.at(world.nowMs + random.pick([30, 150, 500, 1500]) * random.fraction(), () => process.goOn())
    } else if (what < 8) {
      const [end] = [...world.streams].slice(random.between(0, 2))
      if (end) end.cut(...random.pick<readonly End[]>([[end, end.other], [end], [end.other], []]))
    } else if (what > 9) {
      const other = random.pick(names.filter(one => one !== name) as [Name, Name])
      this.counts.parted++
      process.at(world.nowMs, () => asks.part(other, 'it is taken for gone'))
      process.at(world.nowMs + random.pick([0, 50, 500]) * random.fraction(), () => this.report(name, other))
    } else if (process.alive) {
      process.kill()
      world.at(world.nowMs + random.between(0, 300), () => void this.comeBack(name))
    }
  }

  /** A killed process has a next life, perhaps at another address, which the others learn sooner or later. */
  private async comeBack(name: Name): Promise<void> {
    const { world } = this
    if (world.chance(0.5)) {
      this.addresses.set(name, `unix:/${name}/${this.lives}`)
      this.counts.moved++
    }
    await this.start(name)
    for (const other of names) {
      const { process } = this.node(other)
      process.at(world.nowMs + 300 * world.random.fraction(), () => this.report(other, name))
    }
  }

  /** The number of requests without an outcome, when none can come any more. */
  get forgotten(): number {
    const asks = this.asked.filter(({ outcomes, sender }) => outcomes.length === 0 && sender.alive)
    return asks.length + this.called.filter(({ ended, caller }) => ended === 0 && caller.alive).length
  }
}

/** The result of a run. */
interface Verdict {
  readonly seed: number
  readonly wrong: readonly string[]
  readonly forgotten: number
  readonly counts: Story['counts']
  /** The outcome of one ask in each direction after peace had come. */
  readonly last: readonly (AskResult['kind'] | undefined)[]
}

/** One run: trouble for a while, then peace. */
async function simulate(seed: number): Promise<Verdict> {
  const random = new Random(seed)
  const story = new Story(random)
  const { world } = story
  for (const name of names) await story.start(name)
  const unsteady = random.pick([0, 0.002, 0.02])
  Object.assign(world.faults, {
    lost: random.pick([0, unsteady]),
    repeated: random.pick([0, unsteady, 0.2]),
    overtaken: random.pick([0, unsteady, 0.1]),
  })
  const troubleMs = 6000
  const peace = () => world.nowMs >= troubleMs
  const load = (name: Name) => {
    const { process } = story.node(name)
    const another = () => random.pick(names.filter(other => other !== name) as [Name, Name])
    // A stopped process asks when it continues. A dead one never asks, but its next life does.
    process.at(world.nowMs, () => {
      for (let left = random.pick([1, 1, 5, 40]); left > 0; left--) story.ask(name, another())
      story.call(name, another())
    })
    if (!peace()) world.at(world.nowMs + random.fraction() * 60, () => load(name))
  }
  const trouble = () => {
    if (peace()) return
    story.disturb()
    world.at(world.nowMs + random.fraction() * 600, trouble)
  }
  for (const name of names) world.at(200, () => load(name))
  world.at(300, trouble)
  await world.run(troubleMs)
  Object.assign(world.faults, { lost: 0, repeated: 0, overtaken: 0 })
  story.peace = true
  await world.run(1000)
  for (const name of names) for (const of of names) story.report(name, of)
  await world.run(3000)
  const { wrong, forgotten, counts } = story
  const last = ['ab', 'ac', 'ba', 'bc', 'ca', 'cb'].map(([from, to]) => story.ask(from!, to!))
  await world.run(1000)
  return { seed, wrong, forgotten, counts, last: last.map(({ outcomes }) => outcomes[0]) }
}

const seed = Random.fromEnvironment().seed
const seeds = Array.from({ length: simulations }, (_, n) => seed + n)
const verdicts: Verdict[] = []

t.setTimeout(600_000 + simulations * 5_000)

t.before(async () => {
  t.comment(`SEED=${seed} and the next ones`)
  for (const one of seeds) verdicts.push(await simulate(one))
})

t.test(
  'no ask is begun twice, or after its deadline, or although unavailable; each ask and call ends once and in time',
  async t => {
    for (const { seed, wrong } of verdicts) t.strictSame(wrong.slice(0, 5), [], `SEED=${seed}`)
  },
)

t.test('every ask and call of a living process has an outcome', async t => {
  for (const { seed, forgotten } of verdicts) t.equal(forgotten, 0, `SEED=${seed}`)
})

t.test('after the faults every node can be asked', async t => {
  for (const { seed, last } of verdicts)
    t.ok(
      last.every(kind => kind === 'reply'),
      `SEED=${seed}: ${last}`,
    )
})

t.test('the runs are worth their name: all outcomes are frequent, and nodes come and go', async t => {
  const sum = (kind: keyof Story['counts']) => verdicts.reduce((all, { counts }) => all + counts[kind], 0)
  const frequent = (['reply', 'unavailable', 'unknown', 'answered', 'unanswered'] as const).map(sum)
  t.comment(`${frequent}; parted ${sum('parted')}, moved ${sum('moved')}`)
  t.ok(Math.min(...frequent) >= 20 * verdicts.length)
  t.ok(sum('parted') >= verdicts.length && sum('moved') >= verdicts.length / 4)
})
