// A campaign: random requests by random principals under random files, sent to a real broker and to the reference. It
// ends with the first difference, and reports it with all that is needed to repeat it.
//
// - Every answer is that of the reference: status, body, count.
// - Every notification and every event of a stream is expected, and arrives.
// - No byte is foreign. Each stored value is a marker, and a marker comes only to a principal whose rules allow its
//   attribute, or which has sent it in the same request. No key comes to anybody.
//
// Requests go out one after the other, but reads between two writes side by side. The choices depend on the seed alone.

import { setTimeout as pause } from 'node:timers/promises'
import type { Teardown } from '../support/broker-process.js'
import { type Answer, HttpClient } from '../support/http-client.js'
import type { Random } from '../support/random.js'
import { fitsUrl, watchMembers } from '../support/random-feed.js'
import { type Entity, isEqual, type Json } from '../support/reference-entities.js'
import type { HttpRequest } from '../support/reference-requests.js'
import type { JudgedBroker } from './access-brokers.js'
import { AccessProvider, type ProvidedUpdate, providedTenant } from './access-provider.js'
import { AccessReceiver, type ArrivedNotification } from './access-receiver.js'
import { type AccessRequest, httpOf } from './access-request.js'
import { UpdateSockets } from './access-socket.js'
import { AccessStream, rulesOfStream } from './access-stream.js'
import { type AccessFile, type AccessRule, openFile, tenants } from './random-access-file.js'
import {
  type Draw,
  Markers,
  markerPattern,
  markersIn,
  nextAccessWatch,
  nextProof,
  nextRead,
  nextWrite,
  strongProof,
} from './random-access-request.js'
import { AccessReference, type Effect, type ExpectedAnswer, type Judged } from './reference-answers.js'
import { notificationFor, visibleHappening } from './reference-events.js'
import { allows, type Covered } from './reference-grant.js'
import { recognize, rolesNow } from './reference-principal.js'

/** The parts that are compared besides reads. A part that the broker does not decide yet is left out. */
export interface CampaignParts {
  /** Otherwise only the strong key writes, and asks for paths of operators. */
  readonly writes: boolean
  /** Subscriptions and registrations. */
  readonly documents: boolean
  /** Answers of a provider, and updates for it. */
  readonly providers: boolean
  readonly streams: boolean
}

export const allParts: CampaignParts = { writes: true, documents: true, providers: true, streams: true }

type Proof = Readonly<Record<string, string>>

/** Where a marker was stored. */
interface Origin extends Covered {
  readonly tenant: string
  readonly name: string
}

interface Sent {
  readonly request: AccessRequest
  readonly http: HttpRequest
  readonly proof: Proof
  readonly judged: Judged
  /** Whether it goes over a WebSocket. */
  readonly isMessage: boolean
}

/** The numbers of comparisons of a campaign. */
export interface CampaignCounts {
  requests: number
  statuses: Record<number, number>
  notifications: number
  events: number
  streams: number
  /** Entities in updates for the provider. */
  passedOn: number
}

/** Reads after each other request. */
const readsMax = 4
const streamsPerFile = 6
const triesMax = 40
const againMs = 250
const arrivalMsMax = 20_000
const lookMs = 5
/** Writes before a difference that are reported with it, and the pause before its read is repeated. */
const writesReported = 40
const repeatedMs = 500
/** How long a notification or an event that should not be there gets to come. */
const surplusMs = 200

export class AccessCampaign {
  readonly counts: CampaignCounts = { requests: 0, statuses: {}, notifications: 0, events: 0, streams: 0, passedOn: 0 }
  readonly #t: Teardown
  readonly #parts: CampaignParts
  readonly #sockets: UpdateSockets
  readonly #random: Random
  readonly #broker: JudgedBroker
  readonly #reference: AccessReference
  readonly #markers = new Markers()
  readonly #clients: readonly HttpClient[]
  readonly #receiver: AccessReceiver
  readonly #origins = new Map<string, Origin>()
  readonly #idsOfDocuments = new Map<number, string>()
  readonly #documentsOfIds = new Map<string, number>()
  /** Of each subscription whose creation was allowed, for arrivals after its removal. */
  readonly #owners = new Map<
    number,
    { readonly tenant: string; readonly kind: 'key' | 'anonymous'; readonly name: string }
  >()
  #streams: AccessStream[] = []
  #provider: AccessProvider | undefined
  /** The latest writes with their answers, in the order in which they were sent. */
  #writes: string[] = []
  #files = 0
  #fault: string | undefined

  constructor(t: Teardown, random: Random, broker: JudgedBroker, parts = allParts) {
    this.#t = t
    this.#parts = parts
    this.#sockets = new UpdateSockets(t)
    this.#random = random
    this.#broker = broker
    this.#reference = new AccessReference(openFile(random.seed))
    this.#clients = broker.urls.map(url => new HttpClient(url, 60_000, readsMax))
    t.teardown(() => {
      for (const client of this.#clients) client.close()
    })
    this.#receiver = new AccessReceiver(t, (arrived, isExpected) => this.#onNotification(arrived, isExpected))
  }

  /** Sends requests under a file. Returns the first difference, if there is one. */
  async run(file: AccessFile, probe: string, requests: number): Promise<string | undefined> {
    if (this.#receiver.url === '') await this.#receiver.listen()
    this.#files++
    this.#reference.file = file
    await this.#broker.useFile(file, probe)
    if (this.#parts.providers && !this.#reference.provided) await this.#provide()
    if (this.#parts.streams) await this.#openStreams()
    const untilCount = this.counts.requests + requests
    while (this.counts.requests < untilCount && !this.#fault) {
      await this.#send(this.#next(nextWrite))
      // Nothing changes meanwhile, so their order does not matter.
      const reads = Array.from({ length: this.#random.between(0, readsMax) }, () => this.#next(nextRead))
      await Promise.all(reads.map(one => this.#send(one)))
    }
    await this.#settle()
    await pause(surplusMs)
    for (const stream of this.#streams) stream.close()
    this.#streams = []
    await this.#sockets.close()
    return this.#fault
  }

  /** Registers the provider by the strong key; without access control that key is not looked at. */
  async #provide(): Promise<void> {
    const provider = new AccessProvider(this.#t, this.#markers)
    this.#provider = provider
    await provider.register(
      this.#clients[0] as HttpClient,
      this.#broker.withAccess ? strongProof(this.#random.seed) : {},
    )
    this.#reference.provided = provider.entity
    this.#rememberMarkers(providedTenant, provider.entity)
  }

  #rememberMarkers(tenant: string, entity: Entity): void {
    const { path, id, type } = entity
    for (const [marker, name] of markersIn(entity))
      if (!this.#origins.has(marker)) this.#origins.set(marker, { tenant, path, id, type, name })
  }

  get #draw(): Draw {
    const withDocuments = this.#parts.documents
    return { random: this.#random, reference: this.#reference, markers: this.#markers, withDocuments }
  }

  #next(draws: typeof nextRead): Sent {
    const request = draws(this.#draw)
    const proof = this.#nextProof(draws === nextWrite)
    const judged = this.#reference.judge(request, proof)
    const http = httpOf(request, {
      idOf: at => this.#idsOfDocuments.get(at) ?? '0'.repeat(24),
      urlOf: at => `${this.#receiver.url}/n/${at ?? judged.created ?? 0}`,
    })
    this.counts.requests++
    return { request, http, proof, judged, isMessage: this.#isMessage(request, proof) }
  }

  /** Without access control no request needs a proof. */
  #nextProof(isWrite: boolean): Proof {
    const { seed } = this.#random
    if (isWrite && this.#broker.withAccess && !this.#parts.writes) return strongProof(seed)
    return this.#broker.withAccess ? nextProof(this.#random, seed, isWrite) : {}
  }

  /** Batches of principals that may open a stream in each tenant: part of them go over a WebSocket. */
  #isMessage({ kind, tenant }: AccessRequest, proof: Proof): boolean {
    if (kind !== 'batch' || !this.#parts.streams || this.#random.between(1, 3) > 1) return false
    const asking = recognize(this.#reference.file, proof, Date.now())
    if (!('principal' in asking)) return false
    const { principal } = asking
    return [...tenants, tenant].every(one => this.#reference.rules(principal, 'stream', one).length > 0)
  }

  async #send(sent: Sent): Promise<void> {
    const { request, http, proof, judged } = sent
    // A notification on its way may arrive or not when its subscription goes.
    if (isRemoval(request) && judged.answer.status === 204) await this.#untilArrived()
    const at = this.#random.between(0, this.#clients.length - 1)
    const client = this.#clients[at] as HttpClient
    for (const effect of judged.effects) this.#expect(effect)
    const body = http.body === undefined ? undefined : JSON.parse(http.body)
    const send = () =>
      sent.isMessage
        ? this.#sockets.send(this.#broker.urls[at] as string, proof, http)
        : client.send(http.method, http.target, body, { ...http.headers, ...proof })
    const answer = await untilAvailable(isPlainRead(request), send)
    if (isWrite(request)) this.#noteWrite(sent, at, answer)
    this.counts.statuses[answer.status] = (this.counts.statuses[answer.status] ?? 0) + 1
    if (judged.created !== undefined && answer.status === 201) this.#learn(judged.created, sent, answer)
    const difference =
      this.#differenceIn(request, judged.answer, answer) ??
      this.#passedOnOtherwise(sent) ??
      this.#foreignIn(sent, answer)
    if (!difference) return
    const isRead = isPlainRead(request)
    if (isRead) await pause(repeatedMs)
    this.#report(difference, sent, answer, at, isRead ? await send() : undefined)
  }

  #noteWrite({ http, judged, isMessage }: Sent, at: number, { status, text }: Answer): void {
    const how = isMessage ? 'message to' : 'request to'
    const expected = JSON.stringify(judged.answer)
    this.#writes.push(`${how} ${at}: ${linesOf(http)}: ${status} ${text}, expected ${expected}`)
    if (this.#writes.length > writesReported) this.#writes.shift()
  }

  #learn(at: number, { request, proof }: Sent, { headers }: Answer): void {
    const id = String(headers.location).split('/').at(-1) as string
    this.#idsOfDocuments.set(at, id)
    this.#documentsOfIds.set(id, at)
    const asking = recognize(this.#reference.file, proof, Date.now())
    if ('principal' in asking) this.#owners.set(at, { ...asking.principal, tenant: request.tenant })
  }

  // Events

  #expect({ tenant, happening }: Effect): void {
    this.#rememberMarkers(tenant, happening.entity)
    for (const stored of this.#reference.subscriptions) {
      if (stored.tenant !== tenant) continue
      const visible = visibleHappening(this.#reference.rulesOfOwner(stored), happening)
      const id = this.#idsOfDocuments.get(stored.at) ?? ''
      const body = visible && notificationFor(stored.subscription, stored.isCustom, visible, id)
      if (body !== undefined) this.#receiver.expect(stored.at, body)
    }
    for (const stream of this.#streams) if (stream.isOpen && stream.tenant === tenant) stream.expect(happening)
  }

  #rulesOfOwner(at: number): readonly AccessRule[] {
    const owner = this.#owners.get(at)
    const roles = owner && rolesNow(this.#reference.file, owner)
    return roles ? this.#reference.rules({ roles }, 'subscribe', owner.tenant) : []
  }

  #onNotification({ at, text, everything }: ArrivedNotification, isExpected: boolean): void {
    this.counts.notifications++
    const owner = this.#owners.get(at)
    const rules = this.#rulesOfOwner(at)
    const foreign = this.#foreignMarkers(everything, owner?.tenant ?? '', rules, '')
    const who = `subscription ${at} of ${owner?.kind} ${owner?.name} with ${JSON.stringify(rules)}`
    if (foreign !== '') this.#fail(`a notification of ${who} has ${foreign}: ${everything}`)
    if (!isExpected)
      this.#fail(`a notification of ${who} is not expected: ${text}\nexpected: ${this.#receiver.missing.join('\n')}`)
  }

  async #openStreams(): Promise<void> {
    for (let count = 0; count < streamsPerFile; count++) {
      const tenant = this.#random.pick(tenants)
      const isMessage = count % 2 === 1
      const watch = nextAccessWatch(this.#draw, tenant, isMessage)
      // Only a message may have several selectors.
      const message = isMessage || !fitsUrl(watch) ? watchMembers(watch, this.#random) : undefined
      const proof = this.#nextProof(false)
      const asking = recognize(this.#reference.file, proof, Date.now())
      const all = 'principal' in asking ? this.#reference.rules(asking.principal, 'stream', tenant) : []
      const rules = rulesOfStream(all, watch)
      const wanted = 'status' in asking ? asking.status : rules ? 200 : 403
      const url = this.#random.pick(this.#broker.urls as [string])
      const onText = (text: string) => {
        const foreign = this.#foreignMarkers(text, tenant, rules ?? [], '')
        if (foreign !== '')
          this.#fail(`a stream ${JSON.stringify(watch)} with ${JSON.stringify(rules)} has ${foreign}: ${text}`)
      }
      const onFault = (fault: string) => this.#fail(fault)
      const plan = {
        watch,
        tenant,
        rules: rules ?? [],
        url,
        headers: proof,
        message,
        mayGap: this.#broker.kind === 'three nodes',
        onText,
        onFault,
      }
      const stream = new AccessStream(plan, this.#reference)
      this.#streams.push(stream)
      const status = await stream.begun
      this.counts.streams++
      if (status !== wanted)
        this.#fail(`stream ${JSON.stringify({ watch, tenant, proof })}: expected ${wanted}, received ${status}`)
    }
  }

  async #untilArrived(): Promise<void> {
    const untilMs = performance.now() + arrivalMsMax
    while (this.#receiver.missing.length > 0 && !this.#fault && performance.now() < untilMs) await pause(lookMs)
    const { missing } = this.#receiver
    if (missing.length > 0) this.#fail(`notifications have not arrived:\n${missing.slice(0, 5).join('\n')}`)
  }

  async #settle(): Promise<void> {
    await this.#untilArrived()
    const missing = () => this.#streams.flatMap(stream => stream.missing)
    const untilMs = performance.now() + arrivalMsMax
    while (missing().length > 0 && !this.#fault && performance.now() < untilMs) await pause(lookMs)
    if (missing().length > 0) this.#fail(`events have not come:\n${missing().slice(0, 5).join('\n')}`)
    this.counts.events += this.#streams.reduce((sum, { events }) => sum + events, 0)
  }

  // Comparisons

  #differenceIn(request: AccessRequest, expected: ExpectedAnswer, answer: Answer): string | undefined {
    if (![expected.status, ...(expected.orStatuses ?? [])].includes(answer.status))
      return `status ${answer.status}, expected ${expected.status}`
    const name = refusals[answer.status]
    if (name !== undefined && (answer.json as { error?: string }).error !== name) return `no ${name}`
    const { text, json, documents, total } = expected
    if (total !== undefined && answer.headers['ctx-total-count'] !== String(total))
      return `count ${answer.headers['ctx-total-count']}, expected ${total}`
    if (text !== undefined && answer.text !== text && !this.#isSameSet(request, answer.text, text))
      return `body\n${answer.text}\nexpected\n${text}`
    if (json !== undefined && !isEqual(sorted(answer.json as Json), sorted(json)))
      return `body\n${answer.text}\nexpected\n${JSON.stringify(json)}`
    if (documents === undefined) return undefined
    const listed = [answer.json].flat().map(one => this.#documentsOfIds.get((one as { id: string }).id))
    return listed.join() === documents.join() ? undefined : `documents ${listed}, expected ${documents}`
  }

  /** Writes go out one after the other, so what has come to the provider is of this one. */
  #passedOnOtherwise({ request, judged: { passedOn = [] } }: Sent): string | undefined {
    if (!this.#provider || !isWrite(request)) return undefined
    const updates = this.#provider.takeUpdates()
    this.counts.passedOn += updates.length
    // The updates of a batch go out side by side.
    const inOrder = (some: readonly ProvidedUpdate[]): Json =>
      (JSON.parse(JSON.stringify(some)) as Json[]).sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
    if (isEqual(inOrder(updates), inOrder(passedOn))) return undefined
    return `the provider has received ${JSON.stringify(updates)}, expected ${JSON.stringify(passedOn)}`
  }

  /** Entities that were created through different nodes have no order that the test could know. */
  #isSameSet(request: AccessRequest, a: string, b: string): boolean {
    if (this.#broker.kind !== 'three nodes' || request.kind !== 'entities') return false
    const { orderBy, offset = 0, limit = 20 } = request.query
    const elements = (text: string) => (JSON.parse(text) as Json[]).map(one => JSON.stringify(one)).sort()
    const isWhole = offset === 0 && elements(b).length < limit
    return orderBy === undefined && isWhole && elements(a).join('\n') === elements(b).join('\n')
  }

  #foreignIn({ request, http, proof }: Sent, { text, headers }: Answer): string | undefined {
    const asking = recognize(this.#reference.file, proof, Date.now())
    const reads = isPlainRead(request) && 'principal' in asking
    const rules = reads
      ? this.#reference.rules(asking.principal, 'read', request.tenant)
      : request.kind === 'look'
        ? this.#rulesOfOwner(request.at)
        : []
    // Subscriptions have the markers of their own expressions.
    const isAboutSubscriptions = request.kind.includes('subscription') || request.kind === 'look'
    const echo = `${http.target} ${http.body} ${isAboutSubscriptions ? JSON.stringify(this.#reference.subscriptions) : ''}`
    const foreign = this.#foreignMarkers(JSON.stringify(headers) + text, request.tenant, rules, echo)
    return foreign === '' ? undefined : `foreign: ${foreign}`
  }

  /** The markers in a text that are not for a principal with these rules, and not in `echo`; and keys. */
  #foreignMarkers(text: string, tenant: string, rules: readonly AccessRule[], echo: string): string {
    const markers = [...new Set(text.match(markerPattern))].filter(marker => {
      const origin = this.#origins.get(marker)
      if (!origin || echo.includes(marker)) return false
      return origin.tenant !== tenant || !allows(rules, origin, origin.name)
    })
    const keys = text.match(/ok_[\w-]{43}/g) ?? []
    return [...markers.map(marker => `${marker} of ${JSON.stringify(this.#origins.get(marker))}`), ...keys].join(', ')
  }

  // Reports

  /** `again`: the answer to the same read, a little later. */
  #report(
    difference: string,
    { request, http, proof }: Sent,
    answer: Answer,
    at: number,
    again: Answer | undefined,
  ): void {
    const { file } = this.#reference
    const asking = recognize(file, proof, Date.now())
    const roles = 'principal' in asking ? asking.principal.roles : []
    const stored = [...this.#reference.entitiesOf(request.tenant).entities].map(
      ({ path, id, type, attributes }) => `  ${path} ${id} ${type}: ${[...attributes.keys()]}`,
    )
    this.#fail(
      [
        difference,
        `request to ${at}: ${linesOf(http)}`,
        `meant: ${JSON.stringify(request)}`,
        `proof: ${JSON.stringify(proof)}, recognized: ${JSON.stringify(asking)}`,
        ...roles.map(role => `  ${role}: ${JSON.stringify(file.roles[role])}`),
        `answer: ${answer.status} ${answer.text}`,
        ...(again ? [again.text === answer.text ? 'again: the same' : `again: ${again.status} ${again.text}`] : []),
        'writes before:',
        ...this.#writes,
        'stored (after the request, if it was allowed):',
        ...stored,
        `file: ${JSON.stringify(file)}`,
      ].join('\n'),
    )
  }

  #fail(what: string): void {
    const { seed } = this.#random
    const where = `SEED=${seed}, ${this.#broker.kind}, file ${this.#files}, request ${this.counts.requests}`
    this.#fault ??= `${where}: ${what}`
  }
}

/** On a busy machine a node may not answer another one in time. Then a request that has done nothing is sent again. */
async function untilAvailable(isRead: boolean, send: () => Promise<Answer>): Promise<Answer> {
  for (let tries = 1; ; tries++) {
    const answer = await send()
    const isAgain = answer.status === 503 && (isRead || answer.text.includes('nothing was done'))
    if (!isAgain || tries === triesMax) return answer
    await pause(againMs)
  }
}

const linesOf = ({ method, target, headers, body }: HttpRequest): string =>
  `${method} ${target} ${JSON.stringify(headers)} ${body ?? ''}`

const refusals: Readonly<Record<number, string>> = { 400: 'BadRequest', 401: 'Unauthorized', 403: 'Forbidden' }

const isPlainRead = ({ kind }: AccessRequest): boolean =>
  ['entities', 'entity', 'attribute', 'types', 'type', 'provided'].includes(kind)

const isWrite = ({ kind }: AccessRequest): boolean => ['change', 'batch', 'notify'].includes(kind)

const isRemoval = ({ kind }: AccessRequest): boolean => kind === 'unsubscribe' || kind === 'change subscription'

/** With lists of types in one order. */
const sorted = (value: Json): Json =>
  Array.isArray(value)
    ? (value as Json[]).map(sorted).sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
    : typeof value === 'object' && value !== null
      ? Object.fromEntries(Object.entries(value).map(([name, one]) => [name, sorted(one)]))
      : value
