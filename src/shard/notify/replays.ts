// Automatic replays of dead letters (`-notifReplay auto`): those whose receiver answers again. Each owner has its own
// part.
//
//   resting --its time is over, or the receiver answers something--> trying (one letter) --delivered--> flowing
//      ^                                                                | not delivered                    |
//      +------- a longer pause, 5 minutes at most <---------------------+     no answer, or five put off <-+
// - A resting receiver is tried with one letter, the oldest. So a receiver of few messages gets its letters, too.
// - Letters flow at a limited rate, and few at a time, the oldest of each subscription first. Only one letter of an
//   entity is in flight, and later ones of that entity wait for it: so their order is kept.
// - The row of a letter that fails stays. It waits longer each time that its receiver answers others meanwhile. If the
//   receiver does not answer, the letter is not at fault: then all letters are ready as soon as one is delivered.
// - Nothing is sent for a subscription that is inactive, expired or switched off, until it is active again.
//
// Not here: the message of a letter (pending-letter.ts), unreachable receivers (deliver/lanes.ts).

import type { Subscription } from '../../domain/subscriptions/subscription.js'
import { isExpired } from '../../domain/subscriptions/subscription-status.js'
import type { Clock } from '../../ports.js'
import type { Subscriptions } from '../documents/forms.js'
import type { Letter, LetterList } from './letter-list.js'
import type { LetterFollower, Letters } from './letters.js'
import { ReceiverReplays, Tokens } from './receiver-replays.js'

export interface ReplayLimits {
  /**
   * Letters sent again in a second, to one receiver and to all. Raising it delivers letters sooner, and other messages
   * later.
   */
  readonly receiverReplaysPerSecondMax: number
  readonly replaysPerSecondMax: number
  /** Letters in flight at a time, to one receiver and to all. */
  readonly receiverReplaysMax: number
  readonly replaysMax: number
  /** Pause before a resting receiver is tried with one letter; it doubles with each try in vain. */
  readonly receiverPauseMsMin: number
  readonly receiverPauseMsMax: number
  /** Pause of a letter that fails while its receiver answers others; it doubles each time. */
  readonly letterPauseMsMin: number
  readonly letterPauseMsMax: number
}

export const replayLimitsDefault: ReplayLimits = {
  receiverReplaysPerSecondMax: 200,
  replaysPerSecondMax: 1_000,
  receiverReplaysMax: 16,
  replaysMax: 256,
  receiverPauseMsMin: 10_000,
  receiverPauseMsMax: 300_000,
  letterPauseMsMin: 60_000,
  letterPauseMsMax: 3_600_000,
}

/** The outcome of a replay. */
export type ReplayEnd =
  | 'delivered'
  /** The receiver has put it off, or has not answered. */
  | 'notNow'
  | 'noAnswer'
  /** Nothing was sent, because the receiver is unreachable. */
  | 'heldBack'
  /** It cannot be sent as it is. */
  | 'unsendable'
  /** Nothing was sent: the letter was deleted, or must not be sent now. */
  | 'void'

export interface ReplaySender {
  /** undefined: it depends on each message. */
  receiverOf(subscription: Subscription): string | undefined
  /** Sends a letter, and calls back once when that has ended. */
  send(letter: Letter, onEnd: (end: ReplayEnd) => void): void
}

export interface ReplayParts {
  readonly subscriptions: Subscriptions
  readonly letters: Letters
  /** Whether too many failures have switched a subscription off; undefined: the request for that is in flight. */
  readonly isSwitchedOff: (subscription: Subscription) => boolean | undefined
  readonly clock: Pick<Clock, 'monoMs' | 'wallMs' | 'after'>
  readonly limits: ReplayLimits
}

/** The time between two groups of letters to a flowing receiver. */
const stepMs = 50
/** The time between an answer to another message and the try that it causes. */
const soonMs = 1_000
/** Answers in a row that put letters off and end the flow. */
const refusalsMax = 5
/** A letter with more failures is not released early when its receiver accepts others. */
const quickFaultsMax = 3
/**
 * Letters and subscriptions examined to find some whose entity is free, and the time between two walks over all of
 * them.
 */
const walkMax = 2_000
const fullWalkMs = 1_000

export class Replays implements LetterFollower {
  readonly counters = { delivered: 0, failed: 0, unsendable: 0 }
  private sender: ReplaySender | undefined
  private readonly receivers = new Map<string, ReceiverReplays>()
  private readonly receiverOf = new Map<LetterList, ReceiverReplays>()
  private inFlight = 0
  /**
   * The number of receivers that are tried now. They may use half of the letters in flight, so unresponsive ones do not
   * block others.
   */
  private trying = 0
  private readonly tokens: Tokens
  private walkedMs = Number.NEGATIVE_INFINITY
  private wakeAtMs = Number.POSITIVE_INFINITY
  private cancelWake: (() => void) | undefined

  constructor(private readonly parts: ReplayParts) {
    const { letters, subscriptions, limits } = parts
    this.tokens = new Tokens(limits.replaysPerSecondMax)
    letters.follow(this)
    subscriptions.follow(tenant => ({ add: ({ id }) => this.onChanged(letters.of(tenant, id)), remove: () => {} }))
  }

  /** Sends letters from now on. */
  begin(sender: ReplaySender): void {
    this.sender = sender
    for (const list of this.parts.letters.lists()) this.onLetter(list)
  }

  end(): void {
    this.sender = undefined
    this.cancelWake?.()
  }

  onLetter(list: LetterList): void {
    const receiver = this.receiverOf.get(list) ?? this.enter(list)
    if (receiver?.isIdle) this.rouse(receiver, this.parts.limits.receiverPauseMsMin)
    else if (receiver?.state === 'flowing') this.wake(this.parts.clock.monoMs() + stepMs)
  }

  onEmpty(list: LetterList): void {
    const receiver = this.receiverOf.get(list)
    if (!receiver) return
    this.receiverOf.delete(list)
    receiver.lists.delete(list)
    this.forgetEmpty(receiver)
  }

  private forgetEmpty(receiver: ReceiverReplays): void {
    if (receiver.lists.size + receiver.inFlight === 0) this.receivers.delete(receiver.name)
  }

  /** A subscription has changed: it may be active again, or have another receiver. */
  private onChanged(list: LetterList | undefined): void {
    if (!list) return
    this.onEmpty(list)
    const receiver = this.enter(list)
    if (receiver?.state === 'resting') this.rouse(receiver, soonMs)
  }

  private enter(list: LetterList): ReceiverReplays | undefined {
    const subscription = this.subscriptionOf(list)
    if (!this.sender || !subscription) return undefined
    const name = this.sender.receiverOf(subscription) ?? `subscription ${list.id}`
    let receiver = this.receivers.get(name)
    if (!receiver) {
      receiver = new ReceiverReplays(name, this.parts.limits.receiverReplaysPerSecondMax)
      this.receivers.set(name, receiver)
      this.rest(receiver)
    }
    receiver.lists.add(list)
    this.receiverOf.set(list, receiver)
    return receiver
  }

  private subscriptionOf({ tenant, id }: LetterList): Subscription | undefined {
    return this.parts.subscriptions.of(tenant)?.get(id)
  }

  // [hot] Once per notification that is delivered; without letters it costs nothing.
  /** A notification was delivered: the receiver may accept the letters of its subscription. */
  onDelivered(tenant: string, subscription: string): void {
    const list = this.receivers.size > 0 && this.parts.letters.of(tenant, subscription)
    const receiver = list && this.receiverOf.get(list)
    if (receiver) this.bringForward(receiver, soonMs)
  }

  /** A receiver answers for the first time, or again after a failure. */
  onAnswering(name: string): void {
    const receiver = this.receivers.get(name)
    if (receiver) this.bringForward(receiver, 0)
  }

  private bringForward(receiver: ReceiverReplays, delayMs: number): void {
    receiver.isWell = true
    if (receiver.state === 'resting' && !receiver.isIdle) this.rouse(receiver, delayMs)
  }

  /** Tries a receiver after this delay, or sooner. */
  private rouse(receiver: ReceiverReplays, delayMs: number): void {
    receiver.isIdle = false
    receiver.nextMs = Math.min(receiver.nextMs, this.parts.clock.monoMs() + delayMs)
    this.wake(receiver.nextMs)
  }

  /** When a letter is sent automatically, at the earliest (wall clock); undefined: it is not. */
  nextMs(letter: Letter): number | undefined {
    const receiver = this.receiverOf.get(letter.list)
    if (!receiver || !letter.mayReplay || this.isSilent(letter.list) !== false) return undefined
    const { clock } = this.parts
    const nowMs = clock.monoMs()
    const restsUntilMs = receiver.state === 'resting' ? receiver.nextMs : nowMs
    const waitsUntilMs = receiver.suspects.has(letter) ? nowMs : letter.dueMs
    return Math.round(clock.wallMs() + Math.max(nowMs, restsUntilMs, waitsUntilMs) - nowMs)
  }

  private wake(atMs: number): void {
    if (!this.sender || this.wakeAtMs <= atMs) return
    this.cancelWake?.()
    this.wakeAtMs = atMs
    const { clock } = this.parts
    this.cancelWake = clock.after(atMs - clock.monoMs(), () => {
      this.wakeAtMs = Number.POSITIVE_INFINITY
      for (const receiver of this.receivers.values()) this.advance(receiver)
    })
  }

  /** Sends the letters that may be sent to a receiver now, and schedules the next call. */
  private advance(receiver: ReceiverReplays): void {
    const nowMs = this.parts.clock.monoMs()
    if (!this.sender || receiver.state === 'trying') return
    if (receiver.state === 'resting' && receiver.nextMs > nowMs) return this.wake(receiver.nextMs)
    const { receiverReplaysMax, replaysMax } = this.parts.limits
    const free = Math.min(receiverReplaysMax - receiver.inFlight, replaysMax - this.inFlight)
    const most = Math.min(free, receiver.tokens.at(nowMs), this.tokens.at(nowMs))
    if (most < 1) return this.wake(nowMs + stepMs)
    if (receiver.state === 'resting')
      return this.trying < replaysMax / 2 ? this.tryOne(receiver, nowMs) : this.wake(nowMs + stepMs)
    const found = this.pick(receiver, most, nowMs)
    for (const letter of found) this.send(receiver, letter)
    if (receiver.inFlight === 0) this.idle(receiver, nowMs)
  }

  private tryOne(receiver: ReceiverReplays, nowMs: number): void {
    let [letter] = this.pick(receiver, 1, nowMs)
    if (!letter && receiver.suspects.size > 0) {
      receiver.releaseSuspects()
      letter = this.pick(receiver, 1, nowMs)[0]
    }
    if (!letter) return this.idle(receiver, nowMs)
    receiver.state = 'trying'
    this.trying++
    this.send(receiver, letter)
  }

  /** No letter of a receiver can be sent now. */
  private idle(receiver: ReceiverReplays, nowMs: number): void {
    receiver.state = 'resting'
    receiver.isIdle = receiver.dueMs >= nowMs + soonMs
    receiver.nextMs = Math.min(receiver.dueMs, nowMs + this.parts.limits.receiverPauseMsMax)
    this.wake(receiver.nextMs)
  }

  private rest(receiver: ReceiverReplays): void {
    const { receiverPauseMsMin, receiverPauseMsMax } = this.parts.limits
    receiver.state = 'resting'
    receiver.isWell = receiver.isIdle = false
    receiver.refusals = 0
    const pauseMs = Math.min(receiverPauseMsMin * 2 ** receiver.pauses++, receiverPauseMsMax)
    receiver.nextMs = this.parts.clock.monoMs() + pauseMs * receiver.spread
    this.wake(receiver.nextMs)
  }

  private send(receiver: ReceiverReplays, letter: Letter): void {
    letter.isSending = true
    receiver.inFlight++
    this.inFlight++
    receiver.tokens.take()
    this.tokens.take()
    this.sender!.send(letter, end => this.onEnd(receiver, letter, end))
  }

  private onEnd(receiver: ReceiverReplays, letter: Letter, end: ReplayEnd): void {
    letter.isSending = false
    receiver.inFlight--
    this.inFlight--
    if (receiver.state === 'trying') this.trying--
    switch (end) {
      case 'delivered':
        this.counters.delivered++
        this.onTaken(receiver)
        break
      case 'notNow':
      case 'noAnswer':
        this.counters.failed++
        this.onFailed(receiver, letter)
        if (receiver.state === 'trying' || end === 'noAnswer' || ++receiver.refusals >= refusalsMax) this.stop(receiver)
        break
      case 'heldBack':
        this.stop(receiver)
        break
      case 'unsendable':
        this.counters.unsendable++
        this.tryAnother(receiver)
        break
      case 'void':
        letter.dueMs = this.parts.clock.monoMs() + soonMs
        this.tryAnother(receiver)
    }
    this.forgetEmpty(receiver)
    this.advance(receiver)
  }

  private onTaken(receiver: ReceiverReplays): void {
    receiver.refusals = 0
    if (receiver.state === 'resting') return this.bringForward(receiver, soonMs)
    if (receiver.state === 'trying') receiver.releaseSuspects()
    receiver.state = 'flowing'
    receiver.pauses = 0
  }

  /** The letter is at fault if its receiver answers others. */
  private onFailed(receiver: ReceiverReplays, letter: Letter): void {
    const { letterPauseMsMin, letterPauseMsMax } = this.parts.limits
    if (receiver.state === 'flowing' || receiver.isWell) letter.faults++
    const pauseMs = Math.min(letterPauseMsMin * 2 ** Math.max(0, letter.faults - 1), letterPauseMsMax)
    letter.dueMs = this.parts.clock.monoMs() + pauseMs
    if (letter.faults <= quickFaultsMax) receiver.suspects.add(letter)
  }

  private stop(receiver: ReceiverReplays): void {
    if (receiver.state !== 'resting') this.rest(receiver)
  }

  /** The letter of the try gave no information about the receiver, so another one is tried. */
  private tryAnother(receiver: ReceiverReplays): void {
    if (receiver.state !== 'trying') return
    receiver.state = 'resting'
    receiver.nextMs = this.parts.clock.monoMs()
  }

  /**
   * The next letters of a receiver, at most `most`, each of another entity. Sets when the next ones of others are due.
   */
  private pick(receiver: ReceiverReplays, most: number, nowMs: number): readonly Letter[] {
    const found: Letter[] = []
    receiver.dueMs = Number.POSITIVE_INFINITY
    const left = nowMs - this.walkedMs >= fullWalkMs ? Number.POSITIVE_INFINITY : walkMax
    let walked = 0
    let turns = receiver.lists.size
    for (const list of receiver.lists) {
      if (turns-- === 0 || found.length === most || walked >= left) break
      walked++
      // The next time, the subscriptions after this one have their turn first.
      receiver.lists.delete(list)
      receiver.lists.add(list)
      const isSilent = this.isSilent(list)
      if (isSilent === undefined) receiver.dueMs = Math.min(receiver.dueMs, nowMs + soonMs)
      if (isSilent === false) walked += pickFrom(list, most, left - walked, nowMs, receiver, found)
    }
    if (walked >= walkMax) this.walkedMs = nowMs
    if (walked >= left) receiver.dueMs = Math.min(receiver.dueMs, nowMs + fullWalkMs)
    return found
  }

  /** Whether nothing is sent for a subscription now; undefined: that is not known yet. */
  private isSilent(list: LetterList): boolean | undefined {
    const subscription = this.subscriptionOf(list)
    if (!subscription || subscription.status === 'inactive') return true
    if (isExpired(subscription, this.parts.clock.wallMs())) return true
    // The notification of this letter is the one that ended the one-shot, so its status does not matter.
    if (subscription.status === 'oneshot' || subscription.notification.maxFailsLimit === undefined) return false
    return this.parts.isSwitchedOff(subscription)
  }
}

/**
 * Adds the next letters of a subscription, until there are `most`. Returns how many it has examined, at most
 * `walkedMax`.
 */
function pickFrom(
  list: LetterList,
  most: number,
  walkedMax: number,
  nowMs: number,
  receiver: ReceiverReplays,
  found: Letter[],
): number {
  const seen = new Set<number>()
  let walked = 0
  for (let letter = list.oldest; letter && found.length < most && walked < walkedMax; letter = letter.newer) {
    walked++
    if (!letter.mayReplay || seen.has(letter.entity)) continue
    seen.add(letter.entity)
    if (letter.isSending) continue
    if (letter.dueMs > nowMs) receiver.dueMs = Math.min(receiver.dueMs, letter.dueMs)
    else found.push(letter)
  }
  return walked
}
