// The example page docs/examples/live.html in a real browser: a table of entities that follows a broker, also over the
// end of the broker (docs/interface/live.md#in-a-browser).

import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { type BrokerProcess, startBroker } from '../support/broker-process.js'
import { noBrowser, TestBrowser } from '../support/browser.js'
import { HttpClient } from '../support/http-client.js'
import { root } from '../support/project.js'

t.setTimeout(300_000)

const file = join(root, 'docs/examples/live.html')

/** The page from a server of its own; returns its address. */
async function served(t: Test): Promise<string> {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'Content-Type': 'text/html' }).end(readFileSync(file))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** A broker, and the changes that clients make to its lamps. */
class Lamps {
  readonly client: HttpClient

  constructor(
    t: Test,
    readonly broker: BrokerProcess,
  ) {
    this.client = new HttpClient(broker.baseUrl)
    t.teardown(() => this.client.close())
  }

  async upsert(id: string, level: number, more: Record<string, unknown> = {}): Promise<void> {
    const entity = { id, type: 'Lamp', level: { value: level, type: 'Number' }, ...more }
    const { status, text } = await this.client.send('POST', '/v2/entities?options=upsert', entity)
    if (status !== 204 && status !== 201) throw new Error(text)
  }

  async remove(id: string): Promise<void> {
    const { status, text } = await this.client.send('DELETE', `/v2/entities/${id}`)
    if (status !== 204) throw new Error(`${status} ${text}`)
  }
}

/** The rows of the table, each as a text of its cells. */
const rowsOf = (page: Page): Promise<string[]> =>
  page.$$eval('tbody tr', rows => rows.map(row => [...row.children].map(cell => cell.textContent).join(' ')).sort())

/** Waits until the table has exactly these rows. */
async function showsRows(t: Test, page: Page, wanted: readonly string[], name: string): Promise<void> {
  const lateMs = performance.now() + 30_000
  let rows: string[] = []
  do {
    rows = await rowsOf(page)
    if (JSON.stringify(rows) === JSON.stringify(wanted)) break
    await page.waitForTimeout(20)
  } while (performance.now() < lateMs)
  t.strictSame(rows, wanted, name)
}

const showsState = (page: Page, state: string): Promise<void> => page.getByText(state, { exact: true }).waitFor()

/** Counts the streams that the page opens; the ones that the browser opens again by itself are not among them. */
const counting = `
  globalThis.streams = 0
  const Own = globalThis.EventSource
  globalThis.EventSource = class extends Own {
    constructor(url) {
      super(url)
      globalThis.streams++
    }
  }`
const countStreams = (page: Page): Promise<unknown> => page.addInitScript({ content: counting })
const streamsOf = (page: Page): Promise<number> => page.evaluate<number>('globalThis.streams')

t.test('the example page', { skip: noBrowser() }, async t => {
  const browser = await TestBrowser.start(t)
  const other = await served(t)

  for (const [how, address, origin] of [
    ['a file', pathToFileURL(file).href, '__ALL'],
    ['a page of another origin', other, other],
  ] as const)
    t.test(`${how} follows the broker, and connects again by itself`, async t => {
      const args = ['-corsOrigin', origin]
      const first = await startBroker(t, { args })
      const lamps = new Lamps(t, first)
      await lamps.upsert('L1', 1)
      await lamps.upsert('L2', 2)
      const { page, errors } = await browser.open(countStreams)
      await page.goto(`${address}?broker=${first.baseUrl}&type=Lamp&q=level<100`)
      await showsRows(t, page, ['L1 Lamp 1 /', 'L2 Lamp 2 /'], 'the snapshot')
      await showsState(page, 'live')

      await lamps.upsert('L1', 10)
      await lamps.upsert('L3', 3)
      await showsRows(t, page, ['L1 Lamp 10 /', 'L2 Lamp 2 /', 'L3 Lamp 3 /'], 'a change and a new row')
      await lamps.upsert('L2', 200)
      await lamps.remove('L3')
      await showsRows(t, page, ['L1 Lamp 10 /'], 'a row that left, and one that was deleted')
      await lamps.upsert('L2', 20)
      await showsRows(t, page, ['L1 Lamp 10 /', 'L2 Lamp 20 /'], 'a row that came back')
      t.strictSame(errors, [])

      await first.kill('SIGKILL')
      await showsState(page, 'cut: connecting again')
      const { port, dataDir } = first
      const again = new Lamps(t, await startBroker(t, { port, dataDir, args }))
      await again.remove('L1')
      await again.upsert('L2', 21)
      await again.upsert('L4', 4)
      await showsRows(t, page, ['L2 Lamp 21 /', 'L4 Lamp 4 /'], 'nothing is missing after the restart')
      await showsState(page, 'live')
      await again.upsert('L4', 5)
      await showsRows(t, page, ['L2 Lamp 21 /', 'L4 Lamp 5 /'], 'and it goes on')
      t.equal(await streamsOf(page), 1, 'the browser has connected again, not the page')
      await page.close()
    })

  t.test('the content of an entity is shown as text', async t => {
    const broker = await startBroker(t, { args: ['-corsOrigin', '__ALL'] })
    const lamps = new Lamps(t, broker)
    const evil = '<img src="x" onerror="globalThis.hit = 1"><b>bold</b>'
    await lamps.upsert('L1', 1, { note: { type: 'TextUnrestricted', value: evil } })
    const { page, errors } = await browser.open()
    await page.goto(`${pathToFileURL(file).href}?broker=${broker.baseUrl}&type=Lamp`)
    await showsRows(t, page, [`L1 Lamp 1 ${evil} /`], 'the text as it is')
    t.equal(await page.locator('table img, table b').count(), 0)
    t.equal(await page.evaluate(() => 'hit' in globalThis), false)
    t.strictSame(errors, [])
    await page.close()
  })

  t.test('a refused stream is shown, and tried again', async t => {
    const first = await startBroker(t)
    const { page, errors } = await browser.open(countStreams)
    await page.goto(`${other}?broker=${first.baseUrl}&type=Lamp`)
    await showsState(page, 'not connected: trying again')
    t.match(errors.join(), /CORS/, 'the console names the reason')
    await first.kill('SIGKILL')
    const { port, dataDir } = first
    const lamps = new Lamps(t, await startBroker(t, { port, dataDir, args: ['-corsOrigin', other] }))
    await lamps.upsert('L1', 1)
    await showsRows(t, page, ['L1 Lamp 1 /'], 'it is there as soon as the broker allows it')
    t.ok((await streamsOf(page)) > 1, 'the page has tried again, because browsers do not')
    await page.close()
  })
})
