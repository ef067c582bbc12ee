// The generator of the campaign: requests that a stranger could send, drawn from one Random, so that a seed gives the
// same requests.
//
// It makes valid requests of all routes, most of them with one mutation, raw bytes, and requests that look for data of
// another tenant. It is written from the interface documents and shares no code with the broker.

import type { Random } from '../support/random.js'
import { type Shot, shotOf } from './draft.js'
import { hunt, mutate } from './mutations.js'
import { rawShot } from './raw-heads.js'
import { type Targets, ValidRequests } from './valid-requests.js'

export class HostileRequests {
  private readonly random: Random
  private readonly valid: ValidRequests
  private readonly huntedId: string

  /** `huntedId`: a subscription of the tenant that others must not see. */
  constructor(random: Random, targets: Targets, huntedId: string) {
    this.random = random
    this.valid = new ValidRequests(random, targets)
    this.huntedId = huntedId
  }

  next(): Shot {
    const { random } = this
    const share = random.between(0, 99)
    if (share < 8) return rawShot(random)
    if (share < 12) return shotOf(hunt(random, this.huntedId))
    const draft = this.valid.next()
    if (share >= 30) mutate(random, draft)
    return inPieces(random, shotOf(draft))
  }

  /** Adds the location of a created document, for some of the later requests. */
  learn(location: string): void {
    this.valid.learn(location)
  }
}

/** Cuts some requests inside the body, where every server has to accept a cut. */
function inPieces(random: Random, shot: Shot): Shot {
  const [whole] = shot.pieces
  if (!whole || shot.expects !== 'strict' || random.between(0, 9) > 0) return shot
  const headEnd = Buffer.from(whole).indexOf('\r\n\r\n') + 4
  if (headEnd >= whole.length) return shot
  const at = random.between(headEnd, whole.length)
  return { ...shot, pieces: [whole.subarray(0, at), whole.subarray(at)] }
}
