// The bytes of a call's message and of its reply, as proto/calls.proto says.
//
// Not here: what is in them, and how they travel (grpc-calls.ts).

import { decode, nestedLength, putBytes, type Reader, tag } from './protobuf.js'

/** What a packet adds to its message at most: a tag and a length. */
export const packetHeadBytesMax = 8

const messageTag = tag(1, 'bytes')
const nothing = Buffer.alloc(0)

/** The bytes of a packet. */
export function encodePacket(message: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(nestedLength(message.length))
  putBytes(bytes, 0, messageTag, message)
  return bytes
}

/** The message in a packet; undefined when the bytes are none. */
export function decodePacket(bytes: Buffer): Buffer | undefined {
  return decode(bytes, readMessage)
}

function readMessage(reader: Reader): Buffer {
  let message: Buffer = nothing
  while (reader.at < reader.end) {
    const fieldTag = reader.varint()
    if (fieldTag === messageTag) message = reader.bytes()
    else reader.skip(fieldTag)
  }
  return message
}
