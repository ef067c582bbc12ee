// Requests that arrive in two pieces, cut at every byte, as those of honest clients do on a slow network or with a long
// URL.
//
// Many cuts of a request are sent side by side, each on a connection of its own, so that a matrix takes some pauses and
// not one for each cut. The pause lets the server read the first piece alone. A cut fails when its answer differs from
// that to the whole request.
//
// Not here: the list of requests to cut (front-contract, cut-matrix), mutilated requests.

import { setTimeout as pause } from 'node:timers/promises'
import { within } from '../support/broker-process.js'
import type { Wire } from './wire.js'

/** Long enough that the server reads the two pieces apart, also on a busy machine. */
const betweenPiecesMs = 60
/**
 * Connections at a time: on a busy machine all TLS handshakes have to end within the time limit of a head, and both
 * sides share one event loop.
 */
const sideBySide = 64
/** A front that has not answered by then has not understood the request. */
const answerWaitMs = 20_000

const host = 'Host: localhost:1026\r\n'

/** One request of each shape that clients use. */
export const shapes: Readonly<Record<string, string>> = {
  query: `GET /v2/entities?type=Room&q=temperature>22&options=count HTTP/1.1\r\n${host}Accept: application/json\r\n\r\n`,
  body: `POST /v2/entities HTTP/1.1\r\n${host}Content-Type: application/json\r\nContent-Length: 12\r\n\r\n{"id":"R12"}`,
  chunks: `POST /v2/x HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n3\r\nfgh\r\n0\r\n\r\n`,
  nothing: `POST /log HTTP/1.1\r\n${host}Content-Length: 0\r\nAccept: */*\r\n\r\n`,
  removal: `DELETE /v2/entities/R1 HTTP/1.1\r\n${host}Ctx-Service: city\r\nCtx-ServicePath: /north\r\n\r\n`,
  foreign: `GET /v2/types HTTP/1.1\r\n${host}Ctx-ServicePath: \xff/north\x80\r\n\r\n`,
}

export interface Cut {
  /** Bytes of the first piece. */
  readonly at: number
  /** undefined: the connection closed without an answer. */
  readonly status: number | undefined
}

type Connect = () => Promise<Wire>

/**
 * The binary of uWebSockets.js answers 505 in two cases: it has read only the method and the space behind it; or the
 * first line has come without its last byte, from the space before `HTTP/1.1` on
 * (docs/operations/http-servers.md#requests-in-pieces).
 */
export function mayFailOnUws(request: string): readonly Cut[] {
  const urlEnd = request.indexOf(' HTTP/1.1')
  const places = [request.indexOf(' ') + 1, ...Array.from({ length: 10 }, (_, index) => urlEnd + 1 + index)]
  return places.map(at => ({ at, status: 505 }))
}

/** Every place at which a request can be cut. */
export const everyPlace = (request: string): readonly number[] =>
  Array.from({ length: request.length - 1 }, (_, index) => index + 1)

/**
 * The cuts whose answer differs from the answer to the whole request. `isLater`: the connection has served another
 * request before.
 */
export async function failedCuts(
  connect: Connect,
  request: string,
  isLater: boolean,
  places: readonly number[] = everyPlace(request),
): Promise<Cut[]> {
  const expected = await answerTo(connect, [request], isLater)
  const failed: Cut[] = []
  for (let from = 0; from < places.length; from += sideBySide)
    await Promise.all(
      places.slice(from, from + sideBySide).map(async at => {
        const pieces = [request.slice(0, at), request.slice(at)]
        // Without an answer, the time limit of the head may have expired among so many handshakes; most have ended by
        // the second try.
        const answer = (await answerTo(connect, pieces, isLater)) ?? (await answerTo(connect, pieces, isLater))
        const isSame = answer?.status === expected?.status && answer?.body === expected?.body
        if (!isSame) failed.push({ at, status: answer?.status })
      }),
    )
  return failed.sort((a, b) => a.at - b.at)
}

/**
 * The failures that are not allowed. An allowed failure need not happen: a busy machine may read both pieces at once.
 */
export const beyond = (failed: readonly Cut[], allowed: readonly Cut[]): readonly Cut[] =>
  failed.filter(({ at, status }) => !allowed.some(may => may.at === at && may.status === status))

/** The answer to a request that comes in pieces; undefined: there is none. */
export async function answerTo(connect: Connect, pieces: readonly string[], isLater: boolean) {
  const wire = await connect()
  try {
    if (isLater) {
      await wire.send(shapes.query!)
      await wire.answer()
    }
    for (const [index, piece] of pieces.entries()) {
      if (index > 0) await pause(betweenPiecesMs)
      await wire.send(piece)
    }
    const isHead = pieces.join('').startsWith('HEAD ')
    return await within(
      answerWaitMs,
      wire.answer(isHead).catch(() => undefined),
    )
  } finally {
    wire.leave()
  }
}
