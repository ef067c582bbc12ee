// A network that can be cut: between the named processes, in the named direction, and whole again afterwards.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { plainly } from './broker-process.js'
import { Network } from './network.js'

/** Dials a port, sends each line of its input there, and prints all that it receives, and `cut` at the end. */
const dialer = `
const socket = require('node:net').connect(Number(process.argv[1]), '127.0.0.1')
socket.on('data', text => console.log(String(text)))
socket.on('error', () => {})
socket.on('close', () => console.log('cut'))
process.stdin.on('data', text => socket.write(text))
`

interface Dialer {
  readonly child: ChildProcess
  readonly received: string[]
}

/** A listener behind a door, which echoes its input, and processes that dial it under names. */
class Scene {
  readonly network: Network
  readonly received: string[] = []
  private readonly t: Test
  private port = ''

  constructor(t: Test) {
    this.t = t
    this.network = new Network(t)
  }

  async listen(): Promise<void> {
    const server = createServer((socket: Socket) => {
      socket.on('error', () => {})
      socket.on('data', text => {
        this.received.push(String(text))
        socket.write(`heard ${text}`)
      })
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    this.t.teardown(() => server.close())
    const door = await this.network.door('listener', `127.0.0.1:${(server.address() as AddressInfo).port}`)
    this.port = door.split(':')[1] ?? ''
  }

  dial(name: string): Dialer {
    const child = spawn(...plainly([process.execPath, '-e', dialer, this.port]), { stdio: ['pipe', 'pipe', 'inherit'] })
    this.t.teardown(() => child.kill('SIGKILL'))
    const { pid } = child
    this.network.name(name, () => (pid === undefined ? [] : [pid]))
    const received: string[] = []
    child.stdout?.on('data', text => received.push(...String(text).trim().split('\n')))
    return { child, received: received }
  }

  send({ child }: Dialer, text: string): void {
    child.stdin?.write(text)
  }

  async until(condition: () => boolean): Promise<void> {
    for (let looks = 0; !condition(); looks++) {
      if (looks > 2000) throw new Error('it does not happen')
      await new Promise(resolve => setTimeout(resolve, 10))
    }
  }
}

t.test('silenced messages arrive when the network is whole again, and only one dialer is silenced', async t => {
  const scene = new Scene(t)
  await scene.listen()
  const [one, other] = [scene.dial('one'), scene.dial('other')]
  scene.send(one, 'a')
  await scene.until(() => one.received.includes('heard a'))

  scene.network.silence('one', 'listener')
  scene.send(one, 'b')
  scene.send(other, 'c')
  await scene.until(() => other.received.includes('heard c'))
  t.strictSame(scene.received, ['a', 'c'])

  scene.network.mend()
  await scene.until(() => one.received.includes('heard b'))
  t.strictSame(scene.received, ['a', 'c', 'b'])
})

t.test('messages from a deaf node arrive', async t => {
  const scene = new Scene(t)
  await scene.listen()
  const one = scene.dial('one')
  scene.send(one, 'a')
  await scene.until(() => one.received.includes('heard a'))

  scene.network.silence('listener', 'one')
  scene.send(one, 'b')
  await scene.until(() => scene.received.includes('b'))
  t.strictSame(one.received, ['heard a'])

  scene.network.mend()
  await scene.until(() => one.received.includes('heard b'))
  t.pass('and hears when the network is whole again')
})

t.test('a refused node is cut, and cannot dial again before the network is whole', async t => {
  const scene = new Scene(t)
  await scene.listen()
  const one = scene.dial('one')
  scene.send(one, 'a')
  await scene.until(() => one.received.includes('heard a'))

  scene.network.refuse('listener', 'one')
  await scene.until(() => one.received.includes('cut'))
  const second = scene.dial('one')
  await scene.until(() => second.received.includes('cut'))

  scene.network.mend()
  const third = scene.dial('one')
  scene.send(third, 'b')
  await scene.until(() => third.received.includes('heard b'))
  t.strictSame(scene.received, ['a', 'b'])
})

t.test('a stranger is cut together with any other node', async t => {
  const scene = new Scene(t)
  await scene.listen()
  const one = scene.dial('one')
  scene.send(one, 'a')
  await scene.until(() => one.received.includes('heard a'))

  scene.network.name('one', () => [])
  scene.network.silence('another', 'listener')
  await scene.until(() => one.received.includes('cut'))
  t.strictSame(scene.received, ['a'])
})
