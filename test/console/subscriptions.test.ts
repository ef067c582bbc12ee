// The views of subscriptions: the list, one of them, what it creates, and why it does not fire.

import t from 'tap'
import { noBrowser, TestBrowser } from '../support/browser.js'
import { becomes, journeysIn, startConsole } from './scene.js'

t.setTimeout(300_000)
const skip = noBrowser()

t.test('subscriptions', { skip }, async t => {
  const journey = journeysIn(t, await TestBrowser.start(t), await startConsole(t))
  const room = { id: 'R1', type: 'Room', temp: { value: 21 } }

  await journey('one is created, with a check as it is typed', [room], async (t, scene) => {
    const page = await scene.open('subscriptions')
    await page.getByText('0 of 0 subscriptions shown').waitFor()
    await page.getByRole('button', { name: 'Create…' }).click()
    const dialog = page.getByRole('dialog', { name: 'Create a subscription' })
    await dialog.getByLabel('Description').fill('hot rooms')
    await dialog.getByLabel(/^Type of entities/).fill('Room')
    await dialog.getByLabel(/^Attributes, of which one has to change/).fill('temp')
    await dialog.getByLabel('Query (q) that has to hold').fill('temp=30')
    await dialog.getByText('invalid character found in URI param /q/').waitFor()
    await dialog.getByLabel('Query (q) that has to hold').fill('temp>30')
    await dialog.getByText('invalid character found in URI param /q/').waitFor({ state: 'detached' })
    await dialog.getByLabel('Receiver (URL)').fill('ftp://x')
    await dialog.getByText(/^The receiver must be a URL/).waitFor()
    t.equal(await dialog.getByRole('button', { name: 'Create' }).isDisabled(), true)
    await dialog.getByLabel('Receiver (URL)').fill('http://localhost:1/hot')
    await dialog.getByLabel('Throttling (seconds)').fill('-x')
    await dialog.getByRole('button', { name: 'Create' }).click()
    await dialog.getByRole('alert').getByText('400').waitFor()
    await dialog.getByLabel('Throttling (seconds)').fill('')
    await scene.isAccessible('dialog')
    await dialog.getByRole('button', { name: 'Create' }).click()
    await page.getByText('1 of 1 subscriptions shown').waitFor()
    await scene.isAccessible('list')
    t.match((await scene.send('GET', '/v2/subscriptions')).json, [
      {
        description: 'hot rooms',
        subject: {
          entities: [{ idPattern: '.*', type: 'Room' }],
          condition: { attrs: ['temp'], expression: { q: 'temp>30' } },
        },
        notification: { http: { url: 'http://localhost:1/hot' } },
      },
    ])
  })

  await journey('one is explained, paused, resumed and deleted; its deliveries are shown', [room], async (t, scene) => {
    const subject = { entities: [{ idPattern: '.*', type: 'Room' }], condition: { expression: { q: 'temp>20' } } }
    const notification = { http: { url: 'http://localhost:1/hot' } }
    await scene.send('POST', '/v2/subscriptions', { description: 'hot rooms', subject, notification })
    const [{ id }] = (await scene.send('GET', '/v2/subscriptions')).json as [{ id: string }]
    const stored = async () => ((await scene.send('GET', `/v2/subscriptions/${id}`)).json as { status: string }).status
    await scene.send('PATCH', '/v2/entities/R1/attrs', { temp: { value: 25 } })
    const tried = async () => {
      const { deliveries } = (await scene.send('GET', `/v2/subscriptions/${id}/deliveries`)).json as {
        deliveries: unknown[]
      }
      return deliveries.length > 0
    }
    await becomes(t, tried, true, 'a try')
    const page = await scene.open('subscriptions')
    await page.getByRole('img', { name: 'Deliveries of hot rooms since this view was opened: 0' }).waitFor()
    await scene.send('PATCH', '/v2/entities/R1/attrs', { temp: { value: 26 } })
    await page.getByRole('img', { name: /^Deliveries of hot rooms since this view was opened: [1-9]/ }).waitFor()
    await page.getByRole('link', { name: 'hot rooms' }).click()
    await page
      .getByRole('region', { name: 'The latest deliveries' })
      .getByText("Couldn't connect to server")
      .first()
      .waitFor()
    await page.getByLabel('Entity (id)').fill('R1')
    await page.getByRole('button', { name: 'Explain' }).click()
    await page.getByText('An update can trigger it').waitFor()
    await page.getByRole('button', { name: 'Pause' }).click()
    await page.getByRole('button', { name: 'Resume' }).waitFor()
    t.equal(await stored(), 'inactive')
    await page.getByRole('button', { name: 'Explain' }).click()
    await page.getByText('It does not trigger').waitFor()
    await scene.isAccessible('subscription')
    await page.getByRole('button', { name: 'Resume' }).click()
    await page.getByRole('button', { name: 'Pause' }).waitFor()
    t.equal(await stored(), 'active')
    await page.getByRole('button', { name: 'Delete…' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByText('0 of 0 subscriptions shown').waitFor()
  })
})
