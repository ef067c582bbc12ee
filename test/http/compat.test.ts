// `-compat fiware`: requests and answers of the broker use the other vocabulary, and it accepts requests in that one
// only.

import t from 'tap'
import { httpReceiver } from '../deliver/receivers.js'
import { startLocalNode } from '../support/local-node.js'

for (const [vocabulary, ours, others] of [
  ['Fiware', 'Fiware', 'Ctx'],
  [undefined, 'Ctx', 'Fiware'],
] as const)
  t.test(`notifications speak ${ours} when the vocabulary is ${vocabulary ?? 'not fixed'}`, async t => {
    const node = await startLocalNode(t, { vocabulary })
    let onRequest: (headers: readonly string[]) => void = () => {}
    const came = new Promise<readonly string[]>(resolve => {
      onRequest = resolve
    })
    const receiver = await httpReceiver(t, (request, response) => {
      response.writeHead(204).end()
      onRequest(request.headers)
    })
    const body = { subject: { entities: [{ idPattern: '.*' }] }, notification: { http: { url: receiver.url } } }
    await node.json('POST /v2/subscriptions', body, [`${vocabulary ?? 'Ctx'}-Service: acme`])
    await node.json('POST /v2/entities', { id: 'R1', a: { value: 1 } }, ['Fiware-Service: acme'])
    const names = (await came).filter((_, at) => at % 2 === 0)
    for (const name of ['Service', 'ServicePath', 'Correlator', 'Notification-Id'])
      t.ok(names.includes(`${ours}-${name}`), `${ours}-${name}`)
    t.same(
      names.filter(name => name.startsWith(`${others}-`)),
      [],
    )
  })

t.test('with -compat fiware a header Ctx-* is one like any other', async t => {
  const node = await startLocalNode(t, { vocabulary: 'Fiware', tenants: true })
  const room = (id: string) => ({ id, type: 'Room' })
  await node.json('POST /v2/entities', room('mine'), ['Fiware-Service: mine'])
  await node.json('POST /v2/entities', room('victims'), ['Fiware-Service: victim'])
  const both = await node.ask('GET /v2/entities', ['Fiware-Service: mine', 'Ctx-Service: victim', 'Ctx-Correlator: c'])
  t.match(both.json, [{ id: 'mine' }])
  t.not(both.headers['fiware-correlator'], 'c')
  t.same((await node.ask('GET /v2/entities', ['Ctx-Service: victim'])).json, [])
})
