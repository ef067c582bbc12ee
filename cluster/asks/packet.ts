// The bytes of a call's message and of its reply, as proto/calls.proto says.
//
// Not here: what is in them, and how they travel (grpc-calls.ts).

import { codecOf } from './grpc-codec.js'

/** What a packet adds to its message at most: a tag and a length. */
export const packetHeadBytesMax = 8

const packets = codecOf<{ readonly message: Uint8Array }>('calls.proto', 'Packet')

/** The bytes of a packet. */
export const encodePacket = (message: Uint8Array): Buffer => packets.encode({ message })

/** The message in a packet; undefined when the bytes are none. */
export const decodePacket = (bytes: Buffer): Buffer | undefined => packets.decode(bytes)?.message as Buffer | undefined
