// The bytes of protocol buffers, written and read by hand for frames: numbers, doubles, bytes, and messages in messages.
//
// Reading trusts nothing: what is cut off, too long, not finite or nested wrongly is no message. Bytes that are read are part of the
// message they came in, not copies. Fields that are not known are skipped.
//
// Not here: which fields a message has, and why by hand (frames.ts); messages that a library writes and reads (grpc-codec.ts).

/** Bytes of a name, an incarnation, or another short text. */
export const nameLengthMax = 256

const wireTypes = { varint: 0, double: 1, bytes: 2, float: 5 } as const

/** What stands before a field. */
export const tag = (field: number, type: keyof typeof wireTypes): number => (field << 3) | wireTypes[type]

/** Bytes of a double with its tag. */
export const doubleLength = 9

/** A field of so many bytes with its tag and its length. */
export function nestedLength(length: number): number {
  return 1 + varintLength(length) + length
}

export function varintLength(value: number): number {
  let length = 1
  for (let limit = 128; value >= limit; limit *= 128) length++
  return length
}

export function putVarint(bytes: Buffer, begin: number, fieldTag: number, value: number): number {
  let at = begin
  bytes[at++] = fieldTag
  let left = value
  while (left >= 0x80) {
    bytes[at++] = (left % 0x80) | 0x80
    left = Math.floor(left / 0x80)
  }
  bytes[at++] = left
  return at
}

export function putDouble(bytes: Buffer, at: number, fieldTag: number, value: number): number {
  bytes[at] = fieldTag
  return bytes.writeDoubleLE(value, at + 1)
}

export function putBytes(bytes: Buffer, begin: number, fieldTag: number, value: Uint8Array): number {
  const at = putVarint(bytes, begin, fieldTag, value.length)
  bytes.set(value, at)
  return at + value.length
}

/** What `read` makes of these bytes; undefined when they are no message. */
export function decode<T>(bytes: Buffer, read: (reader: Reader) => T): T | undefined {
  try {
    return read(new Reader(bytes))
  } catch (error) {
    if (error instanceof NoMessage) return undefined
    throw error
  }
}

/** Unwinds a reader; never leaves `decode`. */
export class NoMessage extends Error {}

/** A place in a message, and the end of what may be read: of the message, or of the field that was entered. */
export class Reader {
  at = 0
  end: number
  private readonly message: Buffer

  constructor(message: Buffer) {
    this.message = message
    this.end = message.length
  }

  varint(): number {
    let value = 0
    let unit = 1
    for (;;) {
      if (this.at >= this.end) throw new NoMessage()
      const byte = this.message[this.at++]!
      value += (byte & 0x7f) * unit
      if (byte < 0x80) break
      unit *= 0x80
      if (unit > 2 ** 49) throw new NoMessage()
    }
    if (value > Number.MAX_SAFE_INTEGER) throw new NoMessage()
    return value
  }

  double(): number {
    const value = this.message.readDoubleLE(this.take(8))
    if (!Number.isFinite(value)) throw new NoMessage()
    return value
  }

  bytes(): Buffer {
    const length = this.varint()
    const begin = this.take(length)
    return this.message.subarray(begin, begin + length)
  }

  /** A name, or another short text. */
  text(bytesMax = nameLengthMax): string {
    const bytes = this.bytes()
    if (bytes.length > bytesMax) throw new NoMessage()
    return bytes.toString()
  }

  /** Passes over a field that is not known. */
  skip(fieldTag: number): void {
    const type = fieldTag % 8
    if (fieldTag < 8) throw new NoMessage()
    if (type === wireTypes.varint) this.varint()
    else if (type === wireTypes.double) this.take(8)
    else if (type === wireTypes.bytes) this.bytes()
    else if (type === wireTypes.float) this.take(4)
    else throw new NoMessage()
  }

  /** Goes into a nested message; gives what `leave` wants back. */
  enter(): number {
    const length = this.varint()
    const begin = this.take(length)
    const outer = this.end
    this.at = begin
    this.end = begin + length
    return outer
  }

  leave(outer: number): void {
    this.end = outer
  }

  /** Goes on by so many bytes; gives where they begin. */
  private take(length: number): number {
    const begin = this.at
    if (length > this.end - begin) throw new NoMessage()
    this.at = begin + length
    return begin
  }
}
