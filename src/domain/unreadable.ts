// Bytes that cannot be read: of another process, another build or a damaged file.
//
// The reader refuses the bytes, applies nothing of them, and continues. If a required stored row is unreadable, the
// start fails.

export class Unreadable extends Error {
  override readonly name = 'Unreadable'
  readonly code = 'unreadable'
}

/** Fails unless something has the version that this release reads. `what` names the thing and its place. */
export function assertVersion(what: string, found: unknown, read: number): void {
  if (found !== read)
    throw new Unreadable(
      `${what} has version ${String(found)}, and this release reads version ${read}: start the release that wrote it`,
    )
}
