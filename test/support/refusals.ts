// Refusals by their code, for tests that look at all of them.

import { type Refusal, refusals } from '../../src/domain/refusal.js'
import type { RefusalCode } from '../../src/domain/refusal-rules.js'
import { refusalTexts } from '../cases/refusal-texts.js'

/** The refusal of a code with these facts, in the order of its rule. */
export function refusalLike(code: RefusalCode, facts: readonly unknown[]): Refusal {
  const made = refusals[code] as Refusal | ((...facts: readonly unknown[]) => Refusal)
  return typeof made === 'function' ? made(...facts) : made
}

/** One refusal of each code. */
export const allRefusals: readonly Refusal[] = (Object.keys(refusalTexts) as RefusalCode[]).map(code => {
  const [, , ...facts] = refusalTexts[code]
  return refusalLike(code, facts)
})
