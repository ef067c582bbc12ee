// One stream of a campaign: the expected events, and those that its reader receives
// (docs/interface/access.md#streams, docs/interface/live.md#events).
//
// An expectation is made before the request that causes it is sent. Events about one entity come in their order, so
// each is compared with the first expectation about its entity.

import {
  type FeedConnection,
  type FeedEvent,
  type FeedListener,
  FeedSocket,
  openEventStream,
} from '../streams/feed-client.js'
import { watchParameters } from '../support/random-feed.js'
import { type Json, type JsonObject, keyOf } from '../support/reference-entities.js'
import type { Happening } from '../support/reference-subscriptions.js'
import {
  changedNames,
  eventEntity,
  isListed,
  isShownAlike,
  listedEntity,
  namesShown,
  reportsOf,
  type Watch,
} from '../support/reference-watch.js'
import type { AccessRule } from './random-access-file.js'
import type { AccessReference } from './reference-answers.js'
import { visibleHappening } from './reference-events.js'
import { allowsFilter, inPaths, visiblePart } from './reference-grant.js'

interface ExpectedEvent {
  readonly kind: string
  readonly entity: JsonObject
  readonly changed: readonly string[]
}

const alterations = { create: 'entityCreate', change: 'entityChange', update: 'entityUpdate', delete: 'entityDelete' }

/** docs/interface/access.md#filters: `conditionAttrs`, `q` and `mq` of a stream. Undefined: it is refused. */
export function rulesOfStream(all: readonly AccessRule[], watch: Watch): readonly AccessRule[] | undefined {
  const rules = inPaths(all, [watch.path])
  const about = { paths: [watch.path], selectors: watch.selectors }
  const names = [...watch.conditionAttrs, ...[...(watch.q ?? []), ...(watch.mq ?? [])].map(({ tokens }) => tokens[0]!)]
  return rules.length > 0 && names.every(name => allowsFilter(rules, about, name)) ? rules : undefined
}

export interface StreamPlan {
  readonly watch: Watch
  readonly tenant: string
  readonly rules: readonly AccessRule[]
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** On a busy machine a node may lose touch with another one: then nothing more is expected of the stream. */
  readonly mayGap: boolean
  /** The message of a WebSocket that begins the watch; undefined: Server-Sent Events. */
  readonly message: JsonObject | undefined
  /** Called for each event, before it is compared. */
  readonly onText: (text: string) => void
  readonly onFault: (fault: string) => void
}

export class AccessStream {
  events = 0
  #isReady = false
  #isLost = false
  #status: number | undefined
  #snapshot: JsonObject[] = []
  readonly #plan: StreamPlan
  readonly #connection: FeedConnection
  readonly #expected = new Map<string, ExpectedEvent[]>()
  #onBegun: (status: number) => void = () => {}
  /** 200 when the snapshot has come, or the status of a refusal. */
  readonly begun = new Promise<number>(resolve => {
    this.#onBegun = resolve
  })

  constructor(plan: StreamPlan, reference: AccessReference) {
    this.#plan = plan
    const { watch, tenant, rules } = plan
    const visible = [...reference.entitiesOf(tenant).entities].flatMap(entity => visiblePart(rules, entity) ?? [])
    const listed = visible.filter(entity => isListed(watch, entity)).map(entity => listedEntity(watch, entity))
    const listener: FeedListener = {
      onBegun: () => {},
      onEvent: (_watch, event) => this.#take(event, listed),
      onUnwatched: () => {},
      onClosed: (status, text) => this.#onClosed(text.includes('"Forbidden"') ? 403 : (status ?? 0), text),
    }
    this.#connection = connect(plan, listener)
  }

  #onClosed(status: number, text: string): void {
    this.#status = status
    this.#plan.onText(text)
    if (this.#isReady) this.#plan.onFault(`the stream has ended: ${text}`)
    this.#onBegun(status)
  }

  get tenant(): string {
    return this.#plan.tenant
  }

  get isOpen(): boolean {
    return this.#isReady && !this.#isLost && this.#status === undefined
  }

  get missing(): readonly string[] {
    return [...this.#expected].flatMap(([key, events]) => events.map(event => `${key}: ${JSON.stringify(event)}`))
  }

  expect(happening: Happening): void {
    const { watch, rules } = this.#plan
    const visible = visibleHappening(rules, happening)
    if (!visible) return
    const [report, ...others] = reportsOf(watch, visible)
    if (others.length > 0) throw new Error('the reference does not know the event')
    if (report !== 'event' && report !== 'leave') return
    const { id, type, path } = visible.entity
    const kind = report === 'leave' ? 'entityLeave' : alterations[visible.class]
    const entity =
      report === 'leave' ? { id, type, servicePath: path } : eventEntity(watch, visible, namesShown(watch, visible))
    const changed = report === 'leave' ? [] : [...changedNames(visible)].sort()
    const key = keyOf(visible.entity)
    this.#expected.set(key, [...(this.#expected.get(key) ?? []), { kind, entity, changed }])
  }

  #take(event: FeedEvent, listed: readonly JsonObject[]): void {
    this.#plan.onText(JSON.stringify(event.data))
    if (event.kind === 'bookmark') return
    if (event.kind === 'gap' && this.#plan.mayGap) this.#isLost = true
    if (this.#isLost) return this.#expected.clear()
    if (event.kind === 'snapshot') return this.#takeSnapshot(event, listed)
    this.events++
    const { data, changed = [], servicePath } = event.data as Readonly<Record<string, Json>>
    const entity =
      event.kind === 'entityLeave' ? event.data : ((data as Json[] | undefined)?.[0] as JsonObject | undefined)
    const key = entity ? keyOf({ path: String(servicePath), id: String(entity.id), type: String(entity.type) }) : ''
    const expected = this.#expected.get(key)?.shift()
    const isRight =
      entity !== undefined &&
      expected?.kind === event.kind &&
      isShownAlike(expected.entity, entity) &&
      expected.changed.join() === [...(changed as string[])].sort().join()
    if (!isRight)
      this.#fault(`expected ${JSON.stringify(expected)}, received ${event.kind} ${JSON.stringify(event.data)}`)
  }

  #takeSnapshot({ data }: FeedEvent, listed: readonly JsonObject[]): void {
    if (data.end !== true) {
      this.#snapshot.push(...(data.data as readonly JsonObject[]))
      return
    }
    const texts = (all: readonly JsonObject[]) =>
      all
        .map(one => JSON.stringify(one))
        .sort()
        .join('\n')
    if (texts(listed) !== texts(this.#snapshot) || data.count !== listed.length)
      this.#fault(
        `expected the snapshot\n${texts(listed)}\nreceived ${JSON.stringify(data.count)}\n${texts(this.#snapshot)}`,
      )
    this.#isReady = true
    this.#snapshot = []
    this.#onBegun(200)
  }

  #fault(fault: string): void {
    const { watch, rules, tenant } = this.#plan
    this.#plan.onFault(`stream ${JSON.stringify(watch)} of tenant ${tenant} with ${JSON.stringify(rules)}: ${fault}`)
  }

  close(): void {
    this.#isReady = false
    this.#connection.close()
  }
}

function connect(plan: StreamPlan, listener: FeedListener): FeedConnection {
  const { message, url } = plan
  if (!message) return openEventStream(urlOf(plan), headersOf(plan), listener)
  const socket: FeedSocket = new FeedSocket(`${url}/v2/stream`, headersOf(plan), listener, () =>
    socket.send({ op: 'watch', id: 'w', ...message }),
  )
  return socket
}

function urlOf({ url, watch }: StreamPlan): string {
  const words = Object.entries(watchParameters(watch)).map(([name, text]) => `${name}=${encodeURIComponent(text)}`)
  return `${url}/v2/stream?${words.join('&')}`
}

const headersOf = ({ headers, tenant, watch }: StreamPlan): Readonly<Record<string, string>> => ({
  ...headers,
  'Ctx-ServicePath': watch.path,
  ...(tenant !== '' && { 'Ctx-Service': tenant }),
})
