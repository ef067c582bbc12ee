// Frames of WebSocket as bytes (RFC 6455, 5.2), for tests that send exactly the frames that they name.

import { createHash, randomBytes } from 'node:crypto'

export const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const

export interface FrameForm {
  readonly opcode: number
  readonly payload: string | Uint8Array
  /** By default it is the last frame of its message. */
  readonly isLast?: boolean
  /** A frame of a client must be masked. */
  readonly isMasked?: boolean
  /** The reserved bits, 0 to 7. */
  readonly reserved?: number
  /** The announced length; by default that of the payload. */
  readonly length?: number
  /** Four bytes; by default random ones. */
  readonly mask?: Uint8Array
}

/** The bytes of a frame of a client. */
export function frame({ opcode, payload, ...form }: FrameForm): Buffer {
  const { isLast = true, isMasked = true, reserved = 0 } = form
  const bytes = Buffer.from(payload)
  const { length = bytes.length } = form
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10)
  head[0] = (isLast ? 0x80 : 0) | (reserved << 4) | opcode
  head[1] = (isMasked ? 0x80 : 0) | (length < 126 ? length : length < 65_536 ? 126 : 127)
  if (head.length === 4) head.writeUInt16BE(length, 2)
  if (head.length === 10) head.writeBigUInt64BE(BigInt(length), 2)
  if (!isMasked) return Buffer.concat([head, bytes])
  const { mask = randomBytes(4) } = form
  return Buffer.concat([head, mask, bytes.map((byte, at) => byte ^ mask[at % 4]!)])
}

export interface ReadFrame {
  readonly opcode: number
  readonly isLast: boolean
  readonly payload: Buffer
}

/** The whole frames at the beginning of bytes that a server has sent. */
export function framesOf(bytes: Buffer): readonly ReadFrame[] {
  const frames: ReadFrame[] = []
  for (let at = 0; at + 2 <= bytes.length; ) {
    const short = bytes[at + 1]! & 0x7f
    const begin = at + (short === 127 ? 10 : short === 126 ? 4 : 2)
    if (begin > bytes.length) break
    const length =
      short === 127 ? Number(bytes.readBigUInt64BE(at + 2)) : short === 126 ? bytes.readUInt16BE(at + 2) : short
    if (begin + length > bytes.length) break
    const payload = bytes.subarray(begin, begin + length)
    frames.push({ opcode: bytes[at]! & 0x0f, isLast: (bytes[at]! & 0x80) !== 0, payload })
    at = begin + length
  }
  return frames
}

/** A key of a handshake, and the answer of the server to it. */
export const handshakeKey = 'dGhlIHNhbXBsZSBub25jZQ=='
export const handshakeAccept = createHash('sha1')
  .update(`${handshakeKey}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
  .digest('base64')

/** The headers of a handshake. */
export const handshake: readonly string[] = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  `Sec-WebSocket-Key: ${handshakeKey}`,
]
