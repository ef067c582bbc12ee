// The notifications that receivers must have, and must not have, after a broker was killed again and again.
//
// The oracle draws updates (random-change), applies them to the plain reference, and gets the expected notifications
// from the plain rules (reference-subscriptions, reference-notifications). The correlator of the request, the
// subscription and the entity identify a notification. Its body must be equal to the reference to the byte. A
// repetition must be the same notification: same id, same body, same number. Not here: HTTP, processes, receivers.
//
// - The notifications of an acknowledged update must arrive.
// - An update in flight at a kill has happened if the entity has the state after it. As change and notifications are
//   one commit, they must arrive then; with the state before it, none may ever have. If the states are alike, they may.
// - While a subscription is created, changed or removed, it may trigger. Its removal may cancel pending notifications.

import type { Random } from '../support/random.js'
import { batchAction, batchChanges, nextChange, type Scene } from '../support/random-change.js'
import { chance } from '../support/random-entity.js'
import { type Change, type Entity, keyOf, Reference, type Target } from '../support/reference-entities.js'
import { notificationBody } from '../support/reference-notifications.js'
import { shownEntity } from '../support/reference-query.js'
import { batchRequest, changeRequest, type HttpRequest, statusOf } from '../support/reference-requests.js'
import {
  type Happening,
  happeningOf,
  isSelected,
  type Subscription,
  verdictOn,
} from '../support/reference-subscriptions.js'

/** A subscription that the oracle follows. */
export interface Watch {
  /**
   * Part of its receiver's URL: by it the oracle recognizes a notification even when the subscription's id is unknown.
   */
  readonly name: string
  readonly plain: Subscription
  /** Whether its receiver answers everything at once, so that the order can be checked. */
  readonly isSteady: boolean
  /** Unknown until a client has received it. */
  id: string | undefined
  fires: 'yes' | 'perhaps' | 'no'
}

/** A notification that one update triggers for one subscription. */
interface ExpectedNotification {
  readonly watch: Watch
  readonly write: Write
  readonly key: string
  readonly happening: Happening
  /** Whether the subscription certainly existed. */
  isSure: boolean
  fate: 'under way' | 'happened' | 'perhaps' | 'never'
  /** The id of the notification that arrived. */
  notificationId?: string
  number?: number
}

/** The effect of a request on one entity. */
interface Step {
  readonly target: Target
  readonly before: Entity | undefined
  readonly after: Entity | undefined
  /** Undefined if it was refused. */
  readonly happening: Happening | undefined
  readonly expected: ExpectedNotification[]
}

/** A request, the statuses that mean success, and its effects. */
export interface Write {
  readonly correlator: string
  readonly request: HttpRequest
  readonly statuses: readonly number[]
  readonly steps: readonly Step[]
  /** Order of the begin of writes. */
  readonly order: number
  readonly life: number
  isAcknowledged: boolean
}

/** A notification as a receiver gets it. */
export interface Arrival {
  readonly watch: string
  /** With its suffix `; cbnotif=…`. */
  readonly correlator: string
  readonly notificationId: string
  readonly path: string
  readonly format: string
  readonly body: string
}

const problemsMax = 10
/** Few ids, so that each gets many changes. */
export const idsPerStem = 6

/** Attributes that depend on time. */
const untimely = ['dateExpires', 'dateCreated', 'dateModified', 'servicePath']

export class NotificationOracle {
  readonly reference = new Reference()
  readonly watches = new Map<string, Watch>()
  readonly problems: string[] = []
  /** Notifications that arrived, with repetitions. */
  arrivals = 0
  private readonly underWay = new Set<Write>()
  private readonly expected = new Map<string, ExpectedNotification[]>()
  private readonly known = new Map<string, ExpectedNotification>()
  /** For each subscription and entity with a steady receiver: the write that was notified last in this life. */
  private readonly last = new Map<string, number>()
  private readonly acknowledged: Write[] = []
  private readonly random: Random
  private writes = 0
  private life = 0

  constructor(random: Random) {
    this.random = random
  }

  private report(problem: string): void {
    if (this.problems.length < problemsMax) this.problems.push(problem)
  }

  // Updates

  /** Draws the next request of the writer that owns these ids; from now on it is in flight. */
  begin(isMine: (id: string) => boolean): Write {
    const { random, reference } = this
    const scene: Scene = { reference, random, nowMs: Date.now(), idsPerStem, isMine, creates: true }
    for (;;) {
      const drawn = chance(random, 0.15) ? this.batch(scene) : this.single(scene)
      if (!drawn) continue
      const order = ++this.writes
      const correlator = `oracle-${this.life}-${order}`
      const headers = { ...drawn.request.headers, 'Ctx-Correlator': correlator }
      const write = {
        ...drawn,
        request: { ...drawn.request, headers },
        correlator,
        order,
        life: this.life,
        isAcknowledged: false,
      }
      this.underWay.add(write)
      for (const watch of this.watches.values()) this.expect(write, watch)
      return write
    }
  }

  private single(scene: Scene): Pick<Write, 'request' | 'statuses' | 'steps'> | undefined {
    const change = chance(scene.random, 0.2) ? quietChange(scene) : nextChange(scene)
    if (!change || !isTimeless(change)) return undefined
    const { step, outcome } = this.make(change)
    return { request: changeRequest(change), statuses: [statusOf(change, outcome)], steps: [step] }
  }

  private batch(scene: Scene): Pick<Write, 'request' | 'statuses' | 'steps'> | undefined {
    const action = batchAction(scene.random)
    const changes: Change[] = []
    const steps: Step[] = []
    let isDone = true
    for (const change of batchChanges(scene, action)) {
      if (!isTimeless(change)) continue
      changes.push(change)
      const { step, outcome } = this.make(change)
      steps.push(step)
      if (outcome !== 'done') isDone = false
      if (changes.length === 6) break
    }
    if (changes.length === 0) return undefined
    return { request: batchRequest(action, changes), statuses: isDone ? [204] : [404, 413, 422], steps }
  }

  private make(change: Change) {
    const { path, id, type } = change
    const before = this.reference.get(change)
    const outcome = this.reference.apply(change, Date.now())
    const after = this.reference.get(change)
    const isMade = outcome === 'done' || outcome === 'partly'
    const happening = isMade ? happeningOf(change, before, after) : undefined
    return { outcome, step: { target: { path, id, type }, before, after, happening, expected: [] } }
  }

  /** Records the notifications that a write triggers for a subscription. */
  private expect(write: Write, watch: Watch): void {
    if (watch.fires === 'no') return
    for (const step of write.steps) {
      const { happening, target } = step
      if (!happening || !isSelected(watch.plain, happening)) continue
      const verdict = verdictOn(watch.plain, happening, undefined, Date.now())
      if (verdict !== undefined && verdict !== 'fires') continue
      const key = keyOf(target)
      const isSure = watch.fires === 'yes' && verdict === 'fires'
      const notification: ExpectedNotification = { watch, write, key, happening, isSure, fate: 'under way' }
      step.expected.push(notification)
      const name = nameOf(write.correlator, watch.name, key)
      const others = this.expected.get(name)
      if (others) others.push(notification)
      else this.expected.set(name, [notification])
    }
  }

  /** Whether the request of a notification is still in flight. */
  isUnderWay(correlator: string): boolean {
    const root = rootOf(correlator)
    return [...this.underWay].some(write => write.correlator === root)
  }

  acknowledge(write: Write): void {
    this.underWay.delete(write)
    write.isAcknowledged = true
    this.acknowledged.push(write)
    for (const { expected } of write.steps) for (const one of expected) one.fate = 'happened'
  }

  // Subscriptions

  /** A client begins to create, change or remove a subscription: until `settleWatch`, it may trigger. */
  beginWatch(watch: Watch): void {
    const wasThere = watch.fires !== 'no'
    watch.fires = 'perhaps'
    this.watches.set(watch.name, watch)
    for (const write of this.underWay) {
      if (!wasThere) this.expect(write, watch)
      for (const { expected } of write.steps) for (const one of expected) if (one.watch === watch) one.isSure = false
    }
  }

  /** A client begins to remove a subscription: that cancels its pending notifications, except those in flight. */
  beginRemoval(watch: Watch): void {
    this.beginWatch(watch)
    for (const notification of this.missing()) if (notification.watch === watch) notification.isSure = false
  }

  settleWatch(watch: Watch, fires: boolean): void {
    watch.fires = fires ? 'yes' : 'no'
  }

  // Kills

  /** A broker has started, and `found` has each entity: the text of its normalized form by `keyOf`. */
  settle(found: ReadonlyMap<string, string>): void {
    const chains = new Map<string, Step[]>()
    for (const write of this.underWay)
      for (const step of write.steps) chains.set(keyOf(step.target), [...(chains.get(keyOf(step.target)) ?? []), step])
    const entities = new Map([...this.reference.entities].map(entity => [keyOf(entity), entity]))
    for (const key of new Set([...entities.keys(), ...found.keys(), ...chains.keys()])) {
      const steps = chains.get(key) ?? []
      const states = steps.length > 0 ? [steps[0]!.before, ...steps.map(({ after }) => after)] : [entities.get(key)]
      const texts = states.map(textOf)
      const [least, most] = [texts.indexOf(found.get(key)), texts.lastIndexOf(found.get(key))]
      if (least < 0) this.report(`${key} is ${found.get(key)}, not ${texts.join(' nor ')}`)
      for (const [at, { expected }] of steps.entries())
        for (const one of expected) {
          one.fate = at < least ? 'happened' : at < most ? 'perhaps' : 'never'
          if (one.fate === 'never' && one.notificationId !== undefined)
            this.report(`told before it was durable: ${shown(one)}`)
        }
      if (steps.length > 0) this.reference.restore(steps[0]!.target, states[Math.max(0, least)])
    }
    this.underWay.clear()
    this.last.clear()
    this.life++
  }

  // Notifications

  /** Checks a notification that a receiver got. */
  arrive({ watch: name, correlator, notificationId, path, format, body }: Arrival): void {
    this.arrivals++
    const what = `${name} got ${body.slice(0, 300)} of ${correlator} in ${path}`
    const root = rootOf(correlator)
    const number = /; cbnotif=(\d+)$/.exec(correlator)?.[1]
    const { id, type } = identityIn(body)
    const candidates = this.expected.get(nameOf(root, name, keyOf({ path, id, type })))
    if (!candidates) return this.report(`nothing owes this: ${what}`)
    if (format !== 'normalized') this.report(`${format} is not the format: ${what}`)
    const bodyFor = ({ watch, happening }: ExpectedNotification) =>
      notificationBody(watch.id ?? subscriptionIn(body), watch.plain, happening)
    const again = this.known.get(notificationId)
    if (again) {
      if (!candidates.includes(again)) return this.report(`has the id of ${shown(again)}: ${what}`)
      if (bodyFor(again) !== body) return this.report(`another body than owed, ${bodyFor(again)}: ${what}`)
      if (again.number !== Number(number)) this.report(`came before with cbnotif=${again.number}: ${what}`)
      return
    }
    const match = candidates.find(one => one.notificationId === undefined && bodyFor(one) === body)
    if (!match) {
      const isKnown = candidates.some(one => bodyFor(one) === body)
      return this.report(`${isKnown ? 'came with another id before' : `owed is ${candidates.map(bodyFor)}`}: ${what}`)
    }
    if (match.fate === 'never') this.report(`its update never happened: ${what}`)
    match.notificationId = notificationId
    match.number = Number(number)
    this.known.set(notificationId, match)
    if (match.watch.isSteady) this.order(match)
  }

  /** First tries of one subscription and entity come in the order of the updates (issue 5, item 5). */
  private order(notification: ExpectedNotification): void {
    const { write, watch, key } = notification
    if (write.life !== this.life) return
    const pair = `${watch.name} ${key}`
    if ((this.last.get(pair) ?? 0) > write.order) this.report(`came after a later one: ${shown(notification)}`)
    this.last.set(pair, write.order)
  }

  /** The notifications that must have arrived and have not. */
  missing(): ExpectedNotification[] {
    return [...this.expected.values()].flat().filter(isMissing)
  }

  /** Number of notifications that must arrive, with those that have. */
  get demanded(): number {
    return [...this.expected.values()].flat().filter(({ isSure, fate }) => isSure && fate === 'happened').length
  }

  /**
   * Requests whose notifications are not numbered from 1 on without gaps (docs/interface/notifications.md#correlators);
   * with several workers, those with duplicate numbers.
   */
  misnumbered(isDense: boolean): string[] {
    return this.acknowledged.flatMap(({ correlator, steps }) => {
      const all = steps.flatMap(({ expected }) => expected)
      const numbers = all.flatMap(({ number }) => (number === undefined ? [] : [number])).sort((a, b) => a - b)
      const isRight = numbers.every((number, at) => (isDense ? number === at + 1 : number > (numbers[at - 1] ?? 0)))
      return isRight || !all.every(({ isSure }) => isSure) ? [] : [`${correlator}: ${numbers}`]
    })
  }
}

const isMissing = ({ isSure, fate, notificationId }: ExpectedNotification): boolean =>
  isSure && fate === 'happened' && notificationId === undefined

export const shown = ({ watch, write, key, happening }: ExpectedNotification): string =>
  [
    `${watch.name} (${watch.id}, fires: ${watch.fires}, ${watch.isSteady ? 'steady' : 'moody'})`,
    `is owed ${happening.class} of ${key} by ${write.isAcknowledged ? 'acknowledged' : 'durable'} ${write.correlator}:`,
    `${write.request.method} ${write.request.target} ${write.request.body ?? ''}`,
  ].join(' ')

/** The correlator of a notification's request. */
const rootOf = (correlator: string): string => correlator.replace(/; cbnotif=\d+$/, '')

const nameOf = (correlator: string, watch: string, key: string): string => `${correlator} ${watch} ${key}`

const textOf = (entity: Entity | undefined): string | undefined => entity && shownEntity(entity, { mode: 'normalized' })

interface NotificationBody {
  readonly subscriptionId: string
  readonly data: readonly [{ readonly id: string; readonly type: string }]
}

const identityIn = (body: string) => (JSON.parse(body) as NotificationBody).data[0]
const subscriptionIn = (body: string) => (JSON.parse(body) as NotificationBody).subscriptionId

function isTimeless(change: Change): boolean {
  const names = [
    ...('given' in change && Array.isArray(change.given) ? change.given.map(([name]) => name as string) : []),
    ...('name' in change ? [change.name] : []),
    ...('names' in change ? change.names : []),
  ]
  return !names.some(name => untimely.includes(name))
}

/** An update that leaves the value of an attribute unchanged: alone, forced, or with other metadata. */
function quietChange({ random, reference, isMine }: Scene): Change | undefined {
  const all = [...reference.entities].filter(({ id }) => isMine(id))
  const entity = all[random.between(0, all.length - 1)]
  const [name, stored] = [...(entity?.attributes ?? [])][random.between(0, 3)] ?? []
  if (!entity || name === undefined || !stored) return undefined
  const { path, id, type } = entity
  const metadata = [['quiet', { type: 'Number', value: random.between(0, 3) }]] as const
  const same = { type: stored.type, value: stored.value }
  const given = [[name, chance(random, 0.5) ? { ...same, metadata } : same]] as const
  return { path, id, type, action: 'update', given, override: false, forced: chance(random, 0.3) }
}
