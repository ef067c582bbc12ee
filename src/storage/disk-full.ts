// What an error says when the disk has no room.

/** Whether this error comes of a disk, or a share of it, without room. The stores tell it in words only. */
export function isDiskFull(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return /no space left|quota exceeded|ENOSPC|EDQUOT/i.test(error.message) || isDiskFull(error.cause)
}
