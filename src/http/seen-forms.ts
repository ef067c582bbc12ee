// Stored entities as a reader with a grant sees them (docs/interface/access.md#reads). Hidden attributes are cut out of
// their bytes.
//
// [hot] Nearly all entities of an answer have one path and one type. If the rules name no ids, all of them show the
// same attributes, so the rules are asked once for each run of such entities.
//
// Not here: entities that were merged or are rendered (list-body.ts), which entities a reader finds (shard/read).

import assert from 'node:assert/strict'
import { type AttributeSet, shows } from '../domain/access/attribute-set.js'
import type { AccessCondition } from '../domain/access/condition.js'
import { encodedId, encodedType, hasType, SeenMembers, StoredJson } from '../encoded-entity.js'

/** The entities of one path and type. */
interface Range {
  readonly path: string
  readonly type: Uint8Array
  /** undefined: every attribute is shown. */
  readonly members: SeenMembers | undefined
}

/**
 * Ranges and sets of attributes that a process remembers, at up to 16 KB each if names are as long as they may be. At
 * the limit all are forgotten: to find one out again takes some microseconds.
 */
export const seenFormsMax = 2_000

/** The forms that this process has found since it last forgot all of them. */
class KnownForms {
  readonly ofConditions = new WeakMap<AccessCondition, SeenForms>()
  readonly ofSets = new WeakMap<AttributeSet, SeenMembers>()
  /** The number of ranges and sets. */
  count = 0
}

let known = new KnownForms()

/** Counts a new range or set. At the limit it forgets all forms; answers in progress keep theirs. */
function makeRoom(): void {
  if (known.count >= seenFormsMax) known = new KnownForms()
  known.count++
}

class SeenForms {
  private latest: Range | undefined
  private readonly ranges = new Map<string, Range>()

  constructor(private readonly condition: AccessCondition) {}

  /** The normalized JSON of what is seen, of an entity whose JSON `isAnswer`. */
  jsonOf(path: string, encoded: Buffer): StoredJson {
    const { latest } = this
    const isKnown = latest !== undefined && latest.path === path && hasType(encoded, latest.type)
    const members = isKnown ? latest.members : this.membersOf(path, encoded)
    return members ? members.jsonOf(encoded) : StoredJson.whole(encoded)
  }

  private membersOf(path: string, encoded: Buffer): SeenMembers | undefined {
    const type = encodedType(encoded)
    const range = this.ranges.get(keyOf(path, type)) ?? this.rangeAnew(path, type)
    if (range) {
      this.latest = range
      return range.members
    }
    const set = this.condition.attributesOf({ path, type, id: encodedId(encoded) })
    assert(set, 'a reader finds only what it may see')
    return membersShown(set)
  }

  /** undefined: the rules name ids. */
  private rangeAnew(path: string, type: string): Range | undefined {
    const set = this.condition.attributesOfRange(path, type)
    if (!set) return undefined
    makeRoom()
    const range = { path, type: Buffer.from(type, 'latin1'), members: membersShown(set) }
    this.ranges.set(keyOf(path, type), range)
    return range
  }
}

/** Neither a path nor a type has a blank. */
const keyOf = (path: string, type: string): string => `${path} ${type}`

export function seenFormsUnder(condition: AccessCondition): SeenForms {
  let forms = known.ofConditions.get(condition)
  if (!forms) {
    forms = new SeenForms(condition)
    known.ofConditions.set(condition, forms)
  }
  return forms
}

/** undefined: every attribute is shown. */
function membersShown(set: AttributeSet): SeenMembers | undefined {
  if (set.kind === 'all') return undefined
  let members = known.ofSets.get(set)
  if (!members) {
    makeRoom()
    members = new SeenMembers(name => shows(set, name))
    known.ofSets.set(set, members)
  }
  return members
}
