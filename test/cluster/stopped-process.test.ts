// A process that is stopped (SIGSTOP) and continues later finds old asks in its socket: it must not begin asks that no
// caller waits for.

import t, { type Test } from 'tap'
import type { Asks } from '../../cluster/index.js'
import { Authority } from './certificates.js'
import { askOutcomes } from './node-main.js'
import { ask, NodeProcess, openFiles, socketDirectory, startNode, untilLink } from './nodes.js'

t.setTimeout(400_000)

const cases = [
  { says: 'a node that listens and is stopped', name: 'b', options: {} },
  { says: 'a node that dials and is stopped', name: 'A', options: {} },
  { says: 'a node that is stopped for so long that its stream is given up', name: 'b', options: { abandonMs: 1200 } },
]

const schemes = { unix: 'gRPC', socket: 'a bare socket' }
const sockets = Object.entries(schemes)

for (const [{ says, name, options }, [scheme, over]] of cases.flatMap(one => sockets.map(at => [one, at] as const))) {
  t.test(`over ${over} ${says} begins nothing that was asked meanwhile`, async t => {
    const directory = socketDirectory(t)
    const self = { name: 'a', address: `${scheme}:${directory}/a` }
    const other = { name, address: `${scheme}:${directory}/${name}` }
    const asks = await startNode(t, self, [other], undefined, options)
    const child = await NodeProcess.start(t, { self: other, parent: self, options })
    await untilLink(asks, name)
    t.match(await ask(asks, name, askOutcomes.echo, 'before'), { kind: 'reply' })

    child.child.kill('SIGSTOP')
    const sent = Array.from({ length: 100 }, (_, n) => ask(asks, name, askOutcomes.echo, `sent ${n}`))
    await untilLink(asks, name, false)
    t.match(await ask(asks, name, askOutcomes.echo, 'while it is silent'), {
      kind: 'unavailable',
      reason: /cannot be reached/,
    })
    const kinds = new Set((await Promise.all(sent)).map(({ kind }) => kind))
    t.strictSame([...kinds], ['unknown'])

    child.child.kill('SIGCONT')
    await untilLink(asks, name)
    t.match(await ask(asks, name, askOutcomes.echo, 'after'), { kind: 'reply' })
    await child.until('begun', () => child.begun.includes('after'))
    t.strictSame(child.begun, ['before', 'after'])
  })
}

for (const kind of ['gRPC', 'TLS', 'a bare socket']) {
  const scheme = kind === 'a bare socket' ? 'socket' : 'unix'

  t.test(
    `over ${kind}, a node that stays stopped costs no further connections by redials, and closing does not wait`,
    async t => {
      const authority = kind === 'TLS' ? new Authority(t) : undefined
      const directory = socketDirectory(t)
      const self = { name: 'a', address: `${scheme}:${directory}/a` }
      const other = { name: 'b', address: `${scheme}:${directory}/b` }
      const hasty = { pingMs: 20, silentMs: 60, abandonMs: 60, redialMsMin: 5, redialMsMax: 5 }
      const child = await NodeProcess.start(t, { self: other, parent: self, transport: { tls: authority?.member() } })
      const asks = await startNode(t, self, [other], undefined, hasty, { tls: authority?.member() })
      await untilLink(asks, 'b')
      child.child.kill('SIGSTOP')
      await untilLink(asks, 'b', false)
      const files: number[] = []
      for (let left = 3; left > 0; left--) {
        await new Promise(resolve => setTimeout(resolve, 1000))
        files.push(openFiles())
      }
      t.ok(files[2]! - files[0]! < 8, `open files: ${files}`)
      await closesSoon(t, asks)
    },
  )

  t.test(`over ${kind}, closing does not wait for a node that has dialed and is stopped`, async t => {
    const authority = kind === 'TLS' ? new Authority(t) : undefined
    const directory = socketDirectory(t)
    const self = { name: 'b', address: `${scheme}:${directory}/b` }
    const other = { name: 'a', address: `${scheme}:${directory}/a` }
    const asks = await startNode(t, self, [other], undefined, {}, { tls: authority?.member() })
    const child = await NodeProcess.start(t, { self: other, parent: self, transport: { tls: authority?.member() } })
    await untilLink(asks, 'a')
    child.child.kill('SIGSTOP')
    await closesSoon(t, asks)
  })
}

async function closesSoon(t: Test, asks: Asks): Promise<void> {
  const beganMs = performance.now()
  await asks.close()
  const tookMs = performance.now() - beganMs
  t.ok(tookMs < 3000, `closed after ${tookMs} ms`)
}
