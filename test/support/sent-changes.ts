// Changes as owners of shards send them to the holders of streams.

import { encodeEntity } from '../../src/encoded-entity.js'
import type { SentChange } from '../../src/messages/streams.js'

/** The `n`th change, of an entity with one attribute `a` of so many characters. */
export function changeOf(id: string, n: number, size = 10, kind: SentChange['class'] = 'change'): SentChange {
  const attribute = {
    type: 'Text',
    value: `${n} ${'x'.repeat(size)}`,
    metadata: new Map(),
    createdMs: 0,
    modifiedMs: 0,
  }
  const entity = { id, type: 'T', created: 1, modifiedMs: 1, attributes: new Map([['a', attribute]]) }
  return {
    ...{ shard: 1, stamp: n, tick: n, tenant: '', path: '/', class: kind, correlator: 'c', found: [1], left: [] },
    ...{ changed: [`c${n}`], named: [`n${n}`] },
    encoded: encodeEntity(entity, 'root'),
  }
}
