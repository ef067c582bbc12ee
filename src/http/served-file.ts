// A file that is served as it is: read once, compressed at the build.
//
// Not here: which files there are (console.ts), the choice of a form (reply.ts).

/** A file in the forms in which it is sent. */
export interface ServedFile {
  readonly plain: Uint8Array
  readonly br: Uint8Array | undefined
  readonly gzip: Uint8Array | undefined
  /** An entity tag, with its quotes. */
  readonly tag: string
  /** Names and values in turn. */
  readonly headers: readonly string[]
}
