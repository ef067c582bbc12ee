// What must hold of a run of a simulated cluster, told from what clients were told and from the log.
//
// The log gives each counter one history: who raised it to which value. Then each counter is linearizable if
//
//   what was acknowledged stands in it once, with the value that was told; what was refused does not; the rest at most once
//   what was acknowledged before another operation was asked for stands before it
//   a read tells a state of the history, and none older than anything that was acknowledged or read before it was asked for
//   who answers for any shard has what was acknowledged of the register
//
// A superseded owner that had answered once would break one of these.

import type { LogRecord } from '../../cluster/logs/shard-log.js'
import { decodeRecord } from '../../cluster/replication/log-record.js'
import { type Operation, type SimulatedCluster, shards } from './simulated-cluster.js'
import { type Counter, decodeRows } from './simulated-host.js'

/** What is wrong, in words; nothing when all is well. */
export function check(cluster: SimulatedCluster): readonly string[] {
  const wrong: string[] = []
  for (let shard = 0; shard <= shards; shard++) {
    const histories = historiesOf(cluster, shard)
    const operations = cluster.operations.filter(operation => operation.shard === shard)
    for (const entity of new Set(operations.map(operation => operation.entity)))
      checkCounter(
        `${shard}/${entity}`,
        histories.get(entity) ?? [],
        operations.filter(operation => operation.entity === entity),
        wrong,
      )
  }
  return wrong
}

/** All records of a shard that there ever were, in order. */
const recordsOf = ({ engine }: SimulatedCluster, shard: number): readonly LogRecord[] =>
  engine.events.flatMap(event => (event.kind === 'record' && event.shard === shard ? event.record : []))

/** All states of each counter of a shard, in order. */
function historiesOf(cluster: SimulatedCluster, shard: number): Map<string, Counter[]> {
  const histories = new Map<string, Counter[]>()
  let begun: Buffer[] = []
  for (const { bytes } of recordsOf(cluster, shard)) {
    const { payload, stretch } = decodeRecord(bytes)!
    if (!stretch.wentBefore) begun = []
    begun.push(payload)
    if (stretch.goesOn) continue
    for (const [entity, counter] of decodeRows(Buffer.concat(begun))) {
      const history = histories.get(entity) ?? []
      history.push(counter)
      histories.set(entity, history)
    }
  }
  return histories
}

/** The number of the last record that ends a step; behind it there is at most what broke off. */
function endOf(cluster: SimulatedCluster, shard: number): number {
  const records = recordsOf(cluster, shard)
  return records.findLast(({ bytes }) => !decodeRecord(bytes)!.stretch.goesOn)?.sequence ?? 0
}

function checkCounter(
  name: string,
  history: readonly Counter[],
  operations: readonly Operation[],
  wrong: string[],
): void {
  const places = new Map<string, number>()
  for (const [index, { value, by }] of history.entries()) {
    if (places.has(by)) wrong.push(`${name}: ${by} stands in the log twice`)
    if (value !== index + 1) wrong.push(`${name}: state ${index + 1} of the log has value ${value}`)
    places.set(by, index + 1)
  }
  /** The oldest state that an operation may have seen or made: by the time from which on that is so. */
  const bounds: { readonly fromMs: number; readonly place: number; readonly isRaise: boolean }[] = []
  const answered = operations.filter(({ outcome }) => outcome === 'done').sort((a, b) => a.answeredMs - b.answeredMs)
  for (const { id, outcome, kind } of operations)
    if (kind === 'raise' && outcome === 'refused' && places.has(id))
      wrong.push(`${name}: ${id} was refused, and is there`)
  for (const { id, kind, counter, answeredMs } of answered) {
    const place = kind === 'raise' ? places.get(id) : placeOf(counter, places)
    if (place === undefined) wrong.push(`${name}: ${id} (${kind}) tells of ${counter?.by}, which is not in the log`)
    else {
      if (counter && counter.value !== place) wrong.push(`${name}: ${id} was told ${counter.value}, and it is ${place}`)
      // What is observed somewhere may be ahead of what the owner has told anybody.
      if (kind !== 'observe') bounds.push({ fromMs: answeredMs, place, isRaise: kind === 'raise' })
    }
  }
  for (const { id, kind, counter, askedMs } of answered) {
    const place = (kind === 'raise' ? places.get(id) : placeOf(counter, places)) ?? Number.POSITIVE_INFINITY
    const earlier = bounds.filter(({ fromMs, isRaise }) => fromMs < askedMs && (isRaise || kind !== 'observe'))
    const bound = Math.max(0, ...earlier.map(one => one.place))
    // A raise stands behind everything before it, a read shows it or what came later.
    if (kind === 'raise' ? place <= bound : place < bound)
      wrong.push(`${name}: ${id} (${kind}) is at ${place}, and ${bound} was known before it was asked for`)
  }
}

const placeOf = (counter: Counter | undefined, places: ReadonlyMap<string, number>): number | undefined =>
  counter ? places.get(counter.by) : 0

/** Whether every copy that is whole is what the log makes of it, and every shard has an owner that answers. */
export function checkPeace(cluster: SimulatedCluster): readonly string[] {
  const wrong: string[] = [...cluster.stopped, ...cluster.losses]
  for (let shard = 0; shard <= shards; shard++) {
    const histories = historiesOf(cluster, shard)
    const last = new Map([...histories].map(([entity, history]) => [entity, history.at(-1)!.by]))
    const owners = cluster.nodes.filter(({ now }) => now?.replicator.serves(shard))
    if (owners.length !== 1) wrong.push(`shard ${shard} is answered for by ${owners.length} nodes`)
    let copies = 0
    for (const { name, disk, now } of cluster.nodes) {
      const { rows, position } = disk.of(shard)
      if (!position || !now) continue
      const end = endOf(cluster, shard)
      if (position.sequence !== end) {
        if (now.replicator.keeps(shard))
          wrong.push(`${name} is at ${position.sequence} of shard ${shard}, which ends at ${end}`)
        continue
      }
      copies++
      for (const [entity, by] of last)
        if (rows.get(entity)?.by !== by)
          wrong.push(`${name} has ${rows.get(entity)?.by} for ${shard}/${entity}, not ${by}`)
    }
    if (copies < 2) wrong.push(`shard ${shard} has ${copies} whole copies`)
  }
  return wrong
}
