// The port FetchKeys over sockets that the caller opens, so that its rules about destinations apply: the address that
// was checked is the one that is connected to. Redirects are not followed, so the answer is that of the URL itself.

import { type IncomingMessage, request } from 'node:http'
import { type OpenSocket, reasonOf } from '../deliver/sockets/sockets.js'
import type { FetchedAnswer, FetchKeys } from './issuer-keys.js'

/** Fetches over sockets that `openSocket` opens. */
export function fetchOver(openSocket: OpenSocket): FetchKeys {
  return (url, signal) =>
    new Promise<FetchedAnswer>((resolve, reject) => {
      const { protocol, hostname, port, host, pathname, search } = new URL(url)
      const defaultPort = protocol === 'https:' ? 443 : 80
      const endpoint = { protocol, host: hostname, port: port === '' ? defaultPort : Number(port) }
      // The request listens to its socket only from the next turn on, and a denied socket may fail before.
      const fail = (error: Error): void => reject(new Error(reasonOf(error), { cause: error }))
      // A socket with TLS speaks plain HTTP inside, as far as this request knows.
      const asking = request({
        createConnection: () => openSocket(endpoint).on('error', fail),
        path: pathname + search,
        headers: { Host: host, Accept: 'application/jwk-set+json, application/json', Connection: 'close' },
        signal,
      })
      asking.on('response', (answer: IncomingMessage) => resolve({ status: answer.statusCode ?? 0, body: answer }))
      asking.on('error', fail)
      asking.end()
    })
}
