// `orrery demo` from outside: a process that is started, looked at, and ended with SIGINT.

import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { becomes } from '../console/scene.js'
import { listensNobody, tempDir } from '../support/broker-process.js'
import { spawnDemo, startDemo } from '../support/demo-process.js'
import { EventReader } from '../support/event-reader.js'
import { HttpClient } from '../support/http-client.js'

t.setTimeout(120_000)

/** Longest time until it has ended after SIGINT. */
const endMsMax = 2_000

interface SubscriptionCounters {
  readonly description: string
  readonly notification: { readonly failsCounter?: number; readonly lastSuccess?: string }
}

t.test('the city lives, one receiver refuses, a provider answers, and nothing is left behind', async t => {
  const { demo, port, temporary } = await startDemo(t)
  t.match(demo.stdout, `http://localhost:${port}/console/`)
  t.equal(demo.stdout.trim().split('\n').length, 1, 'one line')
  t.equal(readdirSync(temporary).length, 1, 'a temporary directory')
  const client = new HttpClient(demo.baseUrl)
  t.teardown(() => client.close())

  const reader = await EventReader.open(t, `${demo.baseUrl}/v2/stream?type=Bus&attrs=location&options=keyValues`)
  const moved = async () => {
    const buses = reader.events.flatMap(({ data }) => data?.data ?? [])
    const places = buses.filter(({ id }) => id === 'Bus07').map(({ location }) => JSON.stringify(location))
    return new Set(places).size > 2
  }
  await becomes(t, moved, true, 'buses move')

  const counters = async () => {
    const all = (await client.get('/v2/subscriptions')).json as readonly SubscriptionCounters[]
    const of = (words: RegExp) => all.find(({ description }) => words.test(description))?.notification
    return [(of(/refuses/)?.failsCounter ?? 0) > 0, of(/full/)?.lastSuccess !== undefined]
  }
  await becomes(t, counters, [true, true], 'a subscription that fails, and one that works')
  const station = (await client.get('/v2/entities/WeatherStation1?options=keyValues')).json
  t.match(station, { type: 'WeatherStation', wind: Number, rain: Number }, 'attributes of the provider')

  const fromMs = performance.now()
  demo.signal('SIGINT')
  const exit = await demo.exitWithin(10_000)
  const tookMs = performance.now() - fromMs
  t.strictSame([exit.code, exit.signal, exit.stderr], [0, null, ''])
  t.ok(tookMs < endMsMax, `${Math.round(tookMs)} ms`)
  t.strictSame(readdirSync(temporary), [], 'nothing is left behind')
  t.ok(await listensNobody(port))
})

t.test('it refuses a directory that is not empty, and options that it does not know', async t => {
  const used = tempDir(t)
  writeFileSync(join(used, 'a'), '')
  const refused: readonly (readonly [args: readonly string[], reason: RegExp])[] = [
    [['-dataDir', used], /orrery demo: .* is not empty/],
    [['-seed', 'x'], /-seed: "x" is not a whole number from 0 to 4294967295/],
    [['--sede', '1'], /-sede: unknown option; did you mean -seed\?/],
  ]
  for (const [args, reason] of refused) {
    const { demo, temporary } = await spawnDemo(t, args)
    const { code, stdout, stderr } = await demo.exitWithin(60_000)
    t.strictSame([code, stdout, readdirSync(temporary)], [1, '', []])
    t.match(stderr, reason)
  }
  t.strictSame(readdirSync(used), ['a'], 'nothing was changed')
})
