// The shell around the links: listens, dials, greets, and gives every link its stream, its ticks and its wake-ups.
//
// Of two nodes the one whose name comes first dials, so there is one stream, which carries the asks of both. The first
// frame of each side is a greeting with the protocol versions that it speaks. A node that is unknown, shares no
// version, or means another node gets the reason and its stream ends. It dials again later, for it may be upgraded
// meanwhile. A lost stream is dialed again after growing pauses. A newer stream of a node replaces the older one, which
// may be dead unnoticed.
//
// The user adds and removes nodes (`meet`, `part`). A node that parts and comes back may be the same process, with
// answers for the earlier link. Therefore the numbers of asks continue from link to link.
//
// Not here: everything about asks (link.ts), and membership.

import assert from 'node:assert/strict'
import type { OriginRange } from '../clocks/peer-origin.js'
import { type AskOptions, complaintMs, completeOptions, nameLengthMax, protocolVersions, redialMs } from '../options.js'
import type { AskHost, ClusterClock, Guests, OnOutcome, Peer, Stream, StreamListener, Transport } from '../ports.js'
import { decodeFrame, encodeFrame, type Hello, type ReadFrame } from './frames.js'
import { Link, type LinkParts } from './link.js'

/** Streams without a greeting yet. At the limit the one that has waited longest is closed. */
const strangersMax = 64

export interface Asks {
  /** Where this node listens: the given address, with port 0 replaced by the chosen port. */
  readonly address: string
  /**
   * Asks another node. `onOutcome` is called exactly once; before this returns when there is no room for the ask.
   * `waitMs`: one of a few times, none shorter than `askDeadlineMs`. `view`: the epoch in which the other node is
   * believed to own the shard, for its host; 0: no opinion.
   */
  ask(node: string, shard: number, request: Uint8Array, onOutcome: OnOutcome, waitMs?: number, view?: number): void
  /** Whether the link to a node is up and has received a frame lately. */
  reachable(node: string): boolean
  /**
   * Opens a link to a node. A known one keeps its link and its asks; under another address it is dialed there. Names
   * have 1 to `nameLengthMax` bytes and are not our own.
   */
  meet(peer: Peer): void
  /**
   * Ends the link to a node, which gets the reason: asks not sent yet are 'unavailable', the others 'unknown', at once.
   */
  part(node: string, reason: string): void
  /** Calls back when a link comes up or goes down; the reason is for people. */
  onChange(listener: ChangeListener): void
  /**
   * Counts a message of a node that the host could not read, and reports it to the log and to that node, at most once a
   * minute.
   */
  noteUndecodable(node: string, what: string): void
  /** Statistics of the link to a node; undefined: there is no link. */
  statsOf(node: string): NodeStats | undefined
  /** The wall clock of a node; undefined: it cannot be reached, or has sent no time yet. */
  originOf(node: string): OriginRange | undefined
  /** Calls back with a sentence for the log when a node sends unreadable bytes, or shares no protocol version. */
  onTrouble(listener: (trouble: string) => void): void
  /** Ends every ask that waits ('unavailable' if it was not sent), closes all streams and frees the address. */
  close(): Promise<void>
}

export interface NodeStats {
  /** The version of the protocol on this link; undefined: there has been no stream yet. */
  readonly protocol: number | undefined
  /** Messages of it that could not be read, since this node knows it. */
  readonly undecodable: number
}

export type ChangeListener = (node: string, up: boolean, reason: string) => void

/** Joins as `self`; `incarnation` must never have been used before. Links come up later, see `onChange`. */
export async function openAsks(
  transport: Transport,
  self: Peer,
  incarnation: string,
  peers: readonly Peer[],
  host: AskHost,
  clock: ClusterClock,
  options: Partial<AskOptions>,
  calls: Omit<Guests, 'onStream'> = {},
): Promise<Asks> {
  for (const name of [self.name, incarnation]) assertName(name)
  const party: Party = { transport, self, incarnation, host, clock, options: completeOptions(options) }
  const listeners: ChangeListener[] = []
  const onChange: ChangeListener = (node, up, reason) => {
    for (const listener of listeners) listener(node, up, reason)
  }
  const troubleListeners: ((trouble: string) => void)[] = []
  const onTrouble = (trouble: string): void => {
    for (const listener of troubleListeners) listener(trouble)
  }
  const neighbours = new Map<string, Neighbour>()
  /** The highest number of an ask to nodes that have parted. */
  let numbered = 0
  const add = (peer: Peer): Neighbour => {
    assertName(peer.name)
    assert(peer.name !== self.name && !neighbours.has(peer.name), 'two nodes have one name')
    const neighbour = new Neighbour(party, peer, onChange, onTrouble, numbered)
    neighbours.set(peer.name, neighbour)
    return neighbour
  }
  for (const peer of peers) add(peer)
  const reception = new Reception(party, neighbours)
  const listening = await transport.listen(self.address, { onStream: stream => reception.welcome(stream), ...calls })
  for (const neighbour of neighbours.values()) neighbour.start()
  let closing: Promise<void> | undefined
  const close = (): Promise<void> => {
    for (const neighbour of neighbours.values()) neighbour.close('this node is closing')
    reception.close()
    return listening.close()
  }
  return {
    address: listening.address,
    ask: (node, shard, request, onOutcome, waitMs, view) => {
      const neighbour = neighbours.get(node)
      if (neighbour) neighbour.link.ask(shard, request, onOutcome, waitMs, view)
      else onOutcome({ kind: 'unavailable', reason: `there is no node ${node}` })
    },
    reachable: node => neighbours.get(node)?.link.reachable ?? false,
    meet: peer => {
      if (closing) return
      const known = neighbours.get(peer.name)
      if (known) known.moveTo(peer.address)
      else add(peer).start()
    },
    part: (node, reason) => {
      const neighbour = neighbours.get(node)
      if (!neighbour) return
      neighbours.delete(node)
      numbered = Math.max(numbered, neighbour.link.lastNumber)
      neighbour.part(reason)
    },
    noteUndecodable: (node, what) => neighbours.get(node)?.noteUndecodable(what),
    statsOf: node => neighbours.get(node)?.stats,
    originOf: node => {
      const link = neighbours.get(node)?.link
      return link?.reachable ? link.origin.range : undefined
    },
    onChange: listener => {
      listeners.push(listener)
    },
    onTrouble: listener => {
      troubleListeners.push(listener)
    },
    close: () => {
      closing ??= close()
      return closing
    },
  }
}

function assertName(name: string): void {
  assert(name !== '' && Buffer.byteLength(name) <= nameLengthMax, `not a name: '${name}'`)
}

/** The things that all parts of one node share. */
interface Party {
  readonly transport: Transport
  readonly self: Peer
  readonly incarnation: string
  readonly host: AskHost
  readonly clock: ClusterClock
  readonly options: AskOptions
}

const helloTo = ({ self, incarnation }: Party, to: string, refusal?: string): Hello => ({
  ...protocolVersions,
  name: self.name,
  incarnation,
  to,
  refusal,
})

const greeting = ({ clock }: Party, hello: Hello, ping: boolean): Buffer =>
  encodeFrame({ sentMs: clock.monoMs(), echoMs: undefined, ping, hello, trouble: undefined, asks: [], answers: [] })

type Versions = Pick<Hello, 'lowest' | 'highest'>

/** The highest version that both speak; undefined: there is none. */
export function commonVersion(ours: Versions, theirs: Versions): number | undefined {
  const highest = Math.min(ours.highest, theirs.highest)
  return highest >= Math.max(ours.lowest, theirs.lowest) ? highest : undefined
}

const inWords = ({ lowest, highest }: Versions): string =>
  lowest === highest ? `version ${highest}` : `versions ${lowest} to ${highest}`

const noCommonVersion = ({ name, ...theirs }: Hello, here: string): string =>
  `node ${name} speaks ${inWords(theirs)} of the protocol, and node ${here} ${inWords(protocolVersions)}: upgrade the older one`

/** A text of another node for our log, with only characters that fit a line. */
const asLine = (text: string): string => text.replace(/[^ -~]/g, '?')

/** Another node: its link, its present stream, and the dialing when it has none. */
class Neighbour {
  readonly link: Link
  /** The one stream there is: dialed and not greeted yet, or the link's. */
  private stream: Stream | undefined
  private failures = 0
  private stopWaking = (): void => {}
  private stopDialing = (): void => {}
  private closed = false
  private protocol: number | undefined
  private undecodable = 0
  /** The earliest time of the next complaint about this node in the log. */
  private complainMs = Number.NEGATIVE_INFINITY

  constructor(
    private readonly party: Party,
    private peer: Peer,
    onChange: ChangeListener,
    private readonly onTrouble: (trouble: string) => void,
    numbered: number,
  ) {
    const { clock, host, options } = party
    const surroundings: LinkParts = {
      host,
      nowMs: () => clock.monoMs(),
      wallMs: () => clock.wallMs(),
      flushSoon: () => clock.endOfTick(this.onTickEnd),
      onChange: (up, reason) => onChange(peer.name, up, reason),
      onTrouble: trouble =>
        void this.complain(`node ${peer.name} could not read something that this node sent: ${asLine(trouble)}`),
      onFailure: failure =>
        this.noteUndecodable(`this node failed over it, ${failure.stack?.replace(/\n */g, ' | ') ?? failure.message}`),
    }
    this.link = new Link(peer.name, options, surroundings, numbered)
  }

  private readonly onTickEnd = (): void => this.link.onTickEnd()

  private get dials(): boolean {
    return this.party.self.name < this.peer.name
  }

  start(): void {
    this.wakeAfter(0)
    if (this.dials) this.dial()
  }

  get stats(): NodeStats {
    return { protocol: this.protocol, undecodable: this.undecodable }
  }

  noteUndecodable(what: string): void {
    this.undecodable++
    if (this.complain(`node ${this.peer.name} sent something that cannot be read: ${what}`))
      this.link.reportTrouble(what)
  }

  /**
   * Reports to the log, and returns true; false, without a report, if the last report about this node is too recent.
   */
  complain(trouble: string): boolean {
    const nowMs = this.party.clock.monoMs()
    if (nowMs < this.complainMs) return false
    this.complainMs = nowMs + complaintMs
    this.onTrouble(trouble)
    return true
  }

  accept(stream: Stream, theirs: ReadFrame, hello: Hello): StreamListener {
    this.stream?.close('there is a newer stream')
    if (this.stream) this.link.detach('there is a newer stream')
    return this.converse(stream, theirs, hello, helloTo(this.party, this.peer.name))
  }

  /** Why this neighbour's greeting is not accepted; undefined when it is. */
  objection(hello: Hello): string | undefined {
    if (hello.name !== this.peer.name) return `this is node ${hello.name}, not ${this.peer.name}`
    if (hello.to !== this.party.self.name) return `this is node ${this.party.self.name}, not ${hello.to}`
    if (hello.incarnation === '') return 'no incarnation'
    return undefined
  }

  /** Why no conversation is possible after this neighbour's greeting, for both logs; undefined: it is possible. */
  versionObjection(hello: Hello): string | undefined {
    if (hello.refusal !== undefined) return asLine(hello.refusal)
    const { name } = this.party.self
    return commonVersion(protocolVersions, hello) === undefined ? noCommonVersion(hello, name) : undefined
  }

  get isDialed(): boolean {
    return !this.dials
  }

  /**
   * The node has another address from now on. Its asks wait: if it is still the same process, it may answer from there.
   */
  moveTo(address: string): void {
    if (address === this.peer.address) return
    this.peer = { name: this.peer.name, address }
    if (!this.dials) return
    this.stopDialing()
    this.failures = 0
    const { stream } = this
    this.stream = undefined
    stream?.close('it has moved')
    this.link.detach('it has moved')
    if (!this.closed) this.dial()
  }

  close(reason: string): void {
    this.end(reason)?.close()
  }

  part(reason: string): void {
    this.end(reason)?.close(reason)
  }

  private end(reason: string): Stream | undefined {
    this.closed = true
    this.stopWaking()
    this.stopDialing()
    this.link.close(reason)
    const { stream } = this
    this.stream = undefined
    return stream
  }

  private dial(): void {
    let talk: StreamListener | undefined
    const { transport, clock, options } = this.party
    const stream = transport.dial(this.peer.address, {
      onMessage: message => {
        if (stream !== this.stream) return
        if (talk) return talk.onMessage(message)
        const frame = decodeFrame(message)
        if (!frame) return this.onNoFrame(stream)
        const objection = frame.hello ? this.objection(frame.hello) : 'no greeting'
        if (objection !== undefined || !frame.hello) return this.lose(stream, objection ?? '', true)
        const disagreement = this.versionObjection(frame.hello)
        if (disagreement !== undefined) {
          this.complain(disagreement)
          return this.lose(stream, disagreement, true)
        }
        this.stopDialing()
        talk = this.converse(stream, frame, frame.hello, undefined)
      },
      onDrain: () => talk?.onDrain(),
      onClosed: reason => this.lose(stream, reason, false),
    })
    this.stream = stream
    this.stopDialing = clock.after(options.silentMs, () => this.lose(stream, 'no greeting in time', true))
    stream.send(greeting(this.party, helloTo(this.party, this.peer.name), true))
  }

  private converse(stream: Stream, theirs: ReadFrame, hello: Hello, ours: Hello | undefined): StreamListener {
    this.stream = stream
    this.failures = 0
    this.protocol = commonVersion(protocolVersions, hello)
    this.link.attach(stream, theirs, hello.incarnation, ours)
    return {
      onMessage: message => {
        if (stream !== this.stream) return
        const frame = decodeFrame(message)
        if (frame) this.link.onFrame(frame)
        else this.onNoFrame(stream)
      },
      onDrain: () => {
        if (stream === this.stream) this.link.onDrain()
      },
      onClosed: reason => this.lose(stream, reason, false),
    }
  }

  /** Ends the stream, since nothing that follows on it can be trusted. */
  private onNoFrame(stream: Stream): void {
    this.noteUndecodable(noFrame)
    this.lose(stream, `it sent ${noFrame}`, true)
  }

  /** The stream has ended, or (`open`) must be closed. If this side dials, it dials again. */
  private lose(stream: Stream, reason: string, open: boolean): void {
    if (stream !== this.stream) return
    this.stream = undefined
    this.stopDialing()
    if (open) stream.close(reason)
    this.link.detach(reason)
    if (this.closed || !this.dials) return
    const { clock, options } = this.party
    this.stopDialing = clock.after(redialMs(this.failures++, options), () => this.dial())
  }

  private wakeAfter(delayMs: number): void {
    this.stopWaking = this.party.clock.after(delayMs, () => {
      const next = this.link.wake()
      if (next === 'abandon' && this.stream) this.lose(this.stream, 'it was silent for too long', true)
      if (!this.closed) this.wakeAfter(next === 'abandon' ? 1 : next)
    })
  }
}

const noFrame = 'something that is no frame'

/** Receives streams that other nodes have dialed, until their greeting has arrived. */
class Reception {
  /** In the order in which they came, with a function that closes each. */
  private readonly strangers = new Map<Stream, (reason: string) => void>()

  constructor(
    private readonly party: Party,
    private readonly neighbours: ReadonlyMap<string, Neighbour>,
  ) {}

  welcome(stream: Stream): StreamListener {
    const { clock, options } = this.party
    let talk: StreamListener | undefined
    const leave = (reason?: string): void => {
      stopWaiting()
      if (this.strangers.delete(stream) && reason !== undefined) stream.close(reason)
    }
    const stopWaiting = clock.after(options.silentMs, () => leave('no greeting in time'))
    this.strangers.set(stream, leave)
    const [longest] = this.strangers.values()
    if (this.strangers.size > strangersMax) longest?.('too many strangers')
    return {
      onMessage: message => {
        if (talk) return talk.onMessage(message)
        if (!this.strangers.has(stream)) return
        const frame = decodeFrame(message)
        const guest = frame?.hello && this.neighbours.get(frame.hello.name)
        if (!frame?.hello || !guest?.isDialed) return leave('this node does not expect you')
        const objection = guest.objection(frame.hello)
        if (objection !== undefined) return leave(objection)
        const disagreement = guest.versionObjection(frame.hello)
        if (disagreement !== undefined) {
          guest.complain(disagreement)
          stream.send(greeting(this.party, helloTo(this.party, frame.hello.name, disagreement), false))
          leave()
          return stream.close()
        }
        leave()
        talk = guest.accept(stream, frame, frame.hello)
      },
      onDrain: () => talk?.onDrain(),
      onClosed: reason => {
        leave()
        talk?.onClosed(reason)
      },
    }
  }

  close(): void {
    for (const stream of this.strangers.keys()) stream.close('this node is closing')
    this.strangers.clear()
  }
}
