// Each request of the corpus gets its answer. In the soak, no request holds the event loop for long, in processor time
// of its thread. One suite for one node and for workers.
//
// The suite judges times only when it sends all requests (`HOLD=all`), on a quiet machine: beside other tests a time
// means little. It then repeats a request that seems to take too long, against another broker that has just started.
// The bound of each attempt follows how slow the machine is right after it (test/support/slowness.ts).

import type { Test } from 'tap'
import { Random } from '../support/random.js'
import { slowness } from '../support/slowness.js'
import { type HostileRequest, worlds } from './corpus.js'
import { type Measured, measure } from './measure.js'
import type { MeasuredBroker } from './turns.js'
import { startMeasured } from './turns.js'

/** Whether the suite sends all requests and judges their times. */
const isWhole = process.env.HOLD === 'all'
/** On a machine that is not slow. */
const heldMsMax = 50
/** Without `HOLD=all`, one of so many requests is sent; the seed selects which. */
const sampled = 12
/** One of so many worlds is prepared, in the same way. */
const worldsSampled = 3
const attemptsMax = 6

export function holdsNobody(t: Test, args: readonly string[]): void {
  t.setTimeout(600_000)
  const { seed } = Random.fromEnvironment()
  for (const world of worlds.filter((_, at) => isWhole || at % worldsSampled === seed % worldsSampled))
    t.test(world.name, async t => {
      const preparing = await startMeasured(t, { args })
      await world.prepare(preparing.node)
      await preparing.broker.kill('SIGTERM')
      const { dataDir } = preparing.broker
      let broker = await startMeasured(t, { args, dataDir })
      const restart = async (): Promise<MeasuredBroker> => {
        await broker.broker.kill('SIGTERM')
        broker = await startMeasured(t, { args, dataDir })
        return broker
      }
      const first = seed % sampled
      const isMeant = (_: HostileRequest, at: number): boolean => isWhole || at % sampled === first
      for (const request of world.requests.filter(isMeant)) {
        if (!isWhole) {
          const { status, text } = await answerOf(broker, request)
          t.equal(status, request.status, `${request.name}: ${text.slice(0, 200)}`)
          continue
        }
        const { status, text, heldMs, slow } = await measureAgain(broker, request, restart)
        t.equal(status, request.status, `${request.name}: ${text.slice(0, 200)}`)
        t.ok(isShort(heldMs, slow), `${request.name}: ${heldMs} ms on a machine ${slow.toFixed(1)} times as slow`)
      }
    })
}

/**
 * The answer to a request. Beside other tests workers may miss each other's deadline: after a 503 the request is sent
 * again.
 */
async function answerOf(broker: MeasuredBroker, request: HostileRequest): Promise<Measured> {
  let answer = await measure(broker, request)
  for (let attempt = 1; attempt < attemptsMax && answer.status === 503 && request.status !== 503; attempt++)
    answer = await measure(broker, request)
  return answer
}

const isShort = (heldMs: number, slow: number): boolean => heldMs <= heldMsMax * slow

/** The first attempt whose time is short enough, or else the last one; the status is that of the first. */
async function measureAgain(
  broker: MeasuredBroker,
  request: HostileRequest,
  restart: () => Promise<MeasuredBroker>,
): Promise<Measured & { readonly slow: number }> {
  const first = await measure(broker, request)
  let { heldMs } = first
  let slow = isShort(heldMs, 1) ? 1 : slowness()
  for (let attempt = 1; attempt < attemptsMax && !isShort(heldMs, slow); attempt++) {
    heldMs = (await measure(await restart(), request)).heldMs
    slow = slowness()
  }
  return { ...first, heldMs, slow }
}
