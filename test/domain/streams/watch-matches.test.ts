// Random changes of random entities under random watches: the matcher finds the filters of exactly the watches that the
// plain rules (test/support/reference-watch) find, also for entities that leave, and the event shows what they say.
//
// Filters are compiled from their texts, and looked for as an owner of shards does it (shard/streams).
//
// ORRERY_WATCH_MATCHES sets the number of changes, SEED repeats a run.

import t from 'tap'
import type { Entity } from '../../../src/domain/entities/entity.js'
import { renderEntity } from '../../../src/domain/entities/representation.js'
import type { Change } from '../../../src/domain/entities/update.js'
import { EventWork } from '../../../src/domain/queries/pattern.js'
import {
  type ChangeFilter,
  compileFilter,
  eventBefore,
  filterBefore,
  leaves,
} from '../../../src/domain/streams/change-filter.js'
import { viewOfChange } from '../../../src/domain/streams/event-text.js'
import type { Watch as ParsedWatch } from '../../../src/domain/streams/watch.js'
import { watchOfMessage, watchOfParameters } from '../../../src/domain/streams/watch-parser.js'
import { type Event, eventOf } from '../../../src/domain/subscriptions/event.js'
import { Matcher } from '../../../src/domain/subscriptions/matcher.js'
import { unmetExpression } from '../../../src/domain/subscriptions/triggering.js'
import { decide, demand } from '../../support/decided-changes.js'
import { Random } from '../../support/random.js'
import { nextChange } from '../../support/random-change.js'
import { chance, storyBeginsMs } from '../../support/random-entity.js'
import { fitsUrl, nextWatch, watchMembers, watchParameters } from '../../support/random-feed.js'
import { eventStatements } from '../../support/random-watch.js'
import { type JsonObject, Reference } from '../../support/reference-entities.js'
import { type Happening, happeningOf } from '../../support/reference-subscriptions.js'
import { eventEntity, isShownAlike, namesShown, reportsOf, type Watch } from '../../support/reference-watch.js'

const changesWanted = Number(process.env.ORRERY_WATCH_MATCHES ?? 2_000)
const changesPerStory = 500
const watchesPerStory = 120
const idsPerStem = 6
const tenant = 'city'
t.setTimeout(120_000 + changesWanted * 50)

interface Watched {
  readonly plain: Watch
  readonly parsed: ParsedWatch
  readonly filter: ChangeFilter
}

class Story {
  readonly watched = new Map<string, Watched>()
  private readonly after = new Matcher<ChangeFilter>()
  private readonly before = new Matcher<ChangeFilter>()
  private readonly reference = new Reference()
  private readonly entities = new Map<string, Entity>()
  private nowMs = storyBeginsMs
  private created = 0

  constructor(private readonly random: Random) {}

  watch(count: number): void {
    const { random } = this
    const stock = { entities: [...this.reference.entities], idsPerStem }
    for (let left = count; left > 0; left--) {
      const drawn = nextWatch(random, stock, { several: true })
      const isAboutEvent = !drawn.leave && chance(random, 0.1)
      const plain = isAboutEvent ? { ...drawn, mq: [random.pick(eventStatements)] } : drawn
      const parsed = this.parsed(plain)
      const id = String(++this.created)
      const filter = demand(compileFilter(id, parsed.source))
      this.watched.set(id, { plain, parsed, filter })
      this.after.add(filter)
      if (filter.leaves) this.before.add(filterBefore(filter))
    }
  }

  unwatch(share: number): void {
    for (const id of this.watched.keys()) {
      if (!chance(this.random, share)) continue
      this.watched.delete(id)
      this.after.remove(id)
      this.before.remove(id)
    }
  }

  private parsed(plain: Watch): ParsedWatch {
    const scope = { tenant, servicePath: plain.path }
    if (!fitsUrl(plain) || chance(this.random, 0.5))
      return demand(watchOfMessage(scope, watchMembers(plain, this.random)))
    const values = new Map(Object.entries(watchParameters(plain)))
    return demand(watchOfParameters(scope, values, new Set(values.get('options')?.split(','))))
  }

  /** Makes the next change that neither side refuses. */
  step(): { readonly happening: Happening; readonly event: Event } {
    for (;;) {
      const { reference, random, nowMs, entities } = this
      const change = nextChange({ reference, random, nowMs, idsPerStem, isMine: () => true, creates: true })
      const key = JSON.stringify([change.path, change.id, change.type])
      const before = reference.get(change)
      const outcome = reference.apply(change, nowMs)
      if (outcome !== 'done' && outcome !== 'partly') continue
      const decided = decide(change, entities.get(key), nowMs).change as Change
      if (decided.after) entities.set(key, decided.after)
      else entities.delete(key)
      this.nowMs += random.between(0, 3000)
      const happening = happeningOf(change, before, reference.get(change))
      return { happening, event: eventOf(decided, { tenant, path: change.path }) }
    }
  }

  /** The ids of the watches whose filters find the event, and of those that its entity leaves. */
  found(event: Event): { readonly found: ReadonlySet<string>; readonly left: ReadonlySet<string> } {
    const found = this.touched(this.after, event)
    const left = event.before ? this.touched(this.before, eventBefore(event, event.before)) : new Set<string>()
    const hasLeft = [...left].filter(id => !found.has(id) && leaves(this.watched.get(id)!.filter, event))
    return { found, left: new Set(hasLeft) }
  }

  private touched(matcher: Matcher<ChangeFilter>, event: Event): ReadonlySet<string> {
    const all: ChangeFilter[] = []
    const work = new EventWork()
    matcher.touched(event, all, work)
    return new Set(
      all.filter(({ condition }) => unmetExpression(condition, event, work) === undefined).map(({ id }) => id),
    )
  }
}

/** The fault in the event that a watch gets for a change; undefined: there is none. */
function faultOf(
  { plain, parsed }: Watched,
  happening: Happening,
  event: Event,
  report: string,
  isRendered: boolean,
): string | undefined {
  const wanted = reportsOf(plain, happening)
  const view =
    report === 'event' ? viewOfChange({ class: event.class, named: [...event.named] }, parsed.form) : undefined
  const actual = report === 'event' && !view ? 'hidden' : report
  if (!(wanted as readonly string[]).includes(actual)) return `${actual} instead of ${wanted.join(' or ')}`
  // Rendering takes most of the time, and does not depend on the matcher.
  if (!isRendered) return undefined
  // Of a deletion the interface leaves open what `onlyChangedAttrs` shows.
  if (!view || (event.class === 'delete' && plain.onlyChangedAttrs)) return undefined
  const shown = JSON.parse(renderEntity(event.entity, event.path, view)) as JsonObject
  const expected = eventEntity(plain, happening, namesShown(plain, happening))
  return isShownAlike(shown, expected) ? undefined : `${JSON.stringify(shown)} instead of ${JSON.stringify(expected)}`
}

t.test(`${changesWanted} changes meet the watches of the plain rules`, async t => {
  const random = Random.fromEnvironment()
  t.comment(`SEED=${random.seed}`)
  const counts = new Map<string, number>()
  const count = (what: string) => counts.set(what, (counts.get(what) ?? 0) + 1)
  for (let done = 0; done < changesWanted; ) {
    const story = new Story(random)
    for (let first = 0; first < 60; first++) story.step()
    story.watch(watchesPerStory)
    for (let at = 0; at < changesPerStory && done < changesWanted; at++, done++) {
      if (at % 50 === 49) story.unwatch(at === 299 ? 0.95 : 0.2)
      if (at % 50 === 49) story.watch(at === 349 ? watchesPerStory : 25)
      const { happening, event } = story.step()
      const { found, left } = story.found(event)
      count(event.class)
      for (const [id, watched] of story.watched) {
        const report = found.has(id) ? 'event' : left.has(id) ? 'leave' : 'nothing'
        count(report)
        const fault = faultOf(watched, happening, event, report, done % 8 === 0)
        if (fault === undefined) continue
        const { class: kind, entity, path, named } = event
        const what = `${kind} of ${[...named]} of ${entity.id} ${entity.type} in ${path}`
        const parameters = JSON.stringify({ path: watched.plain.path, ...watchParameters(watched.plain) })
        return void t.fail(`SEED=${random.seed}, change ${done}, ${what}, ${parameters}: ${fault}`)
      }
    }
  }
  for (const one of ['create', 'change', 'update', 'delete', 'event', 'leave'])
    t.ok(counts.has(one), `there were ${one}`)
  t.comment([...counts].map(([what, times]) => `${what} ${times}`).join(', '))
})
