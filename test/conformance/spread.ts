// One port in front of several brokers: connections go to them in turn, byte for byte.
//
// The runner opens a connection for each request, so requests go in turn. Bytes that are not HTTP arrive unchanged. One
// request is not passed on, the one that wipes (`wipeRequest`).

import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'

/** The request that is answered here: 204 if `onWipe` succeeds, else 500. */
export const wipeRequest = 'DELETE /everything'

/** Listens on a port of this machine until it is closed. */
export async function spread(port: number, ports: readonly number[], onWipe: () => Promise<void>): Promise<Server> {
  let turn = 0
  // Half-open, so that a client that has sent everything still gets the answer.
  const server = createServer({ allowHalfOpen: true }, socket => {
    socket.on('error', () => {})
    socket.once('data', first => {
      socket.pause()
      if (first.toString('latin1').startsWith(`${wipeRequest} `)) return answerWipe(socket, onWipe)
      pass(socket, first, ports[turn++ % ports.length]!)
    })
  })
  server.listen({ port, host: '127.0.0.1' })
  await once(server, 'listening')
  return server
}

/** Joins a client, whose first bytes have been read, and a broker. */
function pass(client: Socket, first: Buffer, port: number): void {
  const broker = connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true })
  broker.on('error', () => client.destroy())
  client.on('close', () => broker.destroy())
  broker.on('close', () => client.destroySoon())
  broker.write(first)
  client.pipe(broker).pipe(client)
}

function answerWipe(socket: Socket, onWipe: () => Promise<void>): void {
  const answer = (line: string) => socket.end(`HTTP/1.1 ${line}\r\nContent-Length: 0\r\n\r\n`)
  onWipe().then(
    () => answer('204 No Content'),
    error => {
      process.stderr.write(`not wiped: ${(error as Error).message}\n`)
      answer('500 Internal Server Error')
    },
  )
}
