// The table of entities: filters, order, live values, keys, and what it creates and deletes.

import type { Route } from 'playwright-core'
import t from 'tap'
import { noBrowser, TestBrowser } from '../support/browser.js'
import { becomes, journeysIn, rowsOf, startConsole } from './scene.js'

t.setTimeout(300_000)
const skip = noBrowser()

/** Passes all rows, so that more pages are read than are kept. */
const scrollThrough = `new Promise(resolve => {
  const grid = document.querySelector('[role=grid]')
  grid.scrollTop = 0
  const step = () => {
    grid.scrollTop += 1500
    if (grid.scrollTop + grid.clientHeight < grid.scrollHeight) requestAnimationFrame(step)
    else resolve()
  }
  step()
})`

t.test('the table of entities', { skip }, async t => {
  const journey = journeysIn(t, await TestBrowser.start(t), await startConsole(t))
  const rooms = [1, 2, 3].map(number => ({
    id: `R${number}`,
    type: 'Room',
    temp: { value: 20 + number },
    name: { value: `room ${number}` },
  }))
  const entities = [...rooms, { id: 'M1', type: 'Meter', power: { value: 7 } }]

  await journey(
    'filters by type, id and q, orders, chooses attributes, and its URL has it all',
    entities,
    async (t, scene) => {
      const page = await scene.openLive('entities')
      await becomes(t, async () => (await rowsOf(page)).length, 4, 'all are there')
      await scene.isAccessible('table')
      await page.keyboard.press('/')
      await page.keyboard.type('Room')
      const three = ['R1 | Room | / | room 1 | 21', 'R2 | Room | / | room 2 | 22', 'R3 | Room | / | room 3 | 23']
      await becomes(t, () => rowsOf(page), three, 'of one type, with its attributes')
      await page.getByText('1 to 3 of 3 entities').waitFor()
      await page.getByLabel('Attributes', { exact: true }).fill('temp')
      await becomes(t, () => rowsOf(page), ['R1 | Room | / | 21', 'R2 | Room | / | 22', 'R3 | Room | / | 23'], 'chosen')
      await page.getByLabel('Query (q)').fill('temp>21')
      await becomes(t, () => rowsOf(page), ['R2 | Room | / | 22', 'R3 | Room | / | 23'], 'q')
      await page.getByRole('button', { name: 'temp', exact: true }).click()
      await page.getByRole('button', { name: 'temp ↑' }).click()
      await becomes(t, () => rowsOf(page), ['R3 | Room | / | 23', 'R2 | Room | / | 22'], 'in descending order')
      await page.getByLabel('Id pattern').fill('2$')
      await becomes(t, () => rowsOf(page), ['R2 | Room | / | 22'], 'by id')
      await becomes(t, async () => page.url().includes('idPattern=2'), true, 'URL')
      await page.reload()
      await becomes(t, () => rowsOf(page), ['R2 | Room | / | 22'], 'the URL leads to the same')
      await page.getByText('curl', { exact: true }).click()
      t.match(
        await page.getByText(/^curl '/).textContent(),
        'idPattern=2%24&q=temp%3E21&orderBy=%21temp&attrs=temp%2CservicePath',
      )
    },
  )

  await journey('an error of the parser is at its place, and typing goes on', entities, async (t, scene) => {
    const page = await scene.openLive('entities?type=Room')
    const q = page.getByLabel('Query (q)')
    const note = page.getByText('invalid character found in URI param /q/')
    const questions: Route[] = []
    await page.route(
      url => url.searchParams.get('q') === 'temp=21' && url.searchParams.get('limit') === '1',
      route => void questions.push(route),
      { times: 1 },
    )
    await q.fill('temp=21')
    await becomes(t, async () => questions.length, 1, 'the broker is asked which filter it is')
    t.equal(await note.count(), 0, 'not at the list in the meantime')
    await questions[0]?.continue()
    await note.waitFor()
    t.equal(await q.getAttribute('aria-describedby'), await note.getAttribute('id'), 'beside the field')
    await scene.isAccessible('with an error')
    await q.fill('temp==21')
    await note.waitFor({ state: 'detached' })
    await becomes(t, async () => (await rowsOf(page)).length, 1, 'the list is back')
  })

  await journey('changes come live: cells flash, rows come and go', rooms, async (t, scene) => {
    const page = await scene.openLive('entities?type=Room&attrs=temp&q=temp>20')
    await becomes(t, async () => (await rowsOf(page)).length, 3, 'all')
    const flash = page.locator('.flash').filter({ hasText: '99' }).waitFor()
    await scene.send('PATCH', '/v2/entities/R2/attrs', { temp: { value: 99 } })
    await flash
    await becomes(t, async () => (await rowsOf(page))[1], 'R2 | Room | / | 99', 'a value')
    await becomes(t, () => page.locator('.flash').count(), 0, 'the mark of a change goes')
    await scene.send('POST', '/v2/entities', { id: 'R9', type: 'Room', temp: { value: 50 } })
    await becomes(t, async () => (await rowsOf(page)).at(-1), 'R9 | Room | / | 50', 'comes')
    await scene.send('PATCH', '/v2/entities/R9/attrs', { temp: { value: 1 } })
    await scene.send('DELETE', '/v2/entities/R1')
    await becomes(t, () => rowsOf(page), ['R2 | Room | / | 99', 'R3 | Room | / | 23'], 'leave and go')
  })

  await journey(
    'a page that nobody sees has no stream, and is right when it is seen again',
    rooms,
    async (t, scene) => {
      const { page } = scene
      await page.clock.install()
      await scene.openLive('entities?type=Room&attrs=temp')
      await becomes(t, async () => (await rowsOf(page)).length, 3, 'all')
      const streams = async () =>
        Number(/^orrery_streams\{[^}]*sse[^}]*\} (\d+)$/m.exec((await scene.send('GET', '/metrics')).text)?.[1])
      const look = (state: string) =>
        page.evaluate(`Object.defineProperty(document, 'visibilityState', { value: '${state}', configurable: true })
        document.dispatchEvent(new Event('visibilitychange'))`)
      const open = await streams()
      await look('hidden')
      await page.clock.fastForward(20_000)
      t.equal(await streams(), open, 'it may be seen again soon')
      await page.clock.fastForward(11_000)
      await becomes(t, streams, open - 1, 'no stream')
      await scene.send('PATCH', '/v2/entities/R2/attrs', { temp: { value: 99 } })
      await look('visible')
      await becomes(t, streams, open, 'a stream')
      await becomes(t, async () => (await rowsOf(page))[1], 'R2 | Room | / | 99', 'read again')
    },
  )

  await journey(
    'creates, and deletes after a question; a refusal loses nothing that was typed',
    rooms,
    async (t, scene) => {
      const page = await scene.openLive('entities?type=Room&attrs=temp')
      await page.getByRole('button', { name: 'Create…' }).click()
      const dialog = page.getByRole('dialog', { name: 'Create an entity' })
      await dialog.getByLabel('Id').fill('R1')
      await dialog.getByLabel('Attribute', { exact: true }).fill('temp')
      await dialog.getByLabel('Value (JSON, or a text)').fill('5')
      await scene.isAccessible('dialog')
      await dialog.getByRole('button', { name: 'Create' }).click()
      await dialog.getByRole('alert').getByText('Already Exists').waitFor()
      t.equal(await dialog.getByLabel('Value (JSON, or a text)').inputValue(), '5')
      await dialog.getByLabel('Id').fill('R0')
      await dialog.getByRole('button', { name: 'Create' }).click()
      await becomes(t, async () => (await rowsOf(page)).at(-1), 'R0 | Room | / | 5', 'is there')
      await page
        .getByRole('gridcell', { name: 'R0' })
        .locator('..')
        .click({ position: { x: 300, y: 5 } })
      await page.getByRole('button', { name: 'Delete R0…' }).click()
      await page.getByRole('dialog').waitFor()
      await page.keyboard.press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'detached' })
      t.equal((await scene.send('GET', '/v2/entities/R0')).status, 200, 'Esc deletes nothing')
      await page.getByRole('button', { name: 'Delete R0…' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
      await becomes(t, async () => (await rowsOf(page)).length, 3, 'it is gone')
    },
  )

  const many = Array.from({ length: 5_000 }, (_, at) => ({ id: `L${at}`, type: 'Lamp', level: { value: at } }))
  await journey('a long table scrolls to its end, and the keyboard moves and opens', many, async (t, scene) => {
    const page = await scene.openLive('entities?type=Lamp&attrs=level')
    await page.getByText(/of 5,000 entities/).waitFor()
    const grid = page.getByRole('grid', { name: 'Entities' })
    await grid.focus()
    await page.keyboard.press('End')
    await becomes(t, async () => (await rowsOf(page)).at(-1), 'L4999 | Lamp | / | 4999', 'the last row')
    t.ok((await rowsOf(page)).length < 100, 'only visible rows are drawn')
    await page.evaluate(scrollThrough)
    await page.keyboard.press('Home')
    await becomes(t, async () => (await rowsOf(page))[0], 'L0 | Lamp | / | 0', 'the first row')
    await page.keyboard.press('End')
    await becomes(t, async () => (await rowsOf(page)).at(-1), 'L4999 | Lamp | / | 4999', 'the last row again')
    await page.keyboard.press('ArrowUp')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'L4998', level: 1 }).waitFor()
    await page.goBack()
    await page.getByText(/of 5,000 entities/).waitFor()
  })

  await journey('tenant and service path are chosen at the top, for all views', [], async (t, scene) => {
    await scene.create(rooms, { 'Ctx-Service': 'city', 'Ctx-ServicePath': '/north' })
    const page = await scene.open('types', '')
    await page.getByText('0 of 0 types shown').waitFor()
    await page.getByLabel('Tenant').fill('city')
    await page.getByLabel('Service path').fill('/north')
    await page.keyboard.press('Enter')
    await page.getByText('1 of 1 types shown').waitFor()
    await scene.isAccessible('types')
    await page.getByRole('link', { name: 'Room' }).click()
    await becomes(
      t,
      async () => (await rowsOf(page))[0],
      'R1 | Room | /north | room 1 | 21',
      'a type leads to its table',
    )
  })
})
