// The views of registrations, of the cluster, of the log with the settings, and of a request that a person types.
//
// The answers of the node of a cluster are made up here: that real nodes give such ones is shown in journeys/cluster.test.

import t from 'tap'
import type { ClusterStatus } from '../../src/messages/cluster-status.js'
import { httpReceiver } from '../deliver/receivers.js'
import { AccessScene, everything } from '../support/access-scene.js'
import { freePort } from '../support/broker-process.js'
import { noBrowser, TestBrowser } from '../support/browser.js'
import { becomes, ConsoleScene, carryOut, journeysIn, startConsole } from './scene.js'

t.setTimeout(300_000)
const skip = noBrowser()

/** A cluster of three nodes, seen by `a`, in which shard 4 moves, shard 5 has no owner and shard 6 is behind. */
function clusterSeenBy(isJoined: boolean): ClusterStatus {
  const shard = (at: number): ClusterStatus['shards'][number] => {
    const owner = ['a', 'b', '<i>c</i>'][at % 3] as string
    return {
      shard: at,
      owner: at === 5 ? undefined : owner,
      epoch: 3,
      copy: 'following',
      known: 9,
      lag: at === 6 ? 7 : 0,
    }
  }
  const shards = Array.from({ length: 257 }, (_, at) => (at === 4 ? { ...shard(at), next: 'a' } : shard(at)))
  const members = ['a', 'b', '<i>c</i>'].map(name => ({
    ...{
      name,
      address: `${name}:7000`,
      domain: '',
      status: 'alive',
      protocol: 1,
      undecodable: 0,
      load: name === 'a' ? undefined : 1234,
      clockAheadMs: name === 'a' ? undefined : 3,
    },
    isJoined: name !== 'a' || isJoined,
    owned: shards.filter(({ owner }) => owner === name).length,
  }))
  const health = { state: 'unowned', reason: 'no node owns shard 5', shards: [5] } as const
  const clock = { state: 'close', aheadMs: 0, skewMaxMs: 500 } as const
  const log = { state: 'whole', shards: [] } as const
  const balanced = { balance: 'load', exchanges: 0 } as const
  return { node: 'a', cluster: 'city', isJoined, log, health, clock, ...balanced, members, shards }
}

t.test('operators', { skip }, async t => {
  const broker = await startConsole(t, { args: ['-workers', '2', '-statCounters'] })
  const browser = await TestBrowser.start(t)
  const journey = journeysIn(t, browser, broker)
  const room = { id: 'R1', type: 'Room', temp: { value: 21 } }
  const markup = '{"value":"<img src=x onerror=alert(1)>","type":"TextUnrestricted"}'

  await journey('a registration is created, shown with how it went, and deleted', [], async (t, scene) => {
    const remote = [{ id: 'R2', type: 'Room', humidity: { type: 'Number', value: 40, metadata: {} } }]
    const provider = await httpReceiver(t, (_request, response) => response.end(JSON.stringify(remote)))
    const page = await scene.open('registrations')
    await page.getByText('0 of 0 registrations shown').waitFor()
    await page.getByRole('button', { name: 'Create…' }).click()
    const dialog = page.getByRole('dialog', { name: 'Create a registration' })
    await dialog.getByLabel('Description').fill('humidity')
    await dialog.getByLabel(/^Type of entities/).fill('Room')
    await dialog.getByLabel(/^Id of the entity/).fill('<b>')
    await dialog.getByLabel(/^Attributes that it provides/).fill('humidity, dew')
    await dialog.getByLabel('Provider (URL)').fill('ftp://x')
    await dialog.getByText(/^The provider must be a URL/).waitFor()
    await dialog.getByLabel('Provider (URL)').fill(provider.url)
    await dialog.getByLabel(/^End/).fill('soon')
    await dialog.getByText(/^The end must be a date/).waitFor()
    t.equal(await dialog.getByRole('button', { name: 'Create' }).isDisabled(), true)
    await dialog.getByLabel(/^End/).fill('2099-12-31')
    await dialog.getByRole('button', { name: 'Create' }).click()
    await dialog.getByRole('alert').getByText('400').waitFor()
    await dialog.getByText('POST /v2/registrations').waitFor()
    t.equal(await dialog.getByLabel('Description').inputValue(), 'humidity', 'nothing that was typed is lost')
    await scene.isAccessible('dialog of a registration')
    await dialog.getByLabel(/^Id of the entity/).fill('R2')
    await dialog.getByRole('button', { name: 'Create' }).click()
    await page.getByText('1 of 1 registrations shown').waitFor()
    await scene.send('GET', '/v2/entities/R2')
    const row = page.getByRole('row', { name: /^humidity/ })
    const sent = async () => {
      await page.getByRole('button', { name: 'Read again' }).click()
      return row.getByRole('cell').nth(2).textContent()
    }
    await becomes(t, sent, '1', 'a request was forwarded')
    await row.getByText('R2 of type Room').waitFor()
    await row.getByText('humidity, dew').waitFor()
    await scene.isAccessible('registrations')
    await page.getByRole('button', { name: 'Delete humidity…' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByText('0 of 0 registrations shown').waitFor()
    t.strictSame((await scene.send('GET', '/v2/registrations')).json, [])
  })

  await journey('a broker on one machine has no cluster, but workers', [], async (t, scene) => {
    const page = await scene.open('cluster')
    await page.getByText(/no node of a cluster: it runs on one machine, as 2 workers/).waitFor()
    const rows = page.getByRole('region', { name: 'Processes' }).getByRole('row')
    await becomes(t, () => rows.count(), 3, 'a row for each')
    t.match(await rows.last().textContent(), /^1[\d.,]+ MB/)
    await scene.isAccessible('workers')
  })

  await journey(
    'a cluster has its members, its shards, and what to look at; a node is drained',
    [],
    async (t, scene) => {
      let isJoined = true
      let mayDrain = false
      await scene.page.route('**/cluster', route => route.fulfill({ json: clusterSeenBy(isJoined) }))
      await scene.page.route('**/cluster/drain', async (route, request) => {
        const refusal = { error: 'Unavailable', description: 'some shards have found no new owner' }
        if (!mayDrain) return route.fulfill({ status: 503, json: refusal })
        isJoined = request.method() === 'DELETE'
        return route.fulfill({ status: 204 })
      })
      const page = await scene.open('cluster')
      await page.getByText('unowned: no node owns shard 5 (1 shards)').waitFor()
      await page.getByText('b → a: 1').waitFor()
      await becomes(
        t,
        () =>
          page
            .getByRole('list', { name: /^257 shards/ })
            .getByRole('listitem')
            .count(),
        257,
        'a grid',
      )
      const found = page.getByRole('region', { name: 'Shards to look at' }).getByRole('row')
      await becomes(
        t,
        () => found.allTextContents(),
        ['ShardOwnerMoves toCopy hereRecords behind', '4bafollowing0', '5none–following0', '6a–following7'],
        'to look at',
      )
      await page.getByRole('button', { name: '<i>c</i>: 84' }).click()
      await becomes(t, () => page.locator('.shards .pale').count(), 257 - 84, 'those of the others are pale')
      await becomes(t, async () => page.url().includes('owner='), true, 'a link shows the same')
      await scene.isAccessible('cluster')
      await page.getByRole('button', { name: 'Drain a…' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Drain' }).click()
      await page.getByRole('alert').getByText('POST /cluster/drain').waitFor()
      mayDrain = true
      await page.getByRole('button', { name: 'Drain a…' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Drain' }).click()
      await page.getByText('takes no shards: it is drained').waitFor()
      await page.getByRole('button', { name: 'Resume a…' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Resume' }).click()
      await page.getByRole('button', { name: 'Drain a…' }).waitFor()
    },
  )

  t.test('with a key there is what it may do; a port for operators is named', async t => {
    const reader = [{ actions: ['read', 'stream'], tenants: ['city'] }]
    const access = new AccessScene(t, { operator: everything, reader })
    const adminPort = String(await freePort())
    const guarded = await startConsole(t, { args: ['-access', access.path, '-adminPort', adminPort] })
    const { page, errors } = await browser.open()
    const scene = new ConsoleScene(t, guarded, 'city', page, errors)
    await carryOut(t, 'operators with access control', scene, async t => {
      await scene.open('request')
      const show = async (name: string): Promise<void> => {
        await page.getByRole('button', { name: /^Key/ }).click()
        await page.getByRole('textbox', { name: 'Key or token' }).fill(access.keyOf(name))
        await page.getByRole('button', { name: 'Show it to the broker' }).click()
      }
      const links = page.getByRole('navigation').getByRole('link')
      await show('reader')
      await becomes(t, () => links.allTextContents(), ['Entities', 'Map', 'Types', 'Try it'], 'views of a reader')
      await page.getByRole('button', { name: 'Send GET' }).click()
      await page.getByText(/^200 OK/).waitFor()
      await page.getByText('curl', { exact: true }).click()
      await page.getByText('Authorization: Bearer $KEY').waitFor()
      t.notMatch(await page.content(), access.keyOf('reader'), 'the key itself is nowhere in the page')
      await scene.open('registrations')
      await page.getByRole('alert').getByText('403').waitFor()
      t.equal(await page.getByRole('button', { name: 'Create…' }).count(), 0)
      await show('operator')
      await becomes(t, () => links.count(), 7, 'views of an operator at the port of clients')
      for (const view of ['settings', 'cluster']) {
        await scene.open(view)
        await page.getByText('is at the port for operators of this broker').waitFor()
      }
      await scene.isAccessible('port for operators')
    })
  })

  t.test('without access control the views of operators name their port, which answers', async t => {
    const adminPort = await freePort()
    const open = await startConsole(t, { args: ['-adminPort', String(adminPort)] })
    const { page, errors } = await browser.open()
    const scene = new ConsoleScene(t, open, 'city', page, errors)
    await carryOut(t, 'a port for operators', scene, async t => {
      for (const view of ['settings', 'cluster']) {
        await scene.open(view)
        await page.getByText('is at the port for operators of this broker').waitFor()
      }
      await becomes(t, () => page.getByRole('navigation').getByRole('link').count(), 9, 'every view')
      t.equal((await fetch(`http://127.0.0.1:${adminPort}/admin/settings`)).status, 200)
    })
  })

  await journey('the level of the log is changed; the options of the start are shown', [], async (t, scene) => {
    const page = await scene.open('settings')
    await page.getByRole('combobox', { name: 'Level' }).selectOption('ERROR')
    await page.getByLabel('Bytes of a line').fill('4 KB')
    await page.getByRole('button', { name: 'Change the log' }).click()
    await page.getByRole('alert').getByText('PUT /admin/log').waitFor()
    t.equal(
      await page.getByRole('combobox', { name: 'Level' }).inputValue(),
      'ERROR',
      'nothing that was chosen is lost',
    )
    t.equal(await page.getByLabel('Bytes of a line').inputValue(), '4 KB', 'and nothing that was typed')
    await page.getByLabel('Bytes of a line').fill('4000')
    await page.getByRole('button', { name: 'Change the log' }).click()
    await page.getByText('The level is ERROR.').waitFor()
    t.match((await scene.send('GET', '/admin/log')).json, { level: 'ERROR', lineMaxSize: 4000 })
    await page.getByLabel(/^Trace levels/).fill('19,21-25')
    await page.getByRole('button', { name: 'Set trace levels' }).click()
    await page.getByText('Set: 19, 21-25').waitFor()
    await page.getByRole('button', { name: 'Clear trace levels' }).click()
    await page.getByText('Set: none').waitFor()
    await page.getByText('counters › requests').first().waitFor()
    await page.getByRole('button', { name: 'Reset…' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Reset' }).click()
    const options = page.getByRole('region', { name: 'Table of options' })
    await options.getByRole('row', { name: '-workers 2 -workers' }).waitFor()
    await page.getByLabel('Without defaults').check()
    await page.getByLabel('Option or value').fill('port')
    await options.getByRole('row', { name: /^-port/ }).waitFor()
    await becomes(t, () => options.getByRole('row').count(), 2, 'the head, and one option')
    await scene.isAccessible('settings')
  })

  await journey('a request is typed and answered, here and nowhere else', [room], async (t, scene) => {
    const page = await scene.open('request')
    await page.getByRole('button', { name: 'Send GET' }).click()
    const body = page.getByRole('region', { name: 'Body of the answer' })
    await body.getByText('"R1"').waitFor()
    await page.getByText(/^200 OK/).waitFor()
    const operation = page.getByRole('combobox', { name: /^Operation/ })
    await operation.selectOption({ label: 'DELETE /v2/entities/{id} – Delete an entity' })
    await page.getByText('put a value in place of {id}').waitFor()
    await operation.selectOption({ label: 'POST /v2/entities – Create an entity' })
    t.match(await page.getByRole('textbox', { name: 'Body' }).inputValue(), '"Room1"', 'with an example')
    const button = page.getByRole('button', { name: 'Send POST' })
    t.match(await button.getAttribute('class'), 'writes', 'what changes something looks different')
    await page.getByRole('textbox', { name: 'Body' }).fill('{')
    await button.click()
    await page.getByText(/^400 Bad Request/).waitFor()
    await body.getByText('ParseError').waitFor()
    t.equal(await page.getByRole('textbox', { name: 'Body' }).inputValue(), '{', 'nothing that was typed is lost')
    await page.getByRole('textbox', { name: 'Body' }).fill(`{"id":"R9","type":"T","a":${markup}}`)
    await button.click()
    await page.getByText(/^201 Created/).waitFor()
    await page.getByText(/^[0-9]+ headers$/).click()
    await page.getByText('/v2/entities/R9?type=T').waitFor()
    await scene.isAccessible('request')
    for (const elsewhere of [
      'https://example.org/v2',
      '\\\\example.org/v2',
      '//user@example.org:1/../..//x\\y',
      'javascript:1',
    ]) {
      await page.getByLabel('Path and query').fill(elsewhere)
      const isOffered = await page.getByRole('button', { name: 'Send POST' }).isEnabled()
      if (isOffered)
        t.match(await page.locator('details.curl code').last().textContent(), scene.broker.baseUrl, elsewhere)
      else await page.getByText(/^The path must be one of this broker/).waitFor()
    }
    await page.getByRole('link', { name: 'Types' }).click()
    await page.getByRole('heading', { name: 'Types' }).waitFor()
    await page.goBack()
    t.match(
      await page.getByRole('textbox', { name: 'Body' }).inputValue(),
      '"R9"',
      'it is there when the view is opened again',
    )
    await page.getByRole('combobox', { name: 'Method' }).selectOption('GET')
    await page.getByLabel('Path and query').fill('/v2/entities/R9')
    await page.getByRole('button', { name: 'Send GET' }).click()
    await body.getByText('<img src=x').waitFor()
    t.equal(await page.locator('img').count(), 0, 'markup is text')
    await page.getByLabel('Path and query').fill('/v2/stream?options=snapshot')
    await page.getByRole('button', { name: 'Send GET' }).click()
    await page.getByText('the answer goes on').waitFor()
  })
})
