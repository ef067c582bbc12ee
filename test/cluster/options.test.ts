// Options: contradictory ones are refused. Redials come later and later, never all at once.

import t from 'tap'
import { askOptionsDefault, completeOptions, redialMs } from '../../cluster/options.js'

t.test('a missing option has its default', async t => {
  t.strictSame(completeOptions({ pingMs: 100 }), { ...askOptionsDefault, pingMs: 100 })
})

t.test('knobs that contradict each other are a bug', async t => {
  t.throws(() => completeOptions({ pingMs: 600 }), /silentMs has no room for two pings/)
  t.throws(() => completeOptions({ abandonMs: 900 }), /abandonMs is shorter/)
  t.throws(() => completeOptions({ inFlightBytesMax: 1 }), /no room for one request/)
  t.throws(() => completeOptions({ answersBytesMax: 1 }), /no room for one reply/)
  t.throws(() => completeOptions({ redialMsMax: 1 }), /redialMsMax is shorter/)
})

t.test('the pause before a redial doubles up to its limit, and chance halves it at most', async t => {
  const pauses = (chance: number) =>
    [0, 1, 2, 3, 4, 5, 6, 1000].map(failures => redialMs(failures, completeOptions({ chance: () => chance })))
  t.strictSame(pauses(1), [50, 100, 200, 400, 800, 1000, 1000, 1000])
  t.strictSame(pauses(0), [25, 50, 100, 200, 400, 500, 500, 500])
})
