// For any behaviour of a receiver and any number of kills of the broker: every pending notification arrives, and no
// other one.
//
// Several connections update entities, another one creates, switches and removes subscriptions, until the broker is
// killed; the instant is a number of acknowledged updates, drawn anew each time. Of three receivers one is always well,
// one answers with errors, stalls and hangs up, and one is gone for a while now and then. Then the broker starts on the
// same directory, and the test continues. In the end all receivers are well, the broker starts once more, and all
// notifications that the oracle (notification-oracle.ts) requires have to arrive; after one more start none arrives
// again.
//
// NOTIFICATION_CYCLES sets the number of kills. SEED repeats a run: the choices are the same, but the order of packets
// may differ.

import t, { type Test } from 'tap'
import { Random } from '../support/random.js'
import { shown } from './notification-oracle.js'
import { Story } from './notification-story.js'

const cycles = Number(process.env.NOTIFICATION_CYCLES ?? 2)
t.setTimeout(400_000 + cycles * 15_000)

t.test(`in ${cycles} kills no pending notification is lost and no other one is sent`, t => journey(t, cycles, 1))

const killsOfWorkers = Math.ceil(cycles / 4)

t.test(`nor in ${killsOfWorkers} kills of two workers`, t => journey(t, killsOfWorkers, 2))

async function journey(t: Test, kills: number, workers: number): Promise<void> {
  const random = Random.fromEnvironment()
  t.comment(`SEED=${random.seed}`)
  const story = new Story(t, random, workers)
  for (let cycle = 1; cycle <= kills; cycle++) {
    await story.start()
    await story.liveAndDie()
    if (story.oracle.problems.length > 0)
      return void t.strictSame(story.oracle.problems, [], `in cycle ${cycle}, SEED=${random.seed}`)
  }
  await story.end()
  const { oracle } = story
  t.strictSame(oracle.problems, [], `SEED=${random.seed}`)
  const missing = oracle.missing()
  t.strictSame(missing.slice(0, 10).map(shown), [], `${missing.length} are missing, SEED=${random.seed}`)
  t.strictSame(oracle.misnumbered(workers === 1), [], `SEED=${random.seed}`)
  t.ok(oracle.demanded > 10 * kills, `${oracle.demanded} were owed, ${oracle.arrivals} arrived, over ${kills} kills`)
}
