// Random changes of random entities under random subscriptions: the matcher finds the subscriptions that the plain
// reference of test/support selects, and the same rule triggers each of them or holds it back. The explanation of the
// entity must agree.
//
// ORRERY_MATCHES sets the number of changes, SEED repeats a run.

import t from 'tap'
import type { Entity } from '../../src/domain/entities/entity.js'
import type { Change } from '../../src/domain/entities/update.js'
import { type Event, eventOf } from '../../src/domain/subscriptions/event.js'
import { explain } from '../../src/domain/subscriptions/explanation.js'
import { Matcher } from '../../src/domain/subscriptions/matcher.js'
import { noProgress, type Subscription } from '../../src/domain/subscriptions/subscription.js'
import { parseSubscription } from '../../src/domain/subscriptions/subscription-parser.js'
import { decideTrigger, matches } from '../../src/domain/subscriptions/triggering.js'
import { decide, demand, payload } from '../support/decided-changes.js'
import { Random } from '../support/random.js'
import { nextChange } from '../support/random-change.js'
import { chance, storyBeginsMs } from '../support/random-entity.js'
import { bodyOf, type Expressions, nextSubscription, someExpressions, subscriptionId } from '../support/random-watch.js'
import { Reference } from '../support/reference-entities.js'
import {
  type Happening,
  happeningOf,
  isSelected,
  type Subscription as Plain,
  verdictOn,
} from '../support/reference-subscriptions.js'

const changesWanted = Number(process.env.ORRERY_MATCHES ?? 3000)
const changesPerStory = 500
const subscriptionsPerStory = 250
const idsPerStem = 12

const tenant = ''

/** A subscription as both sides know it, and the time of its last notification. */
interface Watched {
  readonly plain: Plain
  readonly parsed: Subscription
  readonly lastMs: number | undefined
}

class Story {
  readonly reference = new Reference()
  readonly watched = new Map<string, Watched>()
  readonly matcher = new Matcher()
  nowMs = storyBeginsMs
  private readonly random: Random
  private readonly entities = new Map<string, Entity>()
  private created = 0
  private expressions: Expressions | undefined

  constructor(random: Random) {
    this.random = random
  }

  /** Adds subscriptions. Some replace an earlier one with the same id. */
  subscribe(count: number): void {
    const { random } = this
    const stock = { entities: [...this.reference.entities], idsPerStem }
    this.expressions ??= someExpressions(random, stock, 60)
    for (let left = count; left > 0; left--) {
      const id = chance(random, 0.2) && this.created > 0 ? random.between(1, this.created) : ++this.created
      this.put(nextSubscription(random, this.expressions, subscriptionId(id), idsPerStem, this.nowMs))
    }
  }

  unsubscribe(share: number): void {
    for (const id of this.watched.keys()) {
      if (!chance(this.random, share)) continue
      this.watched.delete(id)
      this.matcher.remove(id)
    }
  }

  /** Makes the next change that neither side refuses. */
  step(): { readonly happening: Happening; readonly change: Change; readonly path: string } {
    for (;;) {
      const { reference, random, nowMs, entities } = this
      const all = { reference, random, nowMs, idsPerStem, isMine: () => true, creates: true }
      const change = nextChange(all)
      const key = JSON.stringify([change.path, change.id, change.type])
      const before = reference.get(change)
      const outcome = reference.apply(change, nowMs)
      if (outcome !== 'done' && outcome !== 'partly') continue
      const decided = decide(change, entities.get(key), nowMs).change
      if (!decided) throw new Error(`refused: ${JSON.stringify(change)}`)
      if (decided.after) entities.set(key, decided.after)
      else entities.delete(key)
      this.nowMs += random.between(0, 3000)
      return { happening: happeningOf(change, before, reference.get(change)), change: decided, path: change.path }
    }
  }

  private put(plain: Plain): void {
    const origin = { id: plain.id, tenant, servicePath: plain.path }
    const parsed = demand(parseSubscription(payload(bodyOf(plain)), origin))
    const lastMs = chance(this.random, 0.5) ? this.nowMs - this.random.between(0, 90_000) : undefined
    this.watched.set(plain.id, { plain, parsed, lastMs })
    this.matcher.add(parsed)
  }
}

/** By outcome of a subscription: whether its first unmet condition in the explanation agrees. */
const byKind: Readonly<Record<string, (condition: string | undefined) => boolean>> = {
  fires: condition => condition === undefined,
  expires: condition => condition === 'expires',
  throttling: condition => condition === 'throttling',
  geo: condition => condition === 'geo',
}

/** Whether the entity still has all attributes that the request named: an explanation cannot know of removed ones. */
const hasAll = ({ class: kind, alterations, entity }: Event): boolean =>
  (kind === 'change' || kind === 'update') && alterations.every(({ name }) => entity.attributes.has(name))

const sorted = (names: Iterable<string>): string => [...names].sort().join()

t.test('a change touches and triggers the subscriptions of the plain rules', async t => {
  const random = Random.fromEnvironment()
  t.comment(`SEED=${random.seed}`)
  const counts = new Map<string, number>()
  const count = (what: string) => counts.set(what, (counts.get(what) ?? 0) + 1)
  for (let done = 0; done < changesWanted; ) {
    const story = new Story(random)
    for (let first = 0; first < 60; first++) story.step()
    story.subscribe(subscriptionsPerStory)
    for (let at = 0; at < changesPerStory; at++, done++) {
      if (at % 50 === 49) story.unsubscribe(at === 299 ? 0.95 : 0.2)
      if (at % 50 === 49) story.subscribe(at === 349 ? subscriptionsPerStory : 50)
      const { happening, change, path } = story.step()
      const event = eventOf(change, { tenant, path })
      const classified = [event.class, sorted(event.named), sorted(event.changedValues), sorted(event.changedMetadata)]
      const isCreation = happening.class === 'create'
      // In a creation everything is new, so no rule asks for the metadata alone.
      const m = isCreation ? happening.v : happening.m
      const wanted = [happening.class, sorted(happening.r), sorted(happening.v), sorted(m)]
      if (classified.join(' ') !== wanted.join(' '))
        throw new Error(`${classified.join(' ')} is not ${wanted.join(' ')}`)
      count(event.class)

      const found: Subscription[] = []
      story.matcher.touched(event, found)
      const selected = [...story.watched.values()].filter(({ plain }) => isSelected(plain, happening))
      const ids = selected.map(({ plain }) => plain.id).sort()
      const foundIds = found.map(({ id }) => id)
      if (foundIds.join() !== ids.join()) throw new Error(`found ${foundIds.join()}, not ${ids.join()}`)
      for (const { parsed } of story.watched.values())
        if (matches(parsed, event) !== foundIds.includes(parsed.id)) throw new Error(`matches ${parsed.id}`)

      for (const { plain, parsed, lastMs } of selected) {
        const progress = { ...noProgress, lastNotificationMs: lastMs }
        const verdict = verdictOn(plain, happening, lastMs, story.nowMs)
        const decision = decideTrigger(parsed, progress, event, story.nowMs)
        if (verdict !== undefined && decision !== verdict)
          throw new Error(`${decision} is not ${verdict}: ${bodyOf(plain)}`)
        count(decision)
        const agrees = byKind[decision]
        if (agrees && hasAll(event)) {
          const { conditions } = explain(parsed, progress, event.entity, path, story.nowMs)
          const no = conditions.find(({ holds, condition }) => !holds && condition !== 'alterationTypes')
          if (agrees(no?.condition)) count(`explained ${decision}`)
          else throw new Error(`${decision}, though ${no?.condition} is said not to hold: ${bodyOf(plain)}`)
        }
      }
    }
  }
  for (const one of ['create', 'change', 'update', 'delete']) t.ok(counts.has(one), `there were events of class ${one}`)
  for (const one of Object.keys(byKind)) t.ok(counts.has(`explained ${one}`), `there were explanations of ${one}`)
  for (const one of ['fires', 'expires', 'onlyChangedAttrs', 'throttling', 'mq', 'geo'])
    t.ok(counts.has(one), `there were verdicts ${one}`)
  t.comment([...counts].map(([what, times]) => `${what} ${times}`).join(', '))
})
