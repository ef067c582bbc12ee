// The changes of entities, live: GET /v2/stream as Server-Sent Events over `fetch`, which can show a key.
//
// A feed that was cut begins again with the cursor of its last event, so the reader misses nothing. When the broker does
// not know the changes since, the reader has to read anew (`onGap`). A page that nobody sees has no feed: it begins anew
// when somebody looks again.

import type { JsonObject } from '../../domain/json.js'
import type { AlterationType } from '../../domain/subscriptions/subscription.js'
import { Observable } from '../state/observable.js'
import type { ConsoleClient, RequestProblem } from './console-client.js'
import type { ConsoleRequest } from './console-request.js'
import { type ServerEvent, StreamLines } from './stream-lines.js'

/** A change of an entity, or its removal from what the feed is about. */
export interface EntityNews {
  readonly kind: AlterationType | 'entityLeave'
  readonly servicePath: string
  /** Of `entityLeave` it has the id and the type alone. */
  readonly entity: JsonObject
  readonly changed: readonly string[]
}

export type LiveState =
  | { readonly kind: 'opening' }
  | { readonly kind: 'live' }
  /** It is tried again. */
  | { readonly kind: 'cut' }
  /** The broker has refused it. */
  | { readonly kind: 'refused'; readonly problem: RequestProblem }

interface NewsText {
  readonly data?: readonly JsonObject[]
  readonly id?: string
  readonly type?: string
  readonly servicePath?: string
  readonly changed?: readonly string[]
}

const kinds = new Set(['entityCreate', 'entityUpdate', 'entityChange', 'entityDelete', 'entityLeave'])

const isNews = (kind: string): kind is EntityNews['kind'] => kinds.has(kind)

/** How long the broker may gather changes: a person does not notice it, and many changes cost the broker less. */
export const gatherMs = 200
/** A page that nobody has seen for so long needs no changes. */
const hiddenMsMax = 30_000
const againMs = 2_000
/** The broker writes at least a comment every ten seconds. */
const silenceMsMax = 30_000

export class ChangeFeed {
  readonly state = new Observable<LiveState>({ kind: 'opening' })
  private readonly ending = new AbortController()
  /** Ends the present answer. */
  private reading = new AbortController()
  private cursor = ''
  private hiding: ReturnType<typeof setTimeout> | undefined
  /** While nobody sees the page: ends that rest. */
  private wake: (() => void) | undefined
  private isResting = false
  /** Whether changes have passed without the feed. */
  private isAnew = false

  constructor(
    private readonly client: ConsoleClient,
    private readonly request: ConsoleRequest,
    private readonly onNews: (news: EntityNews) => void,
    private readonly onGap: () => void,
  ) {
    document.addEventListener('visibilitychange', this.onVisibility)
    this.onVisibility()
    void this.run()
  }

  close(): void {
    document.removeEventListener('visibilitychange', this.onVisibility)
    clearTimeout(this.hiding)
    this.ending.abort()
    this.reading.abort()
    this.wake?.()
  }

  private readonly onVisibility = (): void => {
    clearTimeout(this.hiding)
    if (document.visibilityState === 'visible') return void this.wake?.()
    this.hiding = setTimeout(() => {
      this.isResting = true
      this.reading.abort()
    }, hiddenMsMax)
  }

  private async run(): Promise<void> {
    const { signal } = this.ending
    while (!signal.aborted) {
      if (this.isResting) await this.rest()
      if (signal.aborted) return
      this.reading = new AbortController()
      try {
        if (await this.readOnce(this.reading.signal)) return
        this.state.set({ kind: 'cut' })
      } catch {
        if (signal.aborted) return
        if (this.isResting) continue
        this.state.set({ kind: 'cut' })
        this.client.lose()
      } finally {
        // The broker still writes to a feed that was silent for too long.
        this.reading.abort()
      }
      await new Promise(resolve => setTimeout(resolve, againMs))
    }
  }

  /** Ends when somebody sees the page again. What has happened meanwhile is read, not replayed. */
  private async rest(): Promise<void> {
    if (document.visibilityState !== 'visible')
      await new Promise<void>(resolve => {
        this.wake = resolve
      })
    this.wake = undefined
    this.isResting = false
    this.cursor = ''
    this.isAnew = true
    this.state.set({ kind: 'opening' })
  }

  /** Reads one answer to its end. True: the broker has refused it. */
  private async readOnce(signal: AbortSignal): Promise<boolean> {
    const more = { Accept: 'text/event-stream', ...(this.cursor !== '' && { 'Last-Event-ID': this.cursor }) }
    const response = await this.client.send(this.request, more, signal)
    if (!response.ok || !response.body) {
      // No room at the moment, or the node stops.
      if (response.status === 503) return false
      const text = await response.text()
      const problem = { status: response.status, error: 'No live feed', text, request: this.request }
      this.state.set({ kind: 'refused', problem })
      return true
    }
    this.state.set({ kind: 'live' })
    if (this.isAnew) this.onGap()
    this.isAnew = false
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
    const lines = new StreamLines()
    for (;;) {
      const { done, value } = await soon(reader.read())
      if (done) return false
      for (const event of lines.take(value)) this.onEvent(event)
    }
  }

  private onEvent({ kind, id, json }: ServerEvent): void {
    if (id !== '') this.cursor = id
    if (kind === 'gap') this.onGap()
    if (!isNews(kind)) return
    const { data, servicePath = '/', changed = [], ...named } = JSON.parse(json) as NewsText
    const entity = data?.[0] ?? { id: named.id ?? '', type: named.type ?? '' }
    this.onNews({ kind, servicePath, entity, changed })
  }
}

/** Fails when it takes too long: a connection may be dead without an end. */
function soon<T>(reading: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('the stream is silent')), silenceMsMax)
    reading.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
