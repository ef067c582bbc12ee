// Soon after a start, a process takes a few large entities through all that a request does with one, apart from the store: parsing, checking, changing,
// encoding, decoding, rendering.
//
// Code that has not run yet is ten times slower than code that has, so that the first request about an entity of some thousand attributes would hold the event
// loop of a process for several times as long as the next one. This takes some 0.3 s of processor time, in steps of some milliseconds. It does not keep a
// start waiting: it begins when the process has served for a second.

import { type Entity, parseAttributes, parseEntity } from './domain/entity.js'
import { compilePattern } from './domain/pattern.js'
import type { Mode } from './domain/representation.js'
import { renderEntity } from './domain/representation.js'
import { appendAttributes, createEntity, replaceAttributes, updateAttributes } from './domain/update.js'
import { parseJson } from './http/body.js'
import { decodeImage, encodeImage } from './image.js'

const delayMs = 1_000
const attributeCount = 250
const rounds = 16
/** Regular expressions have an engine of their own, which is slow at first, too. */
const patternsPerRound = 5
const textLength = 200
const options = { overrideMetadata: false, forcedUpdate: false }
const modes: readonly Mode[] = ['normalized', 'keyValues', 'values']
const nothingNamed = { attrs: undefined, metadata: undefined }

/** Warms up once the process has served for a while, in turns of the event loop of its own. */
export function warmUpSoon(): void {
  setTimeout(() => goOn(steps()), delayMs).unref()
}

function goOn(rest: Iterator<undefined>): void {
  if (!rest.next().done) setImmediate(() => goOn(rest)).unref()
}

/** All of it, done as far as it is asked for. */
export function* steps(): Generator<undefined, undefined> {
  for (let round = 1; round <= rounds; round++) {
    const entity = created(bytesOf({ id: 'warm-up', type: 'WarmUp', ...members(round, 'a') }), round)
    const image = encodeImage(entity, 'root')
    yield
    let known = decodeImage(image)
    decodeImage(asFromStore(image))
    yield
    const changes = [updateAttributes, appendAttributes, replaceAttributes] as const
    for (const [index, change] of changes.entries()) {
      // Of the second change half of the attributes are new, of the third all.
      const wanted = parseAttributes(parsed(bytesOf(members(round + 1, 'a', index * (attributeCount / 2)))), false)
      if (!wanted.ok) continue
      const nowMs = round + index
      const { after } =
        (change === updateAttributes
          ? updateAttributes(known, wanted.value, options, 'warm-up', nowMs)
          : change === appendAttributes
            ? appendAttributes(known, wanted.value, options, nowMs)
            : replaceAttributes(known, wanted.value, nowMs)
        ).change ?? {}
      if (!after) continue
      const before = encodeImage(known, 'root')
      const isStored = (round + index) % 2 === 0
      yield
      known = decodeImage(encodeImage(after, 'root', { entity: known, image: isStored ? asFromStore(before) : before }))
    }
    yield
    for (let n = 0; n < patternsPerRound; n++)
      compilePattern(`^[ab]*a[ab]{${n}}x${round}$`)?.test('ab'.repeat(textLength / 2))
    yield
    for (const mode of modes) renderEntity(known, '/', { ...nothingNamed, mode })
    yield
    renderEntity(known, '/', { mode: 'normalized', attrs: ['*', 'dateModified'], metadata: ['*', 'dateModified'] })
  }
}

/** The same bytes in a buffer of the shape that native code makes: what the engine compiles for one shape alone is thrown away at the first other one. */
const asFromStore = (bytes: Buffer): Buffer => Object.setPrototypeOf(new Uint8Array(bytes), Buffer.prototype) as Buffer

function created(body: Uint8Array, stamp: number): Entity {
  const wanted = parseEntity(parsed(body), false)
  const after = wanted.ok ? createEntity(wanted.value, stamp).change?.after : undefined
  if (!after) throw new Error('the entity for warming up is right')
  return after
}

function parsed(body: Uint8Array) {
  const payload = parseJson(body)
  if (!payload.ok) throw new Error('the body for warming up is right')
  return payload.value
}

const bytesOf = (json: object): Uint8Array => Buffer.from(JSON.stringify(json))

/** Attributes as they usually are. */
function members(round: number, prefix: string, from = 0): Record<string, object> {
  const all: Record<string, object> = {}
  for (let n = from; n < from + attributeCount; n++) all[`${prefix}${n}`] = attribute(n, round)
  return all
}

function attribute(n: number, round: number): object {
  const unit = { unit: { type: 'Text', value: 'CEL' }, accuracy: { value: 0.5 } }
  switch (n % 6) {
    case 0:
      return { type: 'Number', value: n + round, metadata: unit }
    case 1:
      return { value: n + round / 8 }
    case 2:
      return { type: 'Text', value: `value ${n} of ${round}` }
    case 3:
      return { type: 'DateTime', value: '2024-05-01T10:00:00Z' }
    case 4:
      return { type: 'StructuredValue', value: { list: [n, round, 'ü'], inner: { on: true } } }
    default:
      return { type: 'Boolean', value: n % 4 === 0, metadata: {} }
  }
}
