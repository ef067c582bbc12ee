// Every refusal of test/cases/errors.ts, over both servers: its status, name and text, and that the broker's data is as
// before.

import t from 'tap'
import { type ErrorCase, errorCases, stock } from '../cases/errors.js'
import { httpServers, type LocalNode, startLocalNode } from '../support/local-node.js'

const entityOf: Readonly<Record<string, string>> = {
  '<': '&lt;',
  '>': '&gt;',
  '(': '&#40;',
  ')': '&#41;',
  '=': '&#61;',
  ';': '&#59;',
  "'": '&#39;',
  '"': '&quot;',
}
const escaped = (text: string) => text.replace(/[<>()=;'"]/g, character => entityOf[character] as string)

/** All stored data, with the times of the last change. */
const everything = async (node: LocalNode) =>
  (await node.ask('GET /v2/entities?limit=1000&attrs=*,dateModified,dateExpires')).text

function ask(node: LocalNode, { request, headers = [], body }: ErrorCase) {
  if (body === undefined) return node.ask(request, headers)
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const typed = headers.find(header => header.startsWith('Content-Type:'))
  // A header without a value means that the request has no such header.
  const own = headers.filter(header => header !== 'Content-Type:')
  return node.ask(request, typed === undefined ? ['Content-Type: application/json', ...own] : own, text)
}

for (const server of httpServers) {
  t.test(`over ${server}`, async t => {
    const node = await startLocalNode(t, { server })
    for (const entity of stock) t.equal((await node.json('POST /v2/entities', entity)).status, 201)
    const before = await everything(node)

    for (const row of errorCases) {
      const { request, status, error, text } = row
      const name = `${request} ${JSON.stringify(row.body) ?? ''} ${row.headers?.join() ?? ''}`
      t.test(`${status} ${error}: ${name.replaceAll(/\s+/g, ' ').slice(0, 100)}`, async t => {
        const answer = await ask(node, row)
        t.equal(answer.status, status)
        t.equal(answer.headers['content-type'], 'application/json')
        t.equal(answer.headers['content-length'], String(Buffer.byteLength(answer.text)))
        const expected = escaped(text.endsWith('...') ? text.slice(0, -3) : text)
        const { description } = answer.json as { description: string }
        t.equal(text.endsWith('...') ? description.slice(0, expected.length) : description, expected)
        t.equal(answer.text, JSON.stringify({ error, description }), 'exactly these two keys, in this order')
        t.equal((await node.ask('GET /v2')).status, 200, 'the broker still answers')
        t.equal(await everything(node), before, 'nothing was stored')
      })
    }
  })
}

for (const server of httpServers) {
  t.test(`over ${server}, the possible part of a request is stored`, async t => {
    const node = await startLocalNode(t, { server })
    await node.json('POST /v2/entities', { id: 'R1', type: 'Room', temp: { value: 1 } })
    const [append, update] = [
      await node.json('POST /v2/entities/R1/attrs?options=append', { temp: { value: 2 }, hum: { value: 3 } }),
      await node.json('PATCH /v2/entities/R1/attrs', { temp: { value: 4 }, none: { value: 5 } }),
    ]
    t.match(append, {
      status: 422,
      json: {
        error: 'PartialUpdate',
        description: 'one or more of the attributes in the request already exist: R1 - [ temp ]',
      },
    })
    t.match(update, { status: 422, json: { error: 'PartialUpdate', description: 'do not exist: R1 - [ none ]' } })
    t.strictSame((await node.ask('GET /v2/entities/R1?options=keyValues')).json, {
      id: 'R1',
      type: 'Room',
      temp: 4,
      hum: 3,
    })
  })
}
