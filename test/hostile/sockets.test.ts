// Hostile clients of WebSockets do not stop the broker, disturb a neighbour, or leave anything behind: on both servers.
//
// HOSTILE_SHOTS is the number of shots for each server. SEED repeats a run: the shots are the same, though they run
// side by side. HOSTILE_ONLY=uws runs one of the two.

import t from 'tap'
import { Random } from '../support/random.js'
import { SocketCampaign } from './socket-campaign.js'
import { SocketShots } from './socket-shots.js'

const shots = Number(process.env.HOSTILE_SHOTS ?? 1_000)
const only = process.env.HOSTILE_ONLY
const { seed } = Random.fromEnvironment()
t.setTimeout(300_000 + shots * 100)

t.test('a seed gives the same shots again', async t => {
  const drawn = (from: number): string[] => {
    const generator = new SocketShots(new Random(from))
    return Array.from({ length: 500 }, () => {
      const { kind, pieces, then, refs } = generator.next()
      return [kind, then, refs.join(), Buffer.concat(pieces).toString('latin1')].join(' ')
    })
  }
  const [first, , again] = [drawn(1), drawn(2), drawn(1)]
  t.ok(first.every((shot, index) => shot === again[index]))
})

for (const server of ['uws', 'node'] as const)
  if (only === undefined || only === server)
    t.test(`hostile WebSockets at ${server}`, async t => {
      t.comment(`SEED=${seed} HOSTILE_SHOTS=${shots}`)
      const { problems, comments, kinds } = await new SocketCampaign({ server, shots, seed }).run(t)
      for (const comment of comments) t.comment(comment)
      for (const problem of problems) t.fail(problem)
      if (shots >= 2_000) t.ok(kinds.size >= 15, `${kinds.size} kinds`)
    })
