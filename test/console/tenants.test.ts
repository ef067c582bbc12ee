// Tenants at both ends: one without entities, and one with 40,000 service paths.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runToEnd, tempDir } from '../support/broker-process.js'
import { noBrowser, TestBrowser } from '../support/browser.js'
import { becomes, journeysIn, rowsOf, startConsole } from './scene.js'

t.setTimeout(300_000)
const skip = noBrowser()

const pathsCount = 40_000
const pathOf = (nth: number): string => `/district${nth % 200}/house${nth}`

/** A data directory with a tenant `paths`, in which each entity has a service path of its own. */
async function directoryOfPaths(): Promise<string> {
  const folder = tempDir(t)
  const lines = Array.from({ length: pathsCount }, (_, nth) =>
    JSON.stringify({
      entity: { id: `H${nth}`, type: 'House', level: { type: 'Number', value: nth, metadata: {} } },
      tenant: 'paths',
      servicePath: pathOf(nth),
    }),
  )
  const file = join(folder, 'paths.ndjson')
  const end = JSON.stringify({ 'orrery-export-end': 1, entities: pathsCount, registrations: 0, subscriptions: 0 })
  writeFileSync(file, ['{"orrery-export":1}', ...lines, end, ''].join('\n'))
  const dataDir = join(folder, 'data')
  const { code, stderr } = await runToEnd(t, ['import', '-file', file, '-dataDir', dataDir], 120_000)
  t.equal(code, 0, stderr)
  return dataDir
}

t.test('tenants', { skip }, async t => {
  const broker = await startConsole(t, { dataDir: await directoryOfPaths() })
  const journey = journeysIn(t, await TestBrowser.start(t), broker)

  await journey('a tenant without entities has every view, and the first entity comes live', [], async (t, scene) => {
    await scene.open('overview')
    await scene.page.getByRole('img', { name: /^Memory/ }).waitFor()
    await scene.open('types')
    await scene.page.getByText('0 of 0 types shown').waitFor()
    await scene.open('subscriptions')
    await scene.page.getByText('0 of 0 subscriptions shown').waitFor()
    const page = await scene.openLive('entities')
    await page.getByText('no entities', { exact: true }).waitFor()
    await scene.isAccessible('no entities')
    await page.getByRole('grid', { name: 'Entities' }).focus()
    for (const key of ['End', 'ArrowUp', 'PageDown', 'Enter']) await page.keyboard.press(key)
    t.equal(await page.getByRole('button', { name: /^Delete|^Copy/ }).count(), 0, 'there is nothing to delete')
    await scene.create([{ id: 'R1', type: 'Room', temp: { value: 21 } }])
    await becomes(t, async () => (await rowsOf(page)).length, 1, 'the first one')
  })

  // A list over all of them takes the broker seconds.
  await journey(
    'a tenant with 40,000 service paths: the field of the path chooses any of them',
    [],
    async (t, scene) => {
      const page = await scene.open(`entities?attrs=level&path=${encodeURIComponent('/district7/#')}`, 'paths')
      await page.getByText(/of 200 entities/).waitFor()
      const choose = async (path: string) => {
        await page.getByLabel('Service path').fill(path)
        await page.keyboard.press('Enter')
      }
      const last = pathsCount - 1
      await choose(pathOf(last))
      await becomes(t, () => rowsOf(page), [`H${last} | House | ${pathOf(last)} | ${last}`], 'one of them')
      await scene.isAccessible('a path')
      await choose('/district8/#')
      await page.getByText(/of 200 entities/).waitFor()
      t.match(page.url(), 'district8')
    },
  )
})
