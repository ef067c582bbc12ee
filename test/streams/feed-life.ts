// One life: writers and readers of two tenants at a broker that is disturbed, and the faults at the end.
//
// First the writers make some entities, which the random watches are about. Then they write while readers come and go,
// until the planned disturbances are over. In the end readers catch up, and the broker's lists must be those of the
// model.

import { setTimeout as pause } from 'node:timers/promises'
import { HttpClient } from '../support/http-client.js'
import { Random } from '../support/random.js'
import { nextWatch } from '../support/random-feed.js'
import { FeedChecker, type GapCauses } from './feed-checker.js'
import { FeedReader, type ReadFrom } from './feed-reader.js'
import { FeedWriter, sumOf, type WrittenTo } from './feed-writer.js'
import { normalized, sortedJson, TenantModel } from './tenant-model.js'

/** The broker of a life. */
export interface LifePlace extends ReadFrom, WrittenTo, GapCauses {
  /** Lets something happen to it; resolves when that is over, with its description. */
  disturb(random: Random): Promise<string>
}

export interface LifePlan {
  readonly seed: number
  /** Different for each life at the same broker. */
  readonly tenants: readonly string[]
  readonly disturbances: number
  /** Texts so long that waiting events of slow readers are folded. */
  readonly isHeavy: boolean
  /** How long readers may take to catch up; when absent, long enough for a busy machine. */
  readonly catchUpMsMax?: number
}

export interface LifeReport {
  readonly problems: readonly string[]
  /** A summary in one line. */
  readonly summary: string
  /** Sums of the counts of all checkers. */
  readonly counts: Readonly<Record<string, number>>
}

const writersPerTenant = 3
const readersPerTenant = 4
const idsPerStem = 2
const firstRequests = 12
const padLength = 30_000
/** How long readers may take to catch up. */
const catchUpMsMax = 60_000
const againMs = 100

export async function live(place: LifePlace, plan: LifePlan): Promise<LifeReport> {
  const random = new Random(plan.seed)
  const models = plan.tenants.map(tenant => new TenantModel(tenant))
  const writers = models.map(model => writersOf(model, place, plan, random))
  const allWriters = writers.flat()
  await Promise.all(allWriters.map(writer => writer.write(() => false, firstRequests)))
  const readers = models.flatMap(model => readersOf(model, place, plan, random))
  const isWrong = (): boolean =>
    readers.some(({ problem }) => problem !== undefined) || models.some(({ problems }) => problems.length > 0)
  let isOver = false
  const isStopped = () => isOver || isWrong()
  const working = [
    ...allWriters.map(writer => writer.write(isStopped)),
    ...readers.map(async reader => {
      await pause(random.between(0, 400))
      await reader.read(isStopped)
    }),
  ]
  const disturbed: string[] = []
  await pause(random.between(800, 1_800))
  for (let left = plan.disturbances; left > 0 && !isWrong(); left--) {
    disturbed.push(await place.disturb(random))
    await pause(random.between(500, 1_200))
  }
  isOver = true
  await Promise.all(working)
  const found: (string | undefined)[] = [
    ...models.flatMap(({ problems }) => problems),
    ...readers.map(one => one.problem),
  ]
  if (!isWrong())
    found.push(...(await Promise.all(readers.map(reader => reader.catchUp(plan.catchUpMsMax ?? catchUpMsMax)))))
  if (!found.some(one => one !== undefined))
    for (const model of models) found.push(...(await differences(place, model, random)))
  for (const one of [...readers, ...allWriters]) one.close()
  const counts = sumsOf(readers.flatMap(({ feeds }) => feeds.map(feed => feed.counts)))
  const sum = (name: 'acknowledged' | 'unknown') => allWriters.reduce((all, writer) => all + writer[name], 0)
  return {
    problems: [...new Set(found.filter(one => one !== undefined))],
    summary: `${sum('acknowledged')} writes, ${sum('unknown')} unknown; ${disturbed.join(', ') || 'nothing happened'}; ${Object.entries(
      counts,
    )
      .map(([name, count]) => `${count} ${name}`)
      .join(', ')}`,
    counts,
  }
}

function writersOf(model: TenantModel, place: LifePlace, { isHeavy }: LifePlan, random: Random): FeedWriter[] {
  return Array.from({ length: writersPerTenant }, (_, at) => {
    const isMine = (id: string) => sumOf(id) % writersPerTenant === at
    const plan = {
      random: new Random(random.between(0, 2 ** 32 - 1)),
      model,
      name: `${model.tenant}-${at}`,
      isMine,
      idsPerStem,
      padLength: isHeavy ? padLength : 0,
      restMsMax: isHeavy ? 0 : 8,
    }
    return new FeedWriter(plan, place)
  })
}

function readersOf(model: TenantModel, place: LifePlace, { isHeavy }: LifePlan, random: Random): FeedReader[] {
  const stock = { entities: [...model.reference.entities], idsPerStem }
  return Array.from({ length: readersPerTenant }, (_, at) => {
    const isSocket = random.fraction() < 0.5
    const count = isSocket ? random.between(1, 3) : 1
    const feeds = Array.from({ length: count }, (_, number) => {
      const watch = nextWatch(random, stock, { several: isSocket })
      return new FeedChecker(`${model.tenant} reader ${at} watch ${number}`, watch, model, place)
    })
    const own = new Random(random.between(0, 2 ** 32 - 1))
    return new FeedReader({ random: own, broker: place, feeds, isSocket, stallMsMax: isHeavy ? 2_500 : 600 })
  })
}

/** The first differences between the broker's list of a tenant and the model. */
async function differences(place: LifePlace, { tenant, reference }: TenantModel, random: Random): Promise<string[]> {
  const client = new HttpClient(place.url(random))
  const ask = () => client.get('/v2/entities?limit=1000', { 'Ctx-Service': tenant })
  let answer = await ask()
  for (const untilMs = performance.now() + catchUpMsMax; answer.status === 503 && performance.now() < untilMs; ) {
    await pause(againMs)
    answer = await ask()
  }
  client.close()
  if (answer.status !== 200) return [`the list of ${tenant}: ${answer.status} ${answer.text}`]
  const listed = (answer.json as object[]).map(entity => sortedJson(JSON.stringify(entity))).sort()
  const wanted = [...reference.entities].map(normalized).sort()
  const lacks = wanted.filter(one => !listed.includes(one)).map(one => `the list of ${tenant} lacks ${one}`)
  const has = listed.filter(one => !wanted.includes(one)).map(one => `the list of ${tenant} has ${one}`)
  return [...lacks, ...has].slice(0, 3)
}

function sumsOf(all: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const sums: Record<string, number> = {}
  for (const counts of all) for (const [name, count] of Object.entries(counts)) sums[name] = (sums[name] ?? 0) + count
  return sums
}
