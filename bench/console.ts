// The console in a real browser: what the first view takes, how a long table scrolls, and what live changes cost
// (docs/operations/console.md).
//
// Processor time is that of processes, so it is right also on a busy machine; frames per second are not. The cost of
// live changes for the broker is small beside the changes themselves. So turns with and without a view alternate, and
// the bench judges the median of the differences of neighbours.

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { TestBrowser } from '../test/support/browser.js'
import { builtConsole } from '../test/support/built-console.js'
import { load } from './loader.js'
import { cpuSeconds, residentBytes } from './machine.js'
import { startOpenLoop } from './open-loop.js'
import type { RateOptions } from './rate-options.js'
import { atLeast, atMost, type Finding, information, median, progress, thousands } from './report.js'
import { type Server, start } from './servers.js'
import {
  batchBody,
  batches,
  batchPath,
  entitiesPerBatch,
  fill,
  idHole,
  requestsOf,
  stockId,
  valueHole,
  wire,
} from './workloads.js'

export interface ConsoleOptions extends RateOptions {
  /** Entities of the long table. */
  readonly count: number
}

const needed = { firstKb: 300, firstMs: 1_000, framesPerSecond: 50, tabMb: 300, browserPercent: 30, brokerPercent: 2 }

const updatesPerSecond = 1_000
const entitiesPerUpdate = 10
/** The entities that change: those at the beginning of the table, a part of which is visible. */
const changing = 1_000

/** A view that shows live changes. */
interface LiveView {
  readonly name: string
  readonly address: string
  /** What an update writes of an entity. */
  readonly written: string
}

const table: LiveView = {
  name: 'table',
  address: 'entities?type=Sensor&attrs=temperature,humidity',
  written: `"temperature":{"type":"Number","value":${valueHole}}`,
}
/** Entities that move through the part of the world that is shown. The hole has four digits. */
const map: LiveView = {
  name: 'map',
  address: 'map?type=Sensor&centre=45.5,45.5&zoom=6',
  written: `"location":{"type":"geo:json","value":{"type":"Point","coordinates":[4${valueHole}e-3,4${valueHole}e-3]}}`,
}

/** Pixels of a step, at which rows fly by. */
const scrollPixels = 300

export async function browserConsole(options: ConsoleOptions): Promise<Finding[]> {
  builtConsole()
  const dataDir = join(options.folder, 'console')
  // The disk is not the question here.
  const server = await start(options.subject, dataDir, 'server', { args: ['-durability', 'os'] })
  const endings: (() => unknown)[] = []
  try {
    const browser = await TestBrowser.start({ teardown: run => endings.push(run) })
    const text = wire(batches[0]!.template, '')
    const request = (n: number): string => {
      let next = n * entitiesPerBatch
      return fill(text, () => stockId(next++))
    }
    await load({ urls: [server.url], request, count: options.count / entitiesPerBatch, connections: 8 })
    const findings = [...(await firstView(server, browser, options)), ...(await scrolling(server, browser, options))]
    for (const view of [table, map]) findings.push(...(await liveChanges(server, browser, view, options)))
    return findings
  } finally {
    for (const end of endings) await end()
    await server.stop()
    rmSync(dataDir, { recursive: true })
  }
}

async function firstView(server: Server, browser: TestBrowser, { rounds }: ConsoleOptions): Promise<Finding[]> {
  const [kilobytes, overviewMs, tableMs]: [number[], number[], number[]] = [[], [], []]
  for (let round = 1; round <= 2 * rounds + 1; round++) {
    const { page } = await browser.open()
    let bytes = 0
    const session = await page.context().newCDPSession(page)
    await session.send('Network.enable')
    session.on('Network.loadingFinished', ({ encodedDataLength }) => {
      bytes += encodedDataLength
    })
    const fromMs = performance.now()
    await page.goto(`${server.url}/console/`)
    await page.getByRole('img', { name: /^Memory/ }).waitFor()
    overviewMs.push(performance.now() - fromMs)
    kilobytes.push(bytes / 1024)
    await page.context().close()
    const other = await browser.open()
    const tableFromMs = performance.now()
    await other.page.goto(`${server.url}/console/#/${table.address}`)
    await other.page.locator('#row-0').getByRole('link').waitFor()
    tableMs.push(performance.now() - tableFromMs)
    await other.page.context().close()
  }
  const first = median(overviewMs)
  const kb = median(kilobytes)
  return [
    atMost('first view, over the wire', `${kb.toFixed(0)} KB`, kb, needed.firstKb, 'KB'),
    atMost('  until its numbers are there', `${first.toFixed(0)} ms`, first, needed.firstMs, 'ms'),
    atMost(
      '  until a table has rows instead',
      `${median(tableMs).toFixed(0)} ms`,
      median(tableMs),
      needed.firstMs,
      'ms',
    ),
  ]
}

/** Scrolls for a time; returns the frames per second, the longest time between two, and their number. */
const scroll = (seconds: number): string => `new Promise(resolve => {
  const grid = document.querySelector('[role=grid]')
  const times = []
  const step = now => {
    times.push(now)
    const isOver = now - times[0] > ${seconds * 1000}
    if (grid.scrollTop + grid.clientHeight >= grid.scrollHeight) grid.scrollTop = 0
    grid.scrollTop += ${scrollPixels}
    if (!isOver) return requestAnimationFrame(step)
    const gaps = times.slice(1).map((time, at) => time - times[at])
    resolve([gaps.length / (now - times[0]) * 1000, Math.max(...gaps), gaps.length])
  }
  requestAnimationFrame(step)
})`

/**
 * Returns the frames per second. It asks for each frame, which costs the browser some time, so it runs beside no
 * measurement of that.
 */
const countFrames = `new Promise(resolve => {
  const fromMs = performance.now()
  let frames = 0
  const step = () => {
    frames++
    const tookMs = performance.now() - fromMs
    if (tookMs < 2000) requestAnimationFrame(step)
    else resolve(frames / tookMs * 1000)
  }
  requestAnimationFrame(step)
})`

async function scrolling(
  server: Server,
  browser: TestBrowser,
  { seconds, rounds, count }: ConsoleOptions,
): Promise<Finding[]> {
  const { page } = await browser.open()
  await page.goto(`${server.url}/console/#/${table.address}`)
  await page.locator('#row-0').getByRole('link').waitFor()
  const [rates, gaps, costs]: [number[], number[], number[]] = [[], [], []]
  const { tab } = await processesOf(page)
  for (let round = 1; round <= rounds; round++) {
    const usedBefore = cpuSeconds(tab)
    const [rate, gap, frames] = await page.evaluate<[number, number, number]>(scroll(seconds))
    rates.push(rate)
    gaps.push(gap)
    costs.push(((cpuSeconds(tab) - usedBefore) / frames) * 1000)
    progress(
      `round ${round}, scrolling: ${rate.toFixed(1)} frames/s, longest ${gap.toFixed(0)} ms, ` +
        `processor ${costs.at(-1)!.toFixed(1)} ms per frame`,
    )
  }
  const megabytes = residentBytes(tab).now / 1e6
  await page.context().close()
  const rate = median(rates)
  return [
    atLeast(
      `${thousands(count)} entities: scrolling`,
      `${rate.toFixed(1)} frames/s, longest ${Math.max(...gaps).toFixed(0)} ms`,
      rate,
      needed.framesPerSecond,
      '/s',
    ),
    information('  processor time of the tab', `${median(costs).toFixed(1)} ms per frame`),
    atMost('  resident memory of the tab', `${megabytes.toFixed(0)} MB`, megabytes, needed.tabMb, 'MB'),
  ]
}

async function liveChanges(
  server: Server,
  browser: TestBrowser,
  { name, address, written }: LiveView,
  { seconds, rounds, warmUpSeconds }: ConsoleOptions,
): Promise<Finding[]> {
  const entity = `{"id":"urn:sensor:${idHole}","type":"Sensor",${written}}`
  const body = batchBody('append', Array(entitiesPerUpdate).fill(entity))
  let taken = 0
  const nextId = (): string => {
    taken += 7
    return stockId(taken % changing)
  }
  let answered = 0
  const loopFromMs = performance.now()
  const loop = await startOpenLoop({
    urls: [server.url],
    perSecond: updatesPerSecond / entitiesPerUpdate,
    connections: 4,
    request: requestsOf({ method: 'POST', path: batchPath, body }, '', nextId),
    onAnswer: (_n, { isSuccess, head }) => {
      if (!isSuccess) throw new Error(`${server.url} refused an update:\n${head}`)
      answered += entitiesPerUpdate
    },
  })
  /** Shares of a core in percent, of the broker and of processes of the browser. */
  const turn = async (
    tab: number | undefined,
    others: readonly number[],
  ): Promise<readonly [number, number, number]> => {
    const sum = (pids: readonly number[]): number => pids.reduce((all, pid) => all + cpuSeconds(pid), 0)
    const used = () => [cpuSeconds(server.pid), sum(tab === undefined ? [] : [tab]), sum(others)] as const
    const [before, fromMs] = [used(), performance.now()]
    await new Promise(resolve => setTimeout(resolve, seconds * 1000))
    const [after, tookMs] = [used(), performance.now() - fromMs]
    const percent = (at: 0 | 1 | 2): number => ((after[at] - before[at]) / tookMs) * 100_000
    return [percent(0), percent(1), percent(2)]
  }
  const [without, more, tabs, browsers]: [number[], number[], number[], number[]] = [[], [], [], []]
  const frames: number[] = []
  await new Promise(resolve => setTimeout(resolve, warmUpSeconds * 1000))
  for (let round = 1; round <= 2 * rounds; round++) {
    const [before] = await turn(undefined, [])
    const { page } = await browser.open()
    await page.goto(`${server.url}/console/#/${address}`)
    await page.getByText('live', { exact: true }).waitFor()
    await new Promise(resolve => setTimeout(resolve, warmUpSeconds * 1000))
    const { tab, others } = await processesOf(page)
    const [during, tabPercent, othersPercent] = await turn(tab, others)
    const framesPerSecond = await page.evaluate<number>(countFrames)
    frames.push(framesPerSecond)
    await page.context().close()
    const [after] = await turn(undefined, [])
    without.push((before + after) / 2)
    more.push(during - (before + after) / 2)
    tabs.push(tabPercent)
    browsers.push(tabPercent + othersPercent)
    progress(
      `round ${round}, ${name}: broker ${without.at(-1)!.toFixed(1)} %, with the view ${more.at(-1)!.toFixed(1)} % more; ` +
        `tab ${tabPercent.toFixed(1)} %, browser ${browsers.at(-1)!.toFixed(1)} %, ${framesPerSecond.toFixed(1)} frames/s`,
    )
  }
  const perSecond = (answered / (performance.now() - loopFromMs)) * 1000
  await loop.end()
  const [share, cost] = [median(browsers), median(more)]
  const percentOf = (values: readonly number[]): string =>
    `${median(values).toFixed(1)} % of a core (${Math.min(...values).toFixed(1)} to ${Math.max(...values).toFixed(1)})`
  return [
    information(`${name}: broker with ${thousands(perSecond)} updates/s alone`, percentOf(without)),
    atMost(`  more with the ${name} open`, percentOf(more), cost, needed.brokerPercent, '%'),
    atMost(`  browser`, percentOf(browsers), share, needed.browserPercent, '%'),
    information(`  of that the tab`, percentOf(tabs)),
    information(`  frames that the page could show`, `${median(frames).toFixed(1)}/s`),
  ]
}

/** The process of a page, and the other processes of its browser. */
async function processesOf(page: Page): Promise<{ readonly tab: number; readonly others: readonly number[] }> {
  const session = await page.context().browser()!.newBrowserCDPSession()
  const { processInfo } = await session.send('SystemInfo.getProcessInfo')
  await session.detach()
  // Besides that of the page there may be one in reserve, which has done nothing.
  const [tab] = processInfo.filter(({ type }) => type === 'renderer').sort((a, b) => b.cpuTime - a.cpuTime)
  if (tab === undefined) throw new Error('the browser has no page')
  return { tab: tab.id, others: processInfo.map(({ id }) => id).filter(id => id !== tab.id) }
}
