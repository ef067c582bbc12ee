// The entities that a subscription watches or a registration provides, as their bodies name them (subscriptions.md §1.3, §3.3).
//
// Not here: whether the list may be empty or missing, and what of it a registration does not take (registration-parser.ts).

import { hasIdentifierCharacters } from '../identifier.js'
import { isArray, isObject, type Json } from '../json.js'
import { identifierLengthMax, listLengthMax, selectionPatternsMax, selectionStepsMax } from '../limits.js'
import { compilePattern, type Pattern } from '../queries/pattern.js'
import { accepted, done, type Refusal, type Result, refusals, refused } from '../refusal.js'
import type { SubjectEntity } from './subscription.js'

/** The elements of an array, what is the same once (subscriptions.md §3.3). */
export function parseSubjectEntities(json: Json): Result<readonly SubjectEntity[]> {
  if (!isArray(json)) return refused(refusals.subjectEntitiesNotArray)
  if (json.length > listLengthMax) return refused(refusals.tooMany('entities', json.length, listLengthMax))
  const patterns = new PatternBudget()
  const entities = new Map<string, SubjectEntity>()
  for (const item of json) {
    const entity = parseEntity(item, patterns)
    if (!entity.ok) return entity
    const { id, idPattern, type, typePattern } = entity.value
    entities.set(JSON.stringify([id, idPattern, type, typePattern]), entity.value)
  }
  return accepted([...entities.values()])
}

/** The regular expressions of a subject, which together are as limited as those of a query: any change may be tried on all of them. */
class PatternBudget {
  private count = 0
  private steps = 0

  spend(pattern: Pattern): Refusal | undefined {
    if (++this.count > selectionPatternsMax) return refusals.selectionPatternsTooMany(selectionPatternsMax)
    this.steps += pattern.steps
    return this.steps > selectionStepsMax ? refusals.selectionPatternsTooLarge(selectionStepsMax) : undefined
  }
}

function parseEntity(json: Json, patterns: PatternBudget): Result<SubjectEntity> {
  if (!isObject(json)) return refused(refusals.fieldNotObject('/entities/ vector item'))
  const { id, idPattern, type, typePattern } = json
  if (id === undefined && idPattern === undefined) return refused(refusals.subjectEntityWithoutId)
  if (id !== undefined && idPattern !== undefined) return refused(refusals.subjectEntityBothIds)
  if (type !== undefined && typePattern !== undefined) return refused(refusals.subjectEntityBothTypes)
  const checkedId = id === undefined ? checkPattern('idPattern', idPattern as Json, patterns) : checkId(id)
  if (!checkedId.ok) return checkedId
  if (type !== undefined) {
    const checked = checkType(type)
    if (!checked.ok) return checked
  } else if (typePattern !== undefined) {
    const checked = checkPattern('typePattern', typePattern, patterns)
    if (!checked.ok) return checked
  }
  const given = Object.entries({ id, idPattern, type, typePattern }).filter(([, text]) => text !== undefined)
  return accepted(Object.fromEntries(given) as SubjectEntity)
}

function checkId(json: Json): Result<undefined> {
  if (typeof json !== 'string') return refused(refusals.fieldNotString('/entities/ vector item /id/'))
  if (json === '') return refused(refusals.fieldEmpty('/entities/ element id'))
  return checkIdentifierOf('id', json)
}

function checkType(json: Json): Result<undefined> {
  if (typeof json !== 'string') return refused(refusals.fieldNotString('/entities/ vector item type'))
  if (json === '') return refused(refusals.identifierTooShort('entity type'))
  return checkIdentifierOf('type', json)
}

function checkIdentifierOf(field: 'id' | 'type', text: string): Result<undefined> {
  if (!hasIdentifierCharacters(text)) return refused(refusals.charactersIn(`/entities/ vector item /${field}/`))
  return text.length > identifierLengthMax ? refused(refusals.subjectEntityTooLong(field)) : done
}

function checkPattern(field: 'idPattern' | 'typePattern', json: Json, patterns: PatternBudget): Result<undefined> {
  if (typeof json !== 'string') return refused(refusals.fieldNotString(`/entities/ vector item /${field}/`))
  if (json === '') return refused(refusals.fieldEmpty(`/entities/ vector item /${field}/`))
  const pattern = compilePattern(json)
  if (!pattern) return refused(refusals[field])
  const refusal = patterns.spend(pattern)
  return refusal ? refused(refusal) : done
}
