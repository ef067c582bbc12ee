// Checks whether this release understands a row that another node has written: its kind of key and its version. Of rows
// that all nodes use, it checks all content.
//
// A copy takes a row over without decoding it, and the row is read once this node owns the shard. An unreadable row
// would then end the node, so the copy stops before it has it.
//
// Not here: whether a row belongs to the shard (replicated-layout.ts).

import { Unreadable } from '../../domain/unreadable.js'
import { assertEncodedEntity } from '../../encoded-entity.js'
import { readRow } from '../../rows.js'
import { readRegistration, readSubscription } from '../../wire/shapes.js'
import { decodeDocumentRow, parseDocumentKey } from '../documents/document-layout.js'
import { prefix } from '../keys.js'
import {
  attributeCounts,
  decodeRow,
  entityCounts,
  parseEntityKey,
  parseExpiryKey,
  parseIdKey,
  parseTypeKey,
} from '../layout.js'
import { decodeLetterRow, parseLetterKey, parseOutboxKey } from '../notify/notification-layout.js'
import { decodeProgress } from '../notify/progress-book.js'
import { assertTriggerEvent } from '../notify/trigger-event.js'
import { decodeMark, isMarkKey } from '../tenants/deletion-layout.js'
import { parsePathKey } from './replicated-layout.js'
import type { RowOperation } from './row-operations.js'

// [hot] Once per row that a copy takes over.
/** Fails with `Unreadable` where the row of an operation is not understood. */
export const checkRow = (row: RowOperation): void => readRow(row.key, () => check(row))

function check({ key, value }: RowOperation): void {
  switch (key[0]) {
    case prefix.entity:
      parseEntityKey(key)
      if (value) decodeRow(value).forEach(assertEncodedEntity)
      return
    case prefix.type:
      return void parseTypeKey(key)
    case prefix.id:
      return void parseIdKey(key)
    case prefix.expiry:
      return void parseExpiryKey(key)
    case prefix.subscription:
    case prefix.registration: {
      parseDocumentKey(key)
      const text = value && decodeDocumentRow(value)
      if (text !== undefined && key[0] === prefix.subscription) readSubscription(text)
      else if (text !== undefined) readRegistration(text)
      return
    }
    case prefix.progress:
      parseDocumentKey(key)
      if (value) decodeProgress(value)
      return
    case prefix.outbox:
      parseOutboxKey(key)
      if (value) assertTriggerEvent(value)
      return
    case prefix.letter:
      parseLetterKey(key)
      if (value) decodeLetterRow(value)
      return
    case prefix.path:
      parsePathKey(key)
      if (value && isMarkKey(key)) decodeMark(key, value)
      return
    case prefix.directory:
      entityCounts.parse(key)
      return checkCount(value)
    case prefix.attribute:
      attributeCounts.parse(key)
      return checkCount(value)
  }
}

const countBytes = 8

function checkCount(value: Buffer | undefined): void {
  if (value && value.length !== countBytes) throw new Unreadable('a count has the wrong length')
}
