// One member's decisions, event by event: the members that it asks, the messages that it sends, and its conclusions
// from the answers.

import t from 'tap'
import type { Effect } from '../../../cluster/gossip/conversation.js'
import type { Body, GossipMessage, GossipSender } from '../../../cluster/gossip/gossip-messages.js'
import {
  completeGossipOptions,
  gossipOptionsDefault as defaults,
  gossipVersion,
  gossipVersionLowest,
  lifeStride,
  membersMax,
  relaysMax,
  suspicionMs,
} from '../../../cluster/gossip/gossip-options.js'
import type { Member, Rumour, Status } from '../../../cluster/gossip/member.js'
import { Membership } from '../../../cluster/gossip/membership.js'

const { periodMs, pingTimeoutMs, pauseMs } = defaults
/** Without exchanges, seeds and messages for rumours alone: rumours go in pings only. */
const quiet = completeGossipOptions({ exchangeMs: 1e8, forgetMs: 1e9, seekMsMin: 1e8, seekMsMax: 1e8, spreadMs: 1e8 })

const member = (name: string, changes: Partial<Member> = {}): Member => ({
  name,
  address: `${name}:1`,
  domain: '',
  incarnation: 5,
  life: `life of ${name}`,
  status: 'alive',
  isJoined: true,
  ...changes,
})
const rumour = (name: string, status: Status = 'alive', suspectedBy: readonly string[] = []): Rumour => ({
  member: member(name, { status }),
  suspectedBy,
})
const senderOf = (name: string): GossipSender => ({ name, life: `life of ${name}`, incarnation: 5 })
const message = (from: string, body: Body): GossipMessage => ({
  version: gossipVersion,
  lowestVersion: gossipVersionLowest,
  cluster: 'c',
  from: senderOf(from),
  ...body,
})
const acknowledgement = (from: string, ...rumours: Rumour[]) => message(from, { kind: 'acknowledgement', rumours })
const noAnswer = (from: string) => message(from, { kind: 'no-answer', rumours: [] })
const pingTo = (name: string, ...rumours: Rumour[]): Body => ({
  kind: 'ping',
  to: { name, life: `life of ${name}` },
  rumours,
})

type Send = Extract<Effect, { kind: 'send' }>

/** A member `a` at time 0, and its effects since the last `take`. */
class Subject {
  nowMs = 0
  readonly machine: Membership
  private readonly effects: Effect[] = []
  private calls = 0

  constructor(others: readonly string[], hasSeeds = false) {
    const { name, address, domain, life, isJoined } = member('a')
    const self = { name, address, domain, life, isJoined }
    this.machine = new Membership({ self, clusterId: 'c', hasSeeds, options: quiet, chance: () => 0.5 }, 0)
    if (others.length === 0) return
    const from = others[0]!
    this.call(message(from, { kind: 'exchange', rumours: others.map(name => rumour(name)) }))
    this.pass(0)
    this.take()
  }

  take(): Effect[] {
    return this.effects.splice(0)
  }

  get sends(): Send[] {
    return this.take().filter(effect => effect.kind === 'send')
  }

  /** Lets time pass; the machine is woken at the times that it chooses. */
  pass(forMs: number): void {
    const untilMs = this.nowMs + forMs
    while (this.machine.nextWakeMs <= untilMs) {
      this.nowMs = Math.max(this.nowMs, this.machine.nextWakeMs)
      this.effects.push(...this.machine.tick(this.nowMs))
    }
    this.nowMs = untilMs
  }

  call(message: GossipMessage): GossipMessage | undefined {
    const number = ++this.calls
    const effects = this.machine.onCall(number, message, this.nowMs)
    this.effects.push(...effects)
    for (const effect of effects) if (effect.kind === 'reply' && effect.number === number) return effect.message
    return undefined
  }

  answer(send: Send, reply?: GossipMessage, isRefused = false): void {
    this.effects.push(...this.machine.onReply(send.number, reply, this.nowMs, 'no answer', isRefused))
  }

  /** The next probe: passes the time until it begins. */
  probe(): Send {
    for (let waits = 0; waits < 100; waits++) {
      const [send] = this.sends
      if (send) return send
      this.pass(periodMs / 10)
    }
    throw new Error('nobody was probed')
  }

  /**
   * A probe that fails, with or without an answer of its helpers. `refused`: which of the two pings the machine of that
   * member refuses. Returns the name of the probed member.
   */
  fail(doHelpersAnswer = true, refused: readonly [first: boolean, second: boolean] = [false, false]): string {
    const send = this.probe()
    this.answer(send, undefined, refused[0])
    for (const other of this.sends)
      if (other.message.kind === 'ping') this.answer(other, undefined, refused[1])
      else this.answer(other, doHelpersAnswer ? noAnswer(nameAt(other)) : undefined)
    return nameAt(send)
  }

  status(name: string): Status | undefined {
    return this.machine.members.find(member => member.name === name)?.status
  }
}

const nameAt = ({ to }: Send) => to.split(':')[0]!
const rumoursOf = (one: GossipMessage | undefined) =>
  one && 'rumours' in one ? one.rumours.map(({ member }) => member) : []

t.test('each of the others is pinged once in a round, one in each period', async t => {
  const subject = new Subject(['b', 'c', 'd'])
  for (let round = 0; round < 5; round++) {
    const names: string[] = []
    for (let turn = 0; turn < 3; turn++) {
      const startMs = subject.nowMs
      const send = subject.probe()
      if (round + turn > 0) t.ok(subject.nowMs - startMs >= periodMs * 0.9)
      subject.answer(send, acknowledgement(nameAt(send)))
      names.push(nameAt(send))
    }
    t.strictSame(names.sort(), ['b', 'c', 'd'])
  }
})

t.test('a member that does not answer is pinged again and by three others, and one of them suffices', async t => {
  const subject = new Subject(['b', 'c', 'd', 'e', 'f'])
  const send = subject.probe()
  const name = nameAt(send)
  t.equal(send.deadlineMs, pingTimeoutMs)
  subject.answer(send)
  const sends = subject.sends
  const requests = sends.filter(({ message }) => message.kind === 'ping-request')
  t.match(
    requests.map(({ message }) => message),
    Array(3).fill({ kind: 'ping-request', to: { name }, address: `${name}:1` }),
  )
  t.equal(new Set([name, ...requests.map(nameAt)]).size, 4)
  const again = sends.filter(({ message }) => message.kind === 'ping')
  t.strictSame(again.map(nameAt), [name])
  subject.answer(again[0]!)
  subject.answer(requests[0]!, noAnswer(nameAt(requests[0]!)))
  subject.answer(requests[1]!, acknowledgement(nameAt(requests[1]!)))
  subject.answer(requests[2]!)
  subject.pass(periodMs)
  t.equal(subject.status(name), 'alive')
  t.equal(subject.machine.stats.suspicions, 0)
})

t.test('a member that no other reaches is suspected, and the next ping to it reports that before all else', async t => {
  const subject = new Subject(['b', 'c'])
  const name = subject.fail()
  t.equal(subject.status(name), 'suspect')
  for (;;) {
    const send = subject.probe()
    subject.answer(send, acknowledgement(nameAt(send)))
    if (nameAt(send) !== name) continue
    t.match(send.message, { rumours: [{ member: { name, status: 'suspect' }, suspectedBy: ['a'] }] })
    break
  }
})

t.test('the answer of another life at the same address does not count', async t => {
  const subject = new Subject(['b'])
  const reply = { ...acknowledgement('b'), from: { ...senderOf('b'), life: 'another' } }
  subject.answer(subject.probe(), reply)
  const [again] = subject.sends
  subject.answer(again!, reply)
  t.equal(subject.status('b'), 'suspect')
})

t.test('suspicion lasts longer without a confirmation', async t => {
  const names = ['b', 'c', 'd', 'e', 'f']
  for (const confirmed of [0, 1, 3]) {
    const subject = new Subject(names)
    const suspectedBy = ['b', 'c', 'd', 'e'].slice(0, confirmed + 1)
    subject.call(message('b', pingTo('a', rumour('f', 'suspect', suspectedBy))))
    const expectedMs = suspicionMs(defaults, 6, confirmed)
    t.equal(expectedMs, confirmed === 3 ? pauseMs : 4 * periodMs * (confirmed === 0 ? 6 : 6 - 5 / 2))
    while (subject.nowMs < expectedMs) {
      t.equal(subject.status('f'), 'suspect') || t.bailout()
      subject.pass(10)
      for (const send of subject.sends) subject.answer(send, acknowledgement(nameAt(send)))
    }
    t.equal(subject.status('f'), 'dead', `${confirmed} have confirmed it`)
  }
})

t.test('suspicion is short if the latest ping was refused, and as short as it can be with a confirmation', async t => {
  for (const [refused, isConfirmed] of [
    [[true, true], true],
    [[false, true], true],
    [[true, false], true],
    [[true, true], false],
  ] as const) {
    const subject = new Subject(['b', 'c'])
    const name = subject.fail(true, refused)
    const beganMs = subject.nowMs
    const other = name === 'b' ? 'c' : 'b'
    if (isConfirmed) subject.call(message(other, pingTo('a', rumour(name, 'suspect', [other]))))
    while (subject.status(name) === 'suspect') {
      subject.pass(10)
      for (const send of subject.sends)
        if (nameAt(send) === name) subject.answer(send, undefined, refused[1])
        else subject.answer(send, send.message.kind === 'ping' ? acknowledgement(other) : noAnswer(other))
    }
    t.equal(subject.status(name), 'dead')
    const expectedMs = suspicionMs(defaults, 3, isConfirmed ? 1 : 0, refused[1])
    const tookMs = subject.nowMs - beganMs
    t.ok(tookMs >= expectedMs && tookMs < expectedMs + 20, `${tookMs} ms of ${expectedMs}`)
  }
})

t.test('an answer after a refusal ends the probe', async t => {
  const subject = new Subject(['b', 'c'])
  const send = subject.probe()
  subject.answer(send, undefined, true)
  for (const again of subject.sends.filter(({ message }) => message.kind === 'ping'))
    subject.answer(again, acknowledgement(nameAt(send)))
  subject.pass(periodMs)
  t.equal(subject.status(nameAt(send)), 'alive')
})

t.test('the member that another node suspects has the next turn', async t => {
  for (const name of ['b', 'c', 'd', 'e']) {
    const subject = new Subject(['b', 'c', 'd', 'e'])
    const other = name === 'b' ? 'c' : 'b'
    subject.call(message(other, pingTo('a', rumour(name, 'suspect', [other]))))
    t.equal(nameAt(subject.probe()), name)
  }
})

t.test('of many nodes few probe the suspected member at once', async t => {
  const names = Array.from({ length: 20 }, (_, at) => `m${at}`)
  const subject = new Subject(names)
  const first = nameAt(new Subject(names).probe())
  const suspected = names.find(name => name !== first)!
  subject.call(message(first, pingTo('a', rumour(suspected, 'suspect', [first]))))
  t.equal(nameAt(subject.probe()), first, 'chance of one half is more than 3 of 19')
})

t.test('of many members suspicion lasts longer, by the logarithm', async t => {
  const hasty = { ...defaults, pauseMs: 0 }
  t.equal(suspicionMs(hasty, 3, 1), 4 * periodMs)
  t.equal(suspicionMs(hasty, 10, 3), 4 * periodMs)
  t.equal(suspicionMs(hasty, 1000, 3), 12 * periodMs)
  t.equal(suspicionMs(hasty, 2, 0), 4 * periodMs, 'where nobody is left to confirm it')
})

t.test('suspicion of a silent member lasts longer than the pauses of a busy machine', async t => {
  t.equal(suspicionMs(defaults, 3, 1), pauseMs)
  t.equal(suspicionMs(defaults, 2, 0), pauseMs)
  t.equal(suspicionMs(defaults, 10_000, 3), 16 * periodMs)
  t.equal(suspicionMs(defaults, 3, 1, true), periodMs, 'and is short where the machine refuses connections')
})

t.test('a suspected member reports in the same answer that it lives', async t => {
  const subject = new Subject(['b', 'c'])
  const reply = subject.call(
    message('b', pingTo('a', { member: member('a', { status: 'suspect' }), suspectedBy: ['b'] })),
  )
  t.match(rumoursOf(reply)[0], { name: 'a', status: 'alive', incarnation: 6 })
  t.equal(subject.machine.stats.refutations, 1)
})

t.test('a member that is dead for the one it pings learns that in the answer', async t => {
  const subject = new Subject(['b', 'c'])
  subject.call(message('c', pingTo('a', rumour('b', 'suspect', ['c', 'a']))))
  while (subject.status('b') !== 'dead') subject.pass(50)
  t.match(rumoursOf(subject.call(message('b', pingTo('a')))), [{ name: 'b', status: 'dead', incarnation: 5 }])
})

t.test('a member that sends old rumours gets the newer ones in the answer', async t => {
  const subject = new Subject(['b', 'c'])
  const old = { member: member('c', { incarnation: 4, status: 'suspect' }), suspectedBy: ['b'] }
  t.match(rumoursOf(subject.call(message('b', pingTo('a', old)))), [{ name: 'c', status: 'alive', incarnation: 5 }])
})

t.test('a rumour of a death is not believed, but makes a suspicion', async t => {
  const subject = new Subject(['b', 'c'])
  for (let times = 0; times < 3; times++) subject.call(message('b', pingTo('a', rumour('c', 'dead', ['b']))))
  t.equal(subject.status('c'), 'suspect')
})

t.test('a rumour of a leaving is believed', async t => {
  const subject = new Subject(['b', 'c'])
  subject.call(message('b', pingTo('a', rumour('c', 'left'))))
  t.equal(subject.status('c'), 'left')
  subject.call(
    message('b', pingTo('a', rumour('c', 'alive'), rumour('c', 'suspect', ['b']), rumour('c', 'dead', ['b']))),
  )
  t.equal(subject.status('c'), 'left')
})

t.test('unknown members that are gone are not added', async t => {
  const subject = new Subject(['b'])
  subject.call(message('b', pingTo('a', rumour('x', 'dead'), rumour('y', 'left'), rumour('z', 'suspect', ['b']))))
  t.strictSame([subject.status('x'), subject.status('y'), subject.status('z')], [undefined, undefined, 'suspect'])
})

t.test('no more members are taken in than there may be', async t => {
  const subject = new Subject(['b'])
  const rumours = Array.from({ length: membersMax + 10 }, (_, n) => rumour(`m${n}`))
  subject.call(message('b', { kind: 'exchange', rumours }))
  t.equal(subject.machine.members.length, membersMax)
})

t.test('a helper pings and passes on the answer, within the time that it was given', async t => {
  for (const reply of [acknowledgement('c'), undefined, acknowledgement('b')]) {
    const subject = new Subject(['b', 'c'])
    subject.take()
    const { to } = pingTo('c') as Extract<Body, { kind: 'ping' }>
    const request = message('b', { kind: 'ping-request', to, address: 'c:1', waitMs: 77, rumours: [] })
    t.equal(subject.call(request), undefined, 'not before it has an answer')
    const [send] = subject.sends
    t.match(send, { to: 'c:1', deadlineMs: 77, message: { kind: 'ping', to } })
    subject.answer(send!, reply)
    const kind = reply?.from.name === 'c' ? 'acknowledgement' : 'no-answer'
    t.match(subject.take(), [{ kind: 'reply', message: { kind } }])
  }
})

t.test('a helper of many refuses one more', async t => {
  const subject = new Subject(['b', 'c'])
  const { to } = pingTo('c') as Extract<Body, { kind: 'ping' }>
  const request = message('b', { kind: 'ping-request', to, address: 'c:1', waitMs: 77, rumours: [] })
  for (let n = 0; n < relaysMax; n++) t.equal(subject.call(request), undefined)
  t.equal(subject.call(request)?.kind, 'no-answer')
  subject.answer(subject.sends.at(-1)!)
  t.equal(subject.call(request), undefined, 'until one has ended')
})

t.test('a node whose helpers are silent, too, becomes more patient, and less with every answer', async t => {
  const subject = new Subject(['b', 'c', 'd', 'e'])
  subject.fail(false)
  t.equal(subject.machine.stats.health, 3)
  subject.pass(periodMs)
  const send = subject.probe()
  t.equal(send.deadlineMs, 4 * pingTimeoutMs)
  subject.answer(send, acknowledgement(nameAt(send)))
  t.equal(subject.machine.stats.health, 2)
  const startMs = subject.nowMs
  subject.probe()
  t.ok(subject.nowMs - startMs >= 3 * periodMs)
})

t.test('a node whose helpers report that they had no answer either considers itself healthy', async t => {
  const subject = new Subject(['b', 'c', 'd', 'e'])
  subject.fail()
  t.equal(subject.machine.stats.health, 0)
})

t.test('a node is never more patient than it may be', async t => {
  const subject = new Subject(['b', 'c', 'd', 'e'])
  for (let n = 0; n < 5; n++) subject.fail(false)
  t.equal(subject.machine.stats.health, defaults.healthMax)
})

t.test('a suspicion begins anew when this node was late itself, unless connections are refused', async t => {
  for (const isRefused of [false, true]) {
    const subject = new Subject(['b', 'c'])
    const name = subject.fail(true, [isRefused, isRefused])
    const lastMs = suspicionMs(defaults, 3, 0, isRefused)
    const beganMs = subject.nowMs
    const answerOthers = (): void => {
      for (const send of subject.sends)
        if (nameAt(send) === name) subject.answer(send, undefined, isRefused)
        else subject.answer(send, send.message.kind === 'ping' ? acknowledgement(nameAt(send)) : noAnswer(nameAt(send)))
    }
    while (subject.nowMs - beganMs < lastMs / 2) {
      subject.pass(10)
      answerOthers()
    }
    t.equal(subject.status(name), 'suspect')
    t.equal(subject.machine.isRefusing(name), isRefused)
    const lateMs = pingTimeoutMs + 20
    subject.nowMs = subject.machine.nextWakeMs + lateMs
    const againMs = subject.nowMs
    while (subject.status(name) === 'suspect') {
      subject.pass(10)
      answerOthers()
    }
    const tookMs = subject.nowMs - (isRefused ? beganMs + lateMs : againMs)
    t.ok(tookMs >= lastMs && tookMs < lastMs + 30, `${tookMs} ms of ${lastMs}`)
    t.equal(subject.status(name), 'dead')
    t.equal(subject.machine.isRefusing(name), isRefused, 'which is known beyond the death')
    subject.call(message('b', pingTo('a', { member: member(name, { incarnation: 6 }), suspectedBy: [] })))
    t.strictSame([subject.status(name), subject.machine.isRefusing(name)], ['alive', false])
  }
})

t.test('a node suspects no member for answers missed in a pause, and extends its suspicions by the pause', async t => {
  const subject = new Subject(['b', 'c'])
  const send = subject.probe()
  subject.call(message('b', pingTo('a', rumour('c', 'suspect', ['b', 'a']))))
  subject.nowMs += 60_000
  subject.answer(send)
  t.strictSame([subject.status('b'), subject.status('c')], ['alive', 'suspect'])
  subject.pass(periodMs)
  t.strictSame([subject.status('b'), subject.status('c')], ['alive', 'suspect'])
  t.equal(subject.machine.stats.suspicions, 0)
})

t.test('a ping for another member is refused', async t => {
  const subject = new Subject(['b'])
  t.match(subject.call(message('b', pingTo('x'))), { kind: 'refusal', reason: 'this is node a, not x' })
})

t.test('a newer version that is written for readers of this one is accepted', async t => {
  const subject = new Subject(['b'])
  const newer = message('b', { kind: 'exchange', rumours: [rumour('x')] })
  t.match(subject.call({ ...newer, version: gossipVersion + 5 }), { kind: 'exchange' })
  t.equal(subject.status('x'), 'alive')
})

t.test('an unreadable version is refused and reported, and none of its rumours is accepted', async t => {
  const subject = new Subject(['b'])
  const strange = message('b', { kind: 'exchange', rumours: [rumour('x')] })
  for (const versions of [
    { version: gossipVersion + 2, lowestVersion: gossipVersion + 1 },
    { version: gossipVersionLowest - 1, lowestVersion: gossipVersionLowest - 1 },
  ]) {
    t.match(subject.call({ ...strange, ...versions }), {
      kind: 'refusal',
      reason: /this node reads versions .* node b/,
    })
    const reported = subject.take().filter(({ kind }) => kind === 'unreadable')
    t.match(reported, [{ reason: /a message of gossip was ignored: .* node b/ }])
  }
  t.equal(subject.status('x'), undefined)
})

t.test('another cluster is refused, and none of its rumours is accepted', async t => {
  const subject = new Subject(['b'])
  const strange = message('b', { kind: 'exchange', rumours: [rumour('x')] })
  t.match(subject.call({ ...strange, cluster: 'd' }), {
    reason: "this is a node of the cluster 'c', and not of the cluster 'd'",
  })
  t.equal(subject.status('x'), undefined)
})

t.test('an answer is no question', async t => {
  const subject = new Subject(['b'])
  t.match(subject.call(acknowledgement('b')), { kind: 'refusal', reason: 'this is no question' })
  t.match(subject.call(message('b', { kind: 'refusal', reason: 'no' })), { kind: 'refusal' })
})

t.test('a node sends nothing of itself before a seed has answered; it begins above the known incarnation', async t => {
  const subject = new Subject([], true)
  subject.pass(periodMs)
  t.strictSame(
    subject.take().map(({ kind }) => kind),
    ['resolve'],
  )
  subject.machine.onSeeds(['b:1'], subject.nowMs).forEach(effect => {
    t.match(effect, { kind: 'send', to: 'b:1', message: { kind: 'exchange', from: { incarnation: 0 }, rumours: [] } })
    const earlier: Rumour = { member: member('a', { life: 'an earlier one', status: 'dead' }), suspectedBy: ['b'] }
    subject.answer(effect as Send, message('b', { kind: 'exchange', rumours: [rumour('b'), earlier] }))
  })
  const [send] = subject.sends
  t.match(rumoursOf(send?.message)[0], { name: 'a', status: 'alive', incarnation: 5 + lifeStride })
})

t.test('options that make no sense are turned down', async t => {
  t.throws(() => completeGossipOptions({ pingTimeoutMs: 300 }), /periodMs has no room for helpers/)
  t.throws(() => completeGossipOptions({ refusedPeriods: 0 }), /a refused connection would be a death/)
  t.throws(() => completeGossipOptions({ forgetMs: 1 }), /forgetMs is shorter than exchangeMs/)
  t.throws(() => completeGossipOptions({ seekMsMax: 1 }), /seekMsMax is shorter than seekMsMin/)
})
