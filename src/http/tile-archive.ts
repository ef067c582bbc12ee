// The archive of map tiles of `-consoleTiles FILE.pmtiles`, served by ranges (docs/operations/console.md#streets).
//
// A browser reads a few kilobytes at a time out of a file that may have gigabytes. Each part that is under way counts in
// the budget of answers before it is read, so clients cannot make the process hold more than that.
//
// Not here: opening and checking the file (process/tile-file.ts).

import { refusals } from '../domain/refusal.js'
import type { Reply } from './reply.js'

/** A file of which parts are read. */
export interface TileArchive {
  /** Changes with the content of the file. */
  readonly name: string
  readonly bytes: number
  read(from: number, length: number): Promise<Uint8Array>
}

/** The longest part. A directory of an archive or a tile has some hundred kilobytes at most. */
export const rangeBytesMax = 2 * 1024 * 1024

const headers = [
  ...['Content-Type', 'application/octet-stream'],
  ...['Cache-Control', 'public, max-age=31536000, immutable'],
  ...['X-Content-Type-Options', 'nosniff'],
] as const

/** Answers with the part that the request names. */
export function replyWithRange({ name, bytes, read }: TileArchive, reply: Reply): void {
  const range = rangeIn(reply.askedRange, bytes)
  if (!range) return reply.refuse(refusals.tileRange(rangeBytesMax))
  const [from, length] = range
  const hold = reply.answers.open()
  if (!hold.take(length)) return reply.refuse(refusals.answersTooMany)
  read(from, length).then(
    part => {
      hold.release()
      reply.part(part, [
        'Content-Range',
        `bytes ${from}-${from + length - 1}/${bytes}`,
        'ETag',
        `"${name}"`,
        ...headers,
      ])
    },
    (error: Error) => {
      hold.release()
      reply.refuse(refusals.failure(error.message))
    },
  )
}

/** The beginning and the length; undefined: it is none, or not one part within the limits. */
function rangeIn(header: string, bytes: number): readonly [from: number, length: number] | undefined {
  const [, first, last] = /^bytes=(\d{1,15})-(\d{1,15})$/.exec(header) ?? []
  if (first === undefined || last === undefined) return undefined
  const from = Number(first)
  const length = Math.min(Number(last), bytes - 1) - from + 1
  return length > 0 && length <= rangeBytesMax ? [from, length] : undefined
}
