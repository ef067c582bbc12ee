// Whether the native package of RocksDB can be had on this platform: it is optional, and has binaries for some platforms only.

/** Why RocksDB cannot be had on this platform; undefined if it can. */
export async function rocksMissing(): Promise<string | undefined> {
  try {
    await import('@nxtedition/rocksdb')
    return undefined
  } catch (error) {
    // The rest of the message lists folders searched.
    return (error instanceof Error ? error.message : String(error)).split('\n', 1)[0]
  }
}
