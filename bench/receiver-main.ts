// A receiver of notifications as a program of its own: answers each at once, and reports which have come, and when.
//
// Every notification has a value that no other update has (`ownValueHole`). So it is known which updates were received,
// how often, and when first, by the clock that all processes of a machine share. With -lanes it listens on this number
// of ports, which are as many receivers to a broker, and on one more that accepts connections and never reads.
//
// POST to any path is a notification. GET /counts, /arrivals and /lanes report; GET /forget begins anew.

import * as uWS from 'uWebSockets.js'
import { createServer } from 'node:net'
import { steadyMs } from './machine.js'
import type { Arrival, Counts, Lanes } from './receiver.js'

await receive()

async function receive(): Promise<void> {
  const numberOf = (name: string): number => {
    const at = process.argv.indexOf(`-${name}`)
    return at === -1 ? 0 : Number(process.argv[at + 1])
  }
  const notifications = new Set<string>()
  const arrivals = new Map<number, number>()
  let received = 0
  let lastMs = 0

  const note = (id: string, body: string): void => {
    received += 1
    notifications.add(id)
    const value = Number(/"value":(\d+)/.exec(body)?.[1])
    if (!Number.isFinite(value)) throw new Error(`not a notification of an update with a value: ${body}`)
    if (arrivals.has(value)) return
    arrivals.set(value, steadyMs())
    lastMs = performance.timeOrigin + performance.now()
  }

  const app = uWS.App()
  app.post('/*', (response, request) => {
    const id = request.getHeader('ctx-notification-id')
    let body = ''
    response.onAborted(() => {})
    response.onData((chunk, last) => {
      body += Buffer.from(chunk).toString('latin1')
      if (!last) return
      note(id, body)
      response.end()
    })
  })
  const route = (path: string, read: () => unknown): void => {
    app.get(path, response => {
      response.end(JSON.stringify(read()))
    })
  }
  route('/counts', (): Counts => ({ received, notifications: notifications.size, updates: arrivals.size, lastMs }))
  route('/arrivals', (): readonly Arrival[] => [...arrivals])
  route('/forget', () => {
    notifications.clear()
    arrivals.clear()
    received = 0
    return true
  })

  const listen = (port: number): Promise<number> =>
    new Promise((found, failed) => {
      app.listen('127.0.0.1', port, socket => {
        if (socket) found(uWS.us_socket_local_port(socket))
        else failed(new Error('cannot listen'))
      })
    })
  const live: number[] = []
  for (let lane = 0; lane < numberOf('lanes'); lane++) live.push(await listen(0))
  // This program never reads from these sockets: sent bytes stay in the buffers of the system.
  const dead = createServer({ pauseOnConnect: true }, socket => socket.on('error', () => {}))
  await new Promise<void>(listening => dead.listen(0, '127.0.0.1', listening))
  route('/lanes', (): Lanes => ({ live, dead: (dead.address() as { port: number }).port }))
  await listen(numberOf('port'))
  process.once('SIGTERM', () => process.exit(0))
  console.log('ready')
}
