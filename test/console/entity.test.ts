// The view of one entity, and what values may hold.

import t from 'tap'
import { attributesMax } from '../../src/domain/limits.js'
import { noBrowser, TestBrowser } from '../support/browser.js'
import { becomes, journeysIn, rowsOf, startConsole } from './scene.js'

t.setTimeout(300_000)
const skip = noBrowser()

t.test('one entity', { skip }, async t => {
  const journey = journeysIn(t, await TestBrowser.start(t), await startConsole(t))
  const metadata = { accuracy: { value: 0.5 } }
  const room = { id: 'R1', type: 'Room', temp: { type: 'Celsius', value: 21, metadata }, name: { value: 'lab' } }

  await journey(
    'shows attributes with type and metadata, live, and edits one: only what changed is sent',
    [room],
    async (t, scene) => {
      const page = await scene.open('entity?id=R1&type=Room&at=/')
      const row = page.getByRole('row', { name: /^temp/ })
      await row.getByText('accuracy (Number): 0.5').waitFor()
      t.match(await row.textContent(), /^tempCelsius21accuracy/)
      await page.getByText('2 of 2 attributes shown').waitFor()
      await scene.isAccessible('entity')
      await row.getByRole('button', { name: 'Edit temp' }).click()
      const dialog = page.getByRole('dialog', { name: 'Edit temp' })
      await dialog.getByLabel('Value (JSON, or a text)').fill('22.5')
      const sent = page.waitForRequest(request => request.method() === 'PATCH')
      await scene.isAccessible('dialog')
      await dialog.getByRole('button', { name: 'Save' }).click()
      t.strictSame((await sent).postDataJSON(), { temp: { type: 'Celsius', value: 22.5 } })
      await row.getByText('22.5').waitFor()
      await page.getByRole('img', { name: /^temp since .*: now 22\.5, from 21 to 22\.5$/ }).waitFor()
      const stored = (await scene.send('GET', '/v2/entities/R1/attrs/temp')).json
      t.match(stored, { type: 'Celsius', value: 22.5, metadata: { accuracy: { value: 0.5 } } }, 'metadata stay')
      await scene.send('PATCH', '/v2/entities/R1/attrs', { name: { value: 'hall' } })
      await page.getByRole('row', { name: /^name/ }).getByText('hall').waitFor()
    },
  )

  await journey(
    'faulty metadata and a refusal are shown, and the dialog keeps what was typed',
    [room],
    async (t, scene) => {
      const page = await scene.open('entity?id=R1&type=Room&at=/')
      await page.getByRole('button', { name: 'Edit name' }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByLabel('Metadata (JSON)').fill('[1]')
      await dialog.getByText('Metadata must be a JSON object.').waitFor()
      await dialog.getByLabel('Metadata (JSON)').fill('{}')
      await dialog.getByLabel('Value (JSON, or a text)').fill('a <b> c')
      await dialog.getByRole('button', { name: 'Save' }).click()
      await dialog.getByRole('alert').getByText('400').waitFor()
      t.match(await dialog.getByRole('alert').textContent(), 'PATCH /v2/entities/R1/attrs', 'with its request')
      t.equal(await dialog.getByLabel('Value (JSON, or a text)').inputValue(), 'a <b> c')
      await page.keyboard.press('Escape')
      await dialog.waitFor({ state: 'detached' })
    },
  )

  await journey(
    'shows the subscriptions and registrations that concern it, with an explanation',
    [room],
    async (_t, scene) => {
      const notification = { http: { url: 'http://localhost:1/' } }
      const subject = (type: string, q: string) => ({
        entities: [{ idPattern: '.*', type }],
        condition: { expression: { q } },
      })
      await scene.send('POST', '/v2/subscriptions', {
        description: 'of rooms',
        subject: subject('Room', 'temp>90'),
        notification,
      })
      await scene.send('POST', '/v2/subscriptions', {
        description: 'of meters',
        subject: subject('Meter', 'p>1'),
        notification,
      })
      const provider = { http: { url: 'http://localhost:1/v2' } }
      await scene.send('POST', '/v2/registrations', {
        description: 'weather',
        dataProvided: { entities: [{ id: 'R1', type: 'Room' }], attrs: ['rain'] },
        provider,
      })
      const page = await scene.open('entity?id=R1&type=Room&at=/')
      await page.getByText('2 of 2 subscriptions asked').waitFor()
      await page.getByText('✗ of rooms').click()
      await page.getByText('temp>90: is 21').first().waitFor()
      await page.getByText('of meters').waitFor({ state: 'detached' })
      await page.getByText(/weather: R1 of type Room, attributes rain, provided by http:\/\/localhost:1\/v2/).waitFor()
      await scene.isAccessible('with explanations')
      await page.getByRole('link', { name: /^Open the subscription/ }).click()
      await page.getByRole('heading', { name: 'of rooms' }).waitFor()
    },
  )

  // The interface refuses angle brackets in most texts, but not in values of these types.
  const markup = `<img src=x onerror="globalThis.ran = true"><script>globalThis.ran = true</script>`
  const odd = {
    id: 'javascript:globalThis.ran%2F..%41',
    type: 'Odd',
    html: { type: 'TextUnrestricted', value: markup },
    long: { value: 'x'.repeat(1_000_000) },
    constructor: { value: { nested: [null, true] } },
  }
  await journey('values that hold markup, long texts and odd ids are shown as texts', [], async (t, scene) => {
    const many = Object.fromEntries(Array.from({ length: attributesMax }, (_, at) => [`a${at}`, { value: at }]))
    const { id } = odd
    await scene.create([odd])
    await scene.create([{ id: 'wide', type: 'Wide', ...many }])
    const page = await scene.openLive('entities?type=Odd&attrs=html,constructor')
    await becomes(t, () => rowsOf(page), [`${id} | Odd | / | ${markup} | {"nested":[null,true]}`], 'table')
    await page.getByRole('link', { name: id }).click()
    await page.getByRole('heading', { name: id }).waitFor()
    t.equal(await page.getByRole('row', { name: /^html/ }).getByRole('cell').nth(1).textContent(), markup)
    await page.getByRole('button', { name: 'Show all 1,000,000 characters' }).waitFor()
    t.equal(await page.evaluate('globalThis.ran'), undefined, 'nothing ran')
    await scene.open('entity?id=wide&type=Wide&at=/')
    await page.getByText('200 of 5,000 attributes shown').waitFor()
    await page.getByRole('button', { name: 'Show all' }).click()
    await page.getByText('5,000 of 5,000 attributes shown').waitFor()
  })
  // Ids and names of attributes are ASCII.
  const metadata7 = { lang: { value: 'العربية' } }
  const room7 = {
    id: 'R7',
    type: 'Room',
    name: { value: 'غرفة الاجتماعات [7]', metadata: metadata7 },
    odd: { value: 'a\u202Eb' },
  }
  await journey('texts that are written from right to left are shown, and edited', [room7], async (t, scene) => {
    const page = await scene.openLive('entities?type=Room&attrs=name,odd')
    await becomes(t, () => rowsOf(page), [`R7 | Room | / | ${room7.name.value} | a\u202Eb`], 'table')
    await page.getByRole('link', { name: 'R7' }).click()
    await page.getByText('lang (Text): العربية').waitFor()
    await page.getByRole('button', { name: 'Edit name' }).click()
    const dialog = page.getByRole('dialog', { name: 'Edit name' })
    t.equal(await dialog.getByLabel('Value (JSON, or a text)').inputValue(), room7.name.value)
    await dialog.getByLabel('Value (JSON, or a text)').fill('שלום [עולם]')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('row', { name: /^name/ }).getByText('שלום [עולם]').waitFor()
    await scene.isAccessible('right to left')
  })
})
