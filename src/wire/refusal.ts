// A refusal inside a reply, as JSON: its kind, code and facts as members, and its text.
//
// Another build may know other codes, kinds and facts. The rule for them:
// - A reader that knows the code and finds all its facts makes its own refusal, and ignores other members.
// - Otherwise the refusal becomes an `unknownCode`, which keeps the kind and the text of the sender. The client gets the
//   answer that the sender meant, and no decision here takes it for a refusal of another code.
// - A kind that the reader does not know becomes InternalServerError.

import { knownRefusal, type Refusal, refusals, refusalText } from '../domain/refusal.js'
import { type RefusalKind, refusalKinds } from '../domain/refusal-kind.js'

interface WireRefusal {
  readonly kind?: unknown
  readonly code?: unknown
  /** The text. No fact is called so. */
  readonly description?: unknown
}

/** What of a refusal is sent. */
export const refusalToWire = (refusal: Refusal): WireRefusal => ({ ...refusal, description: refusalText(refusal) })

/** The refusal of what another process sent, whatever its build. */
export function refusalFromWire(wire: WireRefusal): Refusal {
  const kind = (refusalKinds as readonly unknown[]).includes(wire.kind)
    ? (wire.kind as RefusalKind)
    : 'InternalServerError'
  return knownRefusal({ ...wire, kind }) ?? refusals.unknownCode(kind, textOf(wire.code), textOf(wire.description))
}

const textOf = (json: unknown): string => (typeof json === 'string' ? json : '')
