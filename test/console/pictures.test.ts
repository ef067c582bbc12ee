// The pictures of the README, taken of `orrery demo`.
//
// Each run takes them and keeps them below .tap/console. `UPDATE_PICTURES=1 node dist/test/console/pictures.test.js`
// writes them to docs/pictures, which are compared with nothing: fonts and numbers differ from run to run.

import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import t from 'tap'
import { noBrowser, TestBrowser } from '../support/browser.js'
import { builtConsole } from '../support/built-console.js'
import { startDemo } from '../support/demo-process.js'
import { HttpClient } from '../support/http-client.js'
import { root } from '../support/project.js'
import { becomes, ConsoleScene, carryOut } from './scene.js'

t.setTimeout(300_000)
const skip = noBrowser()

const pictureBytesMax = 200 * 1024
const stored = join(root, 'docs/pictures')
const folder = process.env.UPDATE_PICTURES === '1' ? stored : join(root, '.tap/console')

async function mapLive(scene: ConsoleScene): Promise<void> {
  const page = await scene.openLive('map')
  await page.getByRole('list', { name: 'Colours' }).getByText('Bus').waitFor()
  await page.getByText(/entities in this part of the world shown/).waitFor()
}

async function subscriptionExplained(scene: ConsoleScene, client: HttpClient): Promise<void> {
  const { json } = await client.get('/v2/subscriptions')
  const all = json as readonly { readonly id: string; readonly subject: { readonly entities: readonly object[] } }[]
  const refusing = all.find(one => JSON.stringify(one.subject).includes('power>4'))
  const page = await scene.open(`subscription?id=${refusing?.id}`)
  await page.getByLabel('Entity (id)').fill('Meter001')
  await page.getByRole('button', { name: 'Explain' }).click()
  await page
    .getByText(/^power>4: /)
    .first()
    .waitFor()
}

async function keep(page: Page, name: string): Promise<string> {
  mkdirSync(folder, { recursive: true })
  const path = join(folder, name)
  await page.screenshot({ path })
  return path
}

t.test('the console shows the demo, and pictures of it are small', { skip }, async t => {
  builtConsole()
  const { demo } = await startDemo(t)
  const client = new HttpClient(demo.baseUrl)
  t.teardown(() => client.close())
  const failures = async () => {
    const { json } = await client.get('/v2/subscriptions')
    return (json as readonly { readonly notification: { readonly failsCounter?: number } }[]).some(
      ({ notification }) => (notification.failsCounter ?? 0) > 2,
    )
  }
  await becomes(t, failures, true, 'a receiver has refused')
  const { page, errors } = await (await TestBrowser.start(t)).open()
  const scene = new ConsoleScene(t, demo, '', page, errors)
  await page.setViewportSize({ width: 1280, height: 720 })
  await page.emulateMedia({ colorScheme: 'light' })
  await carryOut(t, 'pictures', scene, async t => {
    for (const [name, show] of [
      ['map.png', mapLive],
      ['subscription.png', subscriptionExplained],
    ] as const) {
      await show(scene, client)
      const { size } = statSync(await keep(page, name))
      t.ok(size < pictureBytesMax, `${name}: ${size} bytes`)
    }
  })
})

t.test('the README shows each stored picture', async t => {
  const readme = readFileSync(join(root, 'README.md'), 'utf8')
  const names = readdirSync(stored)
  t.ok(names.length > 0)
  for (const name of names) {
    t.match(readme, `(docs/pictures/${name})`)
    t.ok(statSync(join(stored, name)).size < pictureBytesMax, name)
  }
})
