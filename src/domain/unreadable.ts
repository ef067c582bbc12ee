// Bytes of another process, of another build or of a damaged file, that cannot be read.
//
// The reader refuses the bytes, applies nothing of them, and goes on. A stored row that has to be understood ends the
// start.

export class Unreadable extends Error {
  override readonly name = 'Unreadable'
  readonly code = 'unreadable'
}

/** Fails unless something has the version that this release reads. `what` says which thing, and where it is. */
export function assertVersion(what: string, found: unknown, read: number): void {
  if (found !== read)
    throw new Unreadable(
      `${what} has version ${String(found)}, and this release reads version ${read}: start the release that wrote it`,
    )
}
