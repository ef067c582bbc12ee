// How undici's clients get their sockets: connecting and TLS are ours (sockets.ts), whatever undici takes the other end for.

import type { Socket } from 'node:net'
import type { buildConnector } from 'undici'
import { connectedEvent, type Endpoint, type OpenSocket } from './sockets.js'

/** Opens a socket whenever the client wants one; `onSocket` is given it at once, while it is still connecting. */
export const connectorTo =
  (endpoint: Endpoint, openSocket: OpenSocket, onSocket: (socket: Socket) => void): buildConnector.connector =>
  (_options, callback) => {
    const socket = openSocket(endpoint)
    onSocket(socket)
    // As a cause: undici would try some of them again for ever.
    const onError = (cause: Error): void => callback(new Error('not connected', { cause }), null)
    socket.once('error', onError)
    socket.once(connectedEvent(endpoint), () => {
      // Whoever was given the socket has given it up, and says why in its error.
      if (socket.destroyed) return
      socket.off('error', onError)
      callback(null, socket)
    })
  }
