// The map: groups and entities, live, areas, what it asks of other servers, and tiles.

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { tempDir } from '../support/broker-process.js'
import { noBrowser, TestBrowser } from '../support/browser.js'
import { tilePicture, writeTileArchive } from '../support/tile-archive.js'
import { becomes, ConsoleScene, carryOut, journeysIn, rowsOf, startConsole } from './scene.js'

t.setTimeout(300_000)
const skip = noBrowser()

const at = (longitude: number, latitude: number) => ({
  type: 'geo:json',
  value: { type: 'Point', coordinates: [longitude, latitude] },
})

/** What the list beside the map shows, without what is beside a name. */
const marksOf = (page: Page): Promise<string[]> =>
  page.getByRole('list', { name: 'In view' }).getByRole('listitem').locator('a, button').allTextContents()

/** Refuses every request to another server, and keeps it. */
async function cutOff(scene: ConsoleScene): Promise<string[]> {
  const { host } = new URL(scene.broker.baseUrl)
  const refused: string[] = []
  await scene.page.route(
    url => url.host !== host,
    route => {
      refused.push(route.request().url())
      return route.abort()
    },
  )
  return refused
}

/** Clicks on the map, so many pixels from its middle. */
async function clickMap(page: Page, right: number, down: number): Promise<void> {
  const box = await page.getByRole('group', { name: /^Map/ }).boundingBox()
  if (!box) throw new Error('there is no map')
  await page.mouse.click(box.x + box.width / 2 + right, box.y + box.height / 2 + down)
}

t.test('the map', { skip }, async t => {
  const browser = await TestBrowser.start(t)
  const journey = journeysIn(t, browser, await startConsole(t))
  const buses = [1, 2, 3].map(number => ({
    id: `Bus${number}`,
    type: 'Bus',
    at: at(2.17, 41.38),
    speed: { value: number },
  }))
  const park = {
    id: 'Park1',
    type: 'Park',
    area: { type: 'geo:polygon', value: ['51.6, -0.2', '51.6, 0', '51.4, 0', '51.6, -0.2'] },
  }
  const lamp = { id: 'Lamp1', type: 'Lamp', at: { type: 'geo:point', value: '48.8, 2.3' } }

  await journey('groups and entities, live, with no other server', [...buses, park, lamp], async (t, scene) => {
    const refused = await cutOff(scene)
    const page = await scene.openLive('map')
    await page.getByText('5 of 5 entities in this part of the world shown').waitFor()
    await becomes(t, () => marksOf(page), ['3 entities near 41.38, 2.17', 'Lamp1', 'Park1'], 'all are in view')
    await becomes(t, async () => /centre=.*zoom=/.test(page.url()), true, 'the part of the world is in the URL')
    await page.getByRole('list', { name: 'Colours' }).getByText('Bus').waitFor()
    await page.getByLabel('Colour by').selectOption('speed')
    await page.getByRole('list', { name: 'Colours' }).getByText('1 to 1.4', { exact: true }).waitFor()
    await scene.isAccessible('map')
    await scene.send('PATCH', '/v2/entities/Bus1/attrs', { at: at(2.5, 45) })
    await becomes(
      t,
      async () => (await marksOf(page)).sort(),
      ['2 entities near 41.38, 2.17', 'Bus1', 'Lamp1', 'Park1'],
      'moves',
    )
    await scene.send('DELETE', '/v2/entities/Lamp1')
    await page.getByText('4 of 4 entities in this part of the world shown').waitFor()
    await scene.send('PATCH', '/v2/entities/Bus1/attrs', { at: at(100, -45) })
    await page.getByText('3 of 3 entities in this part of the world shown').waitFor()
    await page.getByLabel('Type').fill('Park')
    await becomes(t, () => marksOf(page), ['Park1'], 'filtered')
    await page.getByText('curl', { exact: true }).last().click()
    t.match(
      await page
        .getByText(/^curl '/)
        .last()
        .textContent(),
      'type=Park&georel=intersects&geometry=box&coords=',
    )
    t.strictSame(refused, [], 'nothing was asked of another server')
  })

  await journey('a group leads to its entities, and a mark to its entity', [...buses, lamp], async (t, scene) => {
    const page = await scene.openLive('map')
    await page.getByRole('button', { name: '3 entities near 41.38, 2.17' }).click()
    const places = page.getByRole('list', { name: 'At this place' })
    await becomes(t, () => places.getByRole('link').allTextContents(), ['Bus1', 'Bus2', 'Bus3'], 'one place')
    await scene.isAccessible('at one place')
    await scene.openLive('map?centre=48.8,2.3&zoom=12')
    await becomes(t, () => marksOf(page), ['Lamp1'], 'one mark')
    await clickMap(page, 0, 0)
    await page.getByRole('heading', { name: 'Lamp1', level: 1 }).waitFor()
    await page.goBack()
    await becomes(t, () => marksOf(page), ['Lamp1'], 'and back')
  })

  await journey('an area that is drawn is a query, and opens as a table', [...buses, lamp], async (t, scene) => {
    const page = await scene.openLive('map?centre=48.8,2.3&zoom=10')
    await page.getByRole('button', { name: 'Draw a polygon' }).click()
    await clickMap(page, -80, -80)
    await clickMap(page, 80, -80)
    await clickMap(page, 0, 90)
    await page.getByRole('button', { name: 'Finish' }).click()
    await page.getByText(/^georel=coveredBy&geometry=polygon&coords=(-?[\d.]+,-?[\d.]+;){3}/).waitFor()
    await page.getByText('1 entities.').waitFor()
    await scene.isAccessible('area')
    await page.getByRole('button', { name: 'Remove the area' }).click()
    await page.getByRole('button', { name: 'Draw a circle' }).click()
    await page.keyboard.press('Enter')
    const before = page.url()
    await page.keyboard.press('ArrowRight')
    await becomes(t, async () => page.url() !== before, true, 'the map has moved')
    await page.keyboard.press('Enter')
    await page.getByText(/^georel=near;maxDistance:\d+&geometry=point&coords=48\.\d+,2\.\d+$/).waitFor()
    await page.getByRole('link', { name: 'Open as table' }).click()
    await becomes(
      t,
      async () => (await rowsOf(page)).map(row => row.split(' |')[0]),
      ['Lamp1'],
      'the table has the area',
    )
    await scene.send('POST', '/v2/entities', { id: 'Lamp2', type: 'Lamp', at: at(2.3, 48.8) })
    await becomes(t, async () => (await rowsOf(page)).length, 2, 'live')
    await page.getByRole('button', { name: 'Remove the area' }).click()
    await becomes(t, async () => (await rowsOf(page)).length, 5, 'without it')
  })

  // Identifiers cannot hold the signs of markup, but they may hold the same encoded.
  const odd = { id: `%3Cb%3E${'x'.repeat(150)}`, type: '%3Ci%3E', at: at(2.3, 48.8), '%3Cu%3E': { value: 1 } }
  await journey('names are texts, also on a small screen', [odd], async (t, scene) => {
    await scene.page.setViewportSize({ width: 360, height: 640 })
    const page = await scene.openLive('map')
    await becomes(t, () => marksOf(page), [odd.id], 'an id')
    await page.getByRole('list', { name: 'Colours' }).getByText(odd.type, { exact: true }).waitFor()
    t.equal(await page.getByRole('option', { name: '%3Cu%3E' }).count(), 1)
    const [whole, seen] = await page.evaluate<[number, number]>(
      '[document.querySelector("main").scrollWidth, innerWidth]',
    )
    t.ok(whole <= seen, `${whole}`)
    await scene.isAccessible('small map')
  })

  await tilesOf(t, browser)
})

async function tilesOf(t: Test, browser: TestBrowser): Promise<void> {
  const asked: string[] = []
  const server = createServer(({ url = '' }, answer) => {
    asked.push(url)
    answer.setHeader('Content-Type', 'image/png').end(tilePicture)
  }).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await new Promise(resolve => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  const sources = [
    ['a server', `http://127.0.0.1:${port}/{z}/{x}/{y}.png`, `Tiles of 127.0.0.1:${port}`],
    ['an archive', writeTileArchive(tempDir(t)), 'Our own map'],
  ] as const
  for (const [name, source, credit] of sources)
    await t.test(`streets from ${name}`, async t => {
      const broker = await startConsole(t, { args: ['-consoleTiles', source] })
      const { page, errors } = await browser.open()
      const scene = new ConsoleScene(t, broker, 'tiles', page, errors)
      scene.origins.add(`http://127.0.0.1:${port}`)
      await carryOut(t, `tiles of ${name}`, scene, async t => {
        await scene.openLive('map?centre=0,0&zoom=1')
        await page.getByText(credit).waitFor()
        await becomes(t, async () => (await page.locator('.leaflet-tile-loaded').count()) > 0, true, 'tiles are drawn')
      })
      broker.signal('SIGTERM')
      await broker.exited
    })
  t.match(asked[0], /^\/1\/\d\/\d\.png$/)
}
