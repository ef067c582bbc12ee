// The frame of the console: the overview, a small screen, a broker that goes and comes back, and keys.

import t from 'tap'
import { AccessScene, everything } from '../support/access-scene.js'
import { freePort, startBroker, tempDir } from '../support/broker-process.js'
import { noBrowser, TestBrowser } from '../support/browser.js'
import { becomes, ConsoleScene, carryOut, journeysIn, rowsOf, startConsole } from './scene.js'

t.setTimeout(300_000)
const skip = noBrowser()

/** The most bytes of the first view over the wire (docs/operations/console.md). */
const firstViewBytesMax = 300 * 1024

t.test('the frame', { skip }, async t => {
  const browser = await TestBrowser.start(t)
  const room = { id: 'R1', type: 'Room', temp: { value: 21 } }
  const journey = journeysIn(t, browser, await startConsole(t))

  await journey('the overview has numbers with charts, and comes in few bytes', [room], async (t, scene) => {
    let bytes = 0
    scene.page.on('requestfinished', async request => {
      // Those that end with the page have no sizes any more.
      const sizes = await request.sizes().catch(() => ({ responseBodySize: 0, responseHeadersSize: 0 }))
      bytes += sizes.responseBodySize + sizes.responseHeadersSize
    })
    const page = await scene.open('overview')
    await page.getByRole('img', { name: /^Memory of the last 15 minutes: now [\d.]+ MB/ }).waitFor()
    await page.getByText(/^Orrery \d+\.\d+\.\d+ on node /).waitFor()
    t.ok(bytes > 10_000 && bytes < firstViewBytesMax, `${bytes} bytes`)
    await page.getByRole('img', { name: /^Requests of the last 15 minutes: now [\d.]+\/s/ }).waitFor()
    await scene.isAccessible('overview')
    await page.getByRole('link', { name: 'Entities' }).last().click()
    await becomes(t, async () => (await rowsOf(page)).length, 1, 'a number leads to its view')
  })

  await journey('a screen of 360 pixels has no sideways scrolling of the page', [room], async (t, scene) => {
    await scene.page.setViewportSize({ width: 360, height: 640 })
    for (const address of [
      'overview',
      'entities',
      'types',
      'subscriptions',
      'registrations',
      'cluster',
      'settings',
      'request',
      'entity?id=R1&type=Room&at=/',
    ]) {
      const page = await scene.open(address)
      await page.getByRole('heading', { level: 1 }).waitFor()
      const [whole, seen] = await page.evaluate<[number, number]>(
        '[Math.max(document.documentElement.scrollWidth, document.querySelector("main").scrollWidth), innerWidth]',
      )
      t.ok(whole <= seen, `${address}: ${whole}`)
    }
    await scene.isAccessible('small')
  })

  t.test('a broker that is gone: what was shown stays, and the page goes on when it is back', async t => {
    const [dataDir, port] = [tempDir(t), await freePort()]
    const broker = await startConsole(t, { dataDir, port })
    const { page, errors } = await browser.open()
    const scene = new ConsoleScene(t, broker, 'city', page, errors)
    await carryOut(t, 'gone', scene, async t => {
      await scene.create([room])
      await scene.openLive('entities?type=Room&attrs=temp')
      await becomes(t, () => rowsOf(page), ['R1 | Room | / | 21'], 'before')
      await page.getByLabel('Query (q)').pressSequentially('temp>1')
      await becomes(t, () => rowsOf(page), ['R1 | Room | / | 21'], 'filtered')
      await page.getByRole('button', { name: 'Create…' }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByLabel('Id').fill('R2')
      broker.signal('SIGKILL')
      await broker.exited
      await page.getByText(/^The broker does not answer since/).waitFor()
      await dialog.getByRole('button', { name: 'Create' }).click()
      await dialog.getByText('the broker does not answer').waitFor()
      t.equal(await dialog.getByLabel('Id').inputValue(), 'R2', 'nothing is lost')
      t.strictSame(await rowsOf(page), ['R1 | Room | / | 21'], 'what was shown stays')
      await scene.isAccessible('gone')
      const again = await startBroker(t, { dataDir, port, args: ['-multiservice', '-durability', 'os'] })
      await page.getByText(/^The broker does not answer since/).waitFor({ state: 'detached' })
      await dialog.getByLabel('Attribute', { exact: true }).fill('temp')
      await dialog.getByLabel('Value (JSON, or a text)').fill('5')
      await dialog.getByRole('button', { name: 'Create' }).click()
      await becomes(t, () => rowsOf(page), ['R1 | Room | / | 21', 'R2 | Room | / | 5'], 'and it is live again')
      again.signal('SIGTERM')
      await again.exited
    })
  })

  t.test('with access control it asks for a key, and offers what the key may do', async t => {
    const reader = [{ actions: ['read', 'stream'], tenants: ['city'], types: ['Room'], attributes: ['*', '!cost'] }]
    const rules = { operator: everything, reader }
    const access = new AccessScene(t, { ...rules, guest: everything })
    const broker = await startConsole(t, { args: ['-access', access.path] })
    const { page, errors } = await browser.open()
    const operator = { Authorization: `Bearer ${access.keyOf('operator')}` }
    const scene = new ConsoleScene(t, broker, 'city', page, errors, operator)
    await carryOut(t, 'access', scene, async t => {
      await scene.create([
        { ...room, cost: { value: 9 } },
        { id: 'M1', type: 'Meter' },
      ])
      await scene.open('entities')
      await page.getByText(/^The broker asks who you are/).waitFor()
      await scene.isAccessible('without a key')
      const show = async (name: string, keeps = false): Promise<void> => {
        await page.getByRole('button', { name: /^Key/ }).click()
        await page.getByRole('textbox', { name: 'Key or token' }).fill(access.keyOf(name))
        if (keeps) await page.getByLabel('Keep it until this tab is closed').check()
        await page.getByRole('button', { name: 'Show it to the broker' }).click()
      }
      await show('reader')
      await becomes(t, () => rowsOf(page), ['R1 | Room | / | 21'], 'what the reader may see')
      await page.getByText('live', { exact: true }).waitFor()
      await scene.send('PATCH', '/v2/entities/R1/attrs', { temp: { value: 22 } })
      await becomes(t, () => rowsOf(page), ['R1 | Room | / | 22'], 'live')
      await becomes(
        t,
        () => page.getByRole('navigation').getByRole('link').allTextContents(),
        ['Entities', 'Map', 'Types', 'Try it'],
        'views',
      )
      t.equal(await page.getByRole('button', { name: /^Create|^Delete/ }).count(), 0, 'nothing to write with')
      await page.getByRole('link', { name: 'R1' }).click()
      await page.getByText('1 of 1 attributes shown').waitFor()
      t.equal(await page.getByRole('button', { name: /^Edit|^Delete/ }).count(), 0)
      t.notMatch(page.url(), access.keyOf('reader'), 'the key is in no URL')
      await page.reload()
      await page.getByText(/^The broker asks who you are/).waitFor()
      t.equal(await page.evaluate('sessionStorage.length'), 0, 'it was in memory alone')
      await show('operator', true)
      await page.getByText('2 of 2 attributes shown').waitFor()
      await page.getByRole('button', { name: 'Delete…' }).waitFor()
      await becomes(t, async () => page.getByRole('navigation').getByRole('link').count(), 9, 'every view')
      await page.reload()
      await page.getByText('2 of 2 attributes shown').waitFor()
      await page.getByRole('button', { name: 'Key shown…' }).click()
      await page.getByRole('button', { name: 'Forget it' }).click()
      await page.getByText(/^The broker asks who you are/).waitFor()
      t.equal(await page.evaluate('sessionStorage.length'), 0, 'forgotten')

      await scene.open('entities?type=Room&attrs=temp')
      await show('guest')
      await page.getByText('live', { exact: true }).waitFor()
      await page.getByRole('button', { name: 'Create…' }).click()
      const dialog = page.getByRole('dialog', { name: 'Create an entity' })
      await dialog.getByLabel('Id').fill('R7')
      access.write(rules)
      broker.signal('SIGHUP')
      await page.getByText('not live', { exact: true }).waitFor()
      await dialog.getByRole('button', { name: 'Create' }).click()
      const asking = page.getByRole('dialog', { name: 'Key or token' })
      await asking.getByRole('textbox', { name: 'Key or token' }).fill(access.keyOf('operator'))
      await asking.getByRole('button', { name: 'Show it to the broker' }).click()
      await asking.waitFor({ state: 'detached' })
      t.equal(await dialog.getByLabel('Id').inputValue(), 'R7', 'the key has ended, and nothing typed is lost')
      await dialog.getByRole('button', { name: 'Create' }).click()
      await dialog.waitFor({ state: 'detached' })
      await page.getByText('live', { exact: true }).waitFor()
      await becomes(t, async () => (await rowsOf(page)).length, 2, 'it goes on with another one')
    })
  })
})
