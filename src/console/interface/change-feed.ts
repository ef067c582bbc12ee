// The changes of entities, live: GET /v2/stream as Server-Sent Events over `fetch`, which can show a key.
//
// A feed that was cut begins again with the cursor of its last event, so the reader misses nothing. When the broker does
// not know the changes since, the reader has to read anew (`onGap`).

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

/** For a person, changes may wait this long for others: many changes cost the broker half as much then. */
export const gatherMs = 200
const againMs = 2_000
/** The broker writes at least a comment every ten seconds. */
const silenceMsMax = 30_000

export class ChangeFeed {
  readonly state = new Observable<LiveState>({ kind: 'opening' })
  private readonly ending = new AbortController()
  private cursor = ''

  constructor(
    private readonly client: ConsoleClient,
    private readonly request: ConsoleRequest,
    private readonly onNews: (news: EntityNews) => void,
    private readonly onGap: () => void,
  ) {
    void this.run()
  }

  close(): void {
    this.ending.abort()
  }

  private async run(): Promise<void> {
    const { signal } = this.ending
    while (!signal.aborted) {
      try {
        if (await this.readOnce(signal)) return
        this.state.set({ kind: 'cut' })
      } catch {
        if (signal.aborted) return
        this.state.set({ kind: 'cut' })
        this.client.lose()
      }
      await new Promise(resolve => setTimeout(resolve, againMs))
    }
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
