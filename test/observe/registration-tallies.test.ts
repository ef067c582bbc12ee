// The counts of forwarded requests by registration, and how much a process keeps of them.

import t from 'tap'
import { joinOutcomes } from '../../src/domain/providers/forwarding-outcome.js'
import { RegistrationTallies, registrationsCountedMax } from '../../src/observe/registration-tallies.js'

t.test('requests are counted by registration, with their latest outcomes', async t => {
  let nowMs = 1_000
  const tallies = new RegistrationTallies({ wallMs: () => nowMs })
  tallies.onEnded({ registration: 'a', failure: undefined })
  nowMs = 2_000
  tallies.onEnded({ registration: 'a', failure: 'x'.repeat(1_000) })
  tallies.onEnded({ failure: undefined })
  const [a, ...others] = tallies.of(['a', 'b'])
  t.same(others, [])
  const lastFailure = { ms: 2_000, reason: 'x'.repeat(200) }
  t.same(a, { registration: 'a', sent: 2, failed: 1, lastMs: 2_000, lastSuccessMs: 1_000, lastFailure })
})

t.test('the oldest are forgotten', async t => {
  const tallies = new RegistrationTallies({ wallMs: () => 0 })
  for (let n = 0; n < 3 * registrationsCountedMax; n++) tallies.onEnded({ registration: `r${n}`, failure: undefined })
  t.same(tallies.of(['r0']), [])
  t.match(tallies.of([`r${3 * registrationsCountedMax - 1}`]), [{ sent: 1 }])
})

t.test('what two processes have counted is added, and the later outcome counts', async t => {
  const a = { registration: 'r', sent: 1, failed: 0, lastMs: 5, lastSuccessMs: 5 }
  const b = { registration: 'r', sent: 2, failed: 2, lastMs: 7, lastFailure: { ms: 7, reason: 'late' } }
  const c = { ...b, lastFailure: { ms: 3, reason: 'early' } }
  const both = { registration: 'r', sent: 3, failed: 2, lastMs: 7, lastSuccessMs: 5, lastFailure: b.lastFailure }
  t.same(joinOutcomes(a, b), both)
  t.same(joinOutcomes(b, a), both)
  t.match(joinOutcomes(c, b), { sent: 4, lastFailure: b.lastFailure })
  t.match(joinOutcomes(b, c), { sent: 4, lastFailure: b.lastFailure })
})
