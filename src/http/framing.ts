// Where a request ends: heads that two servers in a row could read in two ways (docs/operations/http-servers.md#framing).
//
// A proxy that finds another end of a request than this server takes a part of one client's body for the next client's request. So a
// head that leaves room for two readings is refused, and its connection is closed before another byte of it is read.

/** Whether the headers, names (in any case) and values in turn, leave it open where the body ends or which host is meant. */
export function isAmbiguous(headers: readonly string[]): boolean {
  let hosts = 0
  let lengths = 0
  let encodings = 0
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at]!
    // Few other names have these lengths: most headers cost one comparison of numbers.
    if (name.length === 4 && name.toLowerCase() === 'host') hosts++
    else if (name.length === 14 && name.toLowerCase() === 'content-length') {
      if (!wholeNumber.test(headers[at + 1]!)) return true
      lengths++
    } else if (name.length === 17 && name.toLowerCase() === 'transfer-encoding') {
      if (headers[at + 1]!.toLowerCase() !== 'chunked') return true
      encodings++
    }
  }
  return hosts > 1 || lengths + encodings > 1
}

const wholeNumber = /^\d+$/

/** What such a request is answered with. */
export const ambiguousBody = '{"error":"BadRequest","description":"ambiguous length, transfer encoding or host"}'
