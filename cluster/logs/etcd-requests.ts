// Requests to etcd, their keys, and what the answers mean: values in, values out.
//
// A request that depends on a condition compares it in the same transaction. etcd executes a transaction in one step or
// not at all, so a late one detects by itself that its time is over. Reads are linearizable.
//
// A damaged log (a gap, another record in a place that was taken) is never repaired or read around: the outcome is
// `unknown`, and its reason reports a broken invariant.
//
//   /orrery/<cluster>/owner/<shard>            the latest takeover: its owner; its revision is the epoch. Never deleted
//   /orrery/<cluster>/log/<shard>/<sequence>   a record; the last one is never deleted
//   /orrery/<cluster>/meta/<name>              a value that was created once
//   /orrery/<cluster>/heartbeat/<node>         the latest heartbeat of a node; one key for each name ever
//
// Numbers have a fixed width, so their order as text is their order. All keys are one range: one watch reports them in
// order.
//
// Not here: carrying requests, and their deadlines (etcd-calls.ts).

import assert from 'node:assert/strict'
import type {
  ICompare,
  IDeleteRangeRequest,
  IKeyValue,
  IPutRequest,
  IPutResponse,
  IRangeRequest,
  IRangeResponse,
  IRequestOp,
  ITxnRequest,
  ITxnResponse,
} from 'etcd3'
import type {
  Append,
  AppendOutcome,
  CreateOnceOutcome,
  Heartbeat,
  HeartbeatOutcome,
  LackingOutcome,
  LogRecord,
  NamedOutcome,
  ReadOutcome,
  RetakeOutcome,
  Takeover,
  TakeoverOutcome,
  TakeoversOutcome,
  Unknown,
} from './shard-log.js'

/** Operations in a transaction, and comparisons: etcd's default limit. */
const operationsMax = 128

/** Appends in a transaction: each compares up to three things. */
export const appendsMax = Math.floor(operationsMax / 3)

/** Bytes of the records of a transaction: etcd takes requests of 1.5 MiB. */
export const appendBytesMax = 1024 * 1024

/** Records that one reading asks for at most: with the largest, etcd holds so many times `appendBytesMax` in memory. */
export const readRecordsMax = 64

const ownerBytesMax = 256

const metaBytesMax = 64 * 1024

/** Records that one request deletes at most: etcd does nothing else meanwhile. */
const trimRecordsMax = 1000

export function takeOverRequest(keys: EtcdKeys, shard: number, owner: string): IPutRequest {
  return { key: keys.owner(shard), value: ownerBytes(owner), prev_kv: true }
}

export function takeOverOutcome({ header, prev_kv: before }: IPutResponse): TakeoverOutcome {
  return { kind: 'taken', epoch: Number(header.revision), before: before ? takeoverOf(before) : undefined }
}

export function retakeRequest(keys: EtcdKeys, shard: number, epoch: number, owner: string): ITxnRequest {
  const key = keys.owner(shard)
  return {
    compare: [{ target: 'Mod', result: 'Equal', key, mod_revision: epoch }],
    success: [{ request_put: { key, value: ownerBytes(owner) } }],
  }
}

export function retakeOutcome({ succeeded, header }: ITxnResponse): RetakeOutcome {
  return succeeded ? { kind: 'taken', epoch: Number(header.revision) } : { kind: 'superseded' }
}

/**
 * Appends if each epoch is the latest, the record before is there, and no record has this number or a higher one; else
 * it reads the obstacles. Founded logs begin with record 2 (founding.ts), so the record before is compared from record
 * 3 on.
 */
export function appendRequest(keys: EtcdKeys, appends: readonly Append[]): ITxnRequest {
  const compare: ICompare[] = []
  const success: IRequestOp[] = []
  const failure: IRequestOp[] = []
  for (const { shard, epoch, sequence, bytes } of appends) {
    const owner = keys.owner(shard)
    const key = keys.record(shard, sequence)
    compare.push({ target: 'Mod', result: 'Equal', key: owner, mod_revision: epoch })
    // Compares the whole rest of the log: the place of a trimmed record is empty too, but then later records exist.
    const rest = keys.recordsFrom(shard, sequence)
    compare.push({ target: 'Create', result: 'Equal', ...rest, create_revision: 0 })
    const before = keys.record(shard, sequence - 1)
    if (hasBefore(sequence)) compare.push({ target: 'Create', result: 'Greater', key: before, create_revision: 0 })
    success.push({ request_put: { key, value: bytes } })
    failure.push({ request_range: { key: owner, keys_only: true } }, { request_range: { key } })
  }
  return { compare, success, failure }
}

export function appendOutcome(appends: readonly Append[], { succeeded, responses }: ITxnResponse): AppendOutcome {
  if (succeeded) return { kind: 'appended' }
  const storedRecord = (index: number): IKeyValue | undefined => responses[index]?.response_range.kvs[0]
  const superseded = appends.filter(({ epoch }, n) => Number(storedRecord(2 * n)?.mod_revision ?? 0) !== epoch)
  if (superseded.length > 0) return { kind: 'superseded', shards: superseded.map(({ shard }) => shard) }
  // A transaction happens as a whole or not at all. Where a place is empty, the record before was missing, of this
  // shard or of another one.
  if (appends.some(({ sequence }, n) => hasBefore(sequence) && !storedRecord(2 * n + 1))) return { kind: 'short' }
  // If all records are there already, the same append was made before.
  const wrong = appends.find(({ bytes }, n) => !storedRecord(2 * n + 1)?.value.equals(bytes))
  return wrong ? broken(wrong.shard, `its record ${wrong.sequence} is another one already`) : { kind: 'appended' }
}

const hasBefore = (sequence: number): boolean => sequence > 2

/** Puts a heartbeat if the takeovers are the latest: the first `operationsMax`, as many as etcd compares at once. */
export function heartbeatRequest(keys: EtcdKeys, { node, epochs, bytes }: Heartbeat): ITxnRequest {
  const compare = [...epochs].slice(0, operationsMax).map(
    ([shard, epoch]): ICompare => ({
      target: 'Mod',
      result: 'Equal',
      key: keys.owner(shard),
      mod_revision: epoch,
    }),
  )
  return { compare, success: [{ request_put: { key: keys.heartbeat(node), value: bytes } }] }
}

export const heartbeatOutcome = ({ succeeded }: ITxnResponse): HeartbeatOutcome =>
  succeeded ? { kind: 'appended' } : { kind: 'superseded' }

/** Of each shard the first record from a number on, without its bytes. As many as a transaction may ask for. */
export function lackingRequest(keys: EtcdKeys, ends: readonly (readonly [shard: number, end: number])[]): ITxnRequest {
  return {
    success: ends.map(([shard, end]) => ({
      request_range: { ...keys.recordsFrom(shard, end), limit: 1, keys_only: true },
    })),
  }
}

export const lackingMax = operationsMax

export function lackingOutcome(
  ends: readonly (readonly [shard: number, end: number])[],
  { responses }: ITxnResponse,
): LackingOutcome {
  const lacking = ends.filter((_, n) => !responses[n]?.response_range.kvs[0])
  return { kind: 'read', shards: lacking.map(([shard]) => shard) }
}

export function namedRequest(keys: EtcdKeys, name: string): IRangeRequest {
  return { key: keys.meta(name) }
}

export function namedOutcome({ kvs: [found] }: IRangeResponse): NamedOutcome {
  return { kind: 'read', value: found?.value }
}

/**
 * Records behind a number, the shard's owner, and the first record with the count of all, which gives the last number.
 */
export function readRequest(keys: EtcdKeys, shard: number, after: number, limit: number): ITxnRequest {
  return {
    success: [
      { request_range: { ...keys.recordsFrom(shard, after + 1), limit } },
      { request_range: { key: keys.owner(shard) } },
      { request_range: firstRecordRequest(keys, shard) },
    ],
  }
}

/** The reading, cut off where it has enough bytes. */
export function readOutcome(keys: EtcdKeys, shard: number, bytesMax: number, answer: ITxnResponse): ReadOutcome {
  const [found, owner, first] = answer.responses.map(({ response_range: range }) => range)
  assert(found && owner && first, 'etcd has left out a response of a transaction')
  const [, last] = extentOf(keys, first)
  const records: LogRecord[] = []
  let bytes = 0
  for (const { key, value } of found.kvs) {
    const sequence = sequenceOf(keys, key)
    const before = records.at(-1)
    if (before && sequence !== before.sequence + 1) {
      return broken(shard, `record ${before.sequence} is followed by ${sequence}`)
    }
    if (sequence > last) return broken(shard, `it has record ${sequence}, and not all between that and its first`)
    if (records.length > 0 && bytes + value.length > bytesMax) break
    bytes += value.length
    records.push({ sequence, bytes: value })
  }
  const [taken] = owner.kvs
  return { kind: 'read', records, last, takeover: taken ? takeoverOf(taken) : undefined }
}

export function takeoversRequest(keys: EtcdKeys): IRangeRequest {
  return { ...keys.owners, limit: shardsMax }
}

export function takeoversOutcome(keys: EtcdKeys, { kvs }: IRangeResponse): TakeoversOutcome {
  const takeovers = new Map<number, Takeover>()
  for (const kv of kvs) {
    const place = keys.placeOf(kv.key)
    if (place?.kind === 'owner') takeovers.set(place.shard, takeoverOf(kv))
  }
  return { kind: 'read', takeovers }
}

/** The first kept record, without its bytes, and the count of all. For the last one etcd would read them all. */
export function firstRecordRequest(keys: EtcdKeys, shard: number): IRangeRequest {
  return { ...keys.log(shard), limit: 1, keys_only: true }
}

/** The next part of the records to delete; undefined: nothing is left to delete. */
export function trimRequest(
  keys: EtcdKeys,
  shard: number,
  upTo: number,
  found: IRangeResponse,
): IDeleteRangeRequest | undefined {
  const [first, last] = extentOf(keys, found)
  const end = Math.min(upTo, last - 1)
  if (end < first) return undefined
  return keys.recordsBetween(shard, first, Math.min(end, first + trimRecordsMax - 1))
}

export function createOnceRequest(keys: EtcdKeys, name: string, value: Buffer): ITxnRequest {
  assert(value.length <= metaBytesMax, `the value of ${name} is too long`)
  const key = keys.meta(name)
  return {
    compare: [{ target: 'Create', result: 'Equal', key, create_revision: 0 }],
    success: [{ request_put: { key, value } }],
    failure: [{ request_range: { key } }],
  }
}

export function createOnceOutcome(value: Buffer, { succeeded, responses }: ITxnResponse): CreateOnceOutcome {
  if (succeeded) return { kind: 'stands', value }
  const stored = responses[0]?.response_range.kvs[0]
  assert(stored, 'a name can neither be created nor read')
  return { kind: 'stands', value: stored.value }
}

export function takeoverOf({ mod_revision: revision, value }: IKeyValue): Takeover {
  return { epoch: Number(revision), owner: value.toString() }
}

/** Numbers of the first kept record and of the last, without gaps between; both 0 when there has been none. */
function extentOf(keys: EtcdKeys, { kvs: [first], count }: IRangeResponse): readonly [number, number] {
  if (!first) return [0, 0]
  const sequence = sequenceOf(keys, first.key)
  return [sequence, sequence + Number(count) - 1]
}

function sequenceOf(keys: EtcdKeys, key: Buffer): number {
  const place = keys.placeOf(key)
  assert(place?.kind === 'record', 'the range of a log has a key that is not that of a record')
  return place.sequence
}

function ownerBytes(owner: string): Buffer {
  const bytes = Buffer.from(owner)
  assert(bytes.length <= ownerBytesMax, `not the name of an owner: '${owner}'`)
  return bytes
}

function broken(shard: number, what: string): Unknown {
  return { kind: 'unknown', reason: `BROKEN INVARIANT: the log of shard ${shard} is damaged, ${what}` }
}

/** Digits: as many as the largest safe integer has. */
const sequenceDigits = 16

const shardDigits = 5

export const shardsMax = 10 ** shardDigits

/** Characters of a cluster's id and of a name under `meta`. */
const nameLengthMax = 100

export interface KeyRange {
  readonly key: Buffer
  readonly range_end: Buffer
}

export type EtcdKey =
  | { readonly kind: 'owner'; readonly shard: number }
  | { readonly kind: 'record'; readonly shard: number; readonly sequence: number }
  | { readonly kind: 'heartbeat'; readonly node: string }

export class EtcdKeys {
  private readonly prefix: string

  constructor(cluster: string) {
    this.prefix = `/orrery/${named(cluster)}/`
  }

  get all(): KeyRange {
    return within(this.prefix)
  }

  get owners(): KeyRange {
    return within(`${this.prefix}owner/`)
  }

  owner(shard: number): Buffer {
    return Buffer.from(`${this.prefix}owner/${shardText(shard)}`)
  }

  record(shard: number, sequence: number): Buffer {
    return Buffer.from(this.logOf(shard) + sequenceText(sequence))
  }

  log(shard: number): KeyRange {
    return within(this.logOf(shard))
  }

  recordsFrom(shard: number, sequence: number): KeyRange {
    return { key: this.record(shard, sequence), range_end: this.log(shard).range_end }
  }

  recordsBetween(shard: number, from: number, to: number): KeyRange {
    return { key: this.record(shard, from), range_end: this.record(shard, to + 1) }
  }

  meta(name: string): Buffer {
    return Buffer.from(`${this.prefix}meta/${named(name)}`)
  }

  heartbeat(node: string): Buffer {
    return Buffer.from(`${this.prefix}heartbeat/${named(node)}`)
  }

  /** Undefined for keys that are not reported to followers. */
  placeOf(key: Buffer): EtcdKey | undefined {
    const text = key.toString('latin1')
    if (!text.startsWith(this.prefix)) return undefined
    const [kind, shard, sequence] = text.slice(this.prefix.length).split('/')
    if (kind === 'owner') return { kind: 'owner', shard: Number(shard) }
    if (kind === 'log') return { kind: 'record', shard: Number(shard), sequence: Number(sequence) }
    if (kind === 'heartbeat' && shard !== undefined) return { kind: 'heartbeat', node: shard }
    return undefined
  }

  private logOf(shard: number): string {
    return `${this.prefix}log/${shardText(shard)}/`
  }
}

function within(prefix: string): KeyRange {
  assert(prefix.endsWith('/'))
  return { key: Buffer.from(prefix), range_end: Buffer.from(`${prefix.slice(0, -1)}0`) }
}

function named(name: string): string {
  assert(/^[A-Za-z0-9._-]+$/.test(name) && name.length <= nameLengthMax, `not a name: '${name}'`)
  return name
}

function shardText(shard: number): string {
  assert(Number.isInteger(shard) && shard >= 0 && shard < shardsMax, `not a shard: ${shard}`)
  return String(shard).padStart(shardDigits, '0')
}

function sequenceText(sequence: number): string {
  assert(Number.isSafeInteger(sequence) && sequence >= 0, `not a sequence: ${sequence}`)
  return String(sequence).padStart(sequenceDigits, '0')
}
