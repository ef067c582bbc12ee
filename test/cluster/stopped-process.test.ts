// A process that is stopped (SIGSTOP) and goes on later finds old asks in its socket: it must not begin what nobody waits for.

import { readdirSync } from 'node:fs'
import t from 'tap'
import { wishes } from './node-main.js'
import { ask, NodeProcess, socketDirectory, startNode, untilLink } from './nodes.js'

const cases = [
  { says: 'a node that listens and is stopped', name: 'b', options: {} },
  { says: 'a node that dials and is stopped', name: 'A', options: {} },
  { says: 'a node that is stopped for so long that its stream is given up', name: 'b', options: { abandonMs: 1200 } },
]

for (const { says, name, options } of cases) {
  t.test(`${says} begins nothing that was asked meanwhile`, async t => {
    const directory = socketDirectory(t)
    const self = { name: 'a', address: `unix:${directory}/a` }
    const other = { name, address: `unix:${directory}/${name}` }
    const asks = await startNode(t, self, [other], undefined, options)
    const child = await NodeProcess.start(t, { self: other, parent: self, options })
    await untilLink(asks, name)
    t.match(await ask(asks, name, wishes.echo, 'before'), { kind: 'reply' })

    child.child.kill('SIGSTOP')
    const sent = Array.from({ length: 100 }, (_, n) => ask(asks, name, wishes.echo, `sent ${n}`))
    await untilLink(asks, name, false)
    t.match(await ask(asks, name, wishes.echo, 'while it is silent'), {
      kind: 'unavailable',
      reason: /cannot be reached/,
    })
    const kinds = new Set((await Promise.all(sent)).map(({ kind }) => kind))
    t.strictSame([...kinds], ['unknown'])

    child.child.kill('SIGCONT')
    await untilLink(asks, name)
    t.match(await ask(asks, name, wishes.echo, 'after'), { kind: 'reply' })
    await child.until('begun', () => child.begun.includes('after'))
    t.strictSame(child.begun, ['before', 'after'])
  })
}

t.test(
  'a process that stays stopped costs no more connections with every redial, and closing does not wait for it',
  async t => {
    const directory = socketDirectory(t)
    const self = { name: 'a', address: `unix:${directory}/a` }
    const other = { name: 'b', address: `unix:${directory}/b` }
    const hasty = { pingMs: 20, silentMs: 60, abandonMs: 60, redialMsMin: 5, redialMsMax: 5 }
    const child = await NodeProcess.start(t, { self: other, parent: self })
    const asks = await startNode(t, self, [other], undefined, hasty)
    await untilLink(asks, 'b')
    child.child.kill('SIGSTOP')
    await untilLink(asks, 'b', false)
    const files: number[] = []
    for (let left = 3; left > 0; left--) {
      await new Promise(resolve => setTimeout(resolve, 1000))
      files.push(readdirSync('/proc/self/fd').length)
    }
    t.ok(files[2]! - files[0]! < 8, `open files: ${files}`)
    await asks.close()
  },
)
