// undici's clients as senders want them: connecting, TLS, `Host` and deadlines are ours, whatever undici takes the other end for.
//
// It loads undici, which takes 0.1 s: whoever imports it is loaded when there is something to send.

import type { Socket } from 'node:net'
import { Client } from 'undici'
import { connectorTo } from './connector.js'
import type { Endpoint, OpenSocket } from './sockets.js'

/** An idle connection is closed after this time, or when the other end has said that it will close it, up to the second one. */
const idleMs = 4_000
const idleMsMax = 60_000

/** A client for one connection at a time; `onSocket` is given each socket at once, while it is still connecting. */
export const openClient = (endpoint: Endpoint, openSocket: OpenSocket, onSocket: (socket: Socket) => void): Client =>
  new Client('http://peer', {
    connect: connectorTo(endpoint, openSocket, onSocket),
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: idleMs,
    keepAliveMaxTimeout: idleMsMax,
  })
