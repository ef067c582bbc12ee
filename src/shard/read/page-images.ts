// The encoded entities of a page, read a few at a time and no further than the bytes of an answer go (docs/operations/answers.md).
//
// Nobody knows how large an entity is before it is read. So each step reads some, and the reader stops behind the first one that does not fit: what
// was read are then the first ones of the page, all else is missing at the end.
//
// Not here: when the event loop has its turn between steps (lists).

/** Reads the images of `count` places of the page from `from` on; undefined for what has gone. */
export type ReadSome = (from: number, count: number) => readonly (Buffer | undefined)[]

/** Rows of any step: a row may have 16 MB, and most have less than 1 KB. The first step reads one, and each one twice as many while they are small. */
const stepRowsMax = 32
/** Bytes of a step that was large enough. */
const stepBytes = 128 * 1024

export class PageImages {
  /** Of the first places. */
  readonly images: (Buffer | undefined)[] = []
  /** Bytes of these. */
  bytes = 0
  private readonly count: number
  private readonly bytesMax: number
  private readonly read: ReadSome
  private readonly needed: number
  private next = 0
  private rows = 1

  /** `needed`: so many are read whatever they have. */
  constructor(count: number, bytesMax: number | undefined, read: ReadSome, needed = 0) {
    this.count = count
    this.bytesMax = bytesMax ?? Number.POSITIVE_INFINITY
    this.read = read
    this.needed = needed
  }

  /** Reads some more; false: all were read, or as many as fit. */
  step(): boolean {
    const { images, next, count } = this
    if (next >= count) return false
    const some = this.read(next, Math.min(this.rows, count - next))
    this.next += some.length
    const before = this.bytes
    for (const image of some) {
      const bytes = this.bytes + (image?.length ?? 0)
      if (bytes > this.bytesMax && images.length >= this.needed) {
        this.next = count
        return false
      }
      this.bytes = bytes
      images.push(image)
    }
    this.rows = this.bytes - before > stepBytes ? Math.ceil(this.rows / 2) : Math.min(2 * this.rows, stepRowsMax)
    return this.next < count
  }

  /** Reads all that fits at once. */
  all(): readonly (Buffer | undefined)[] {
    while (this.step());
    return this.images
  }
}
