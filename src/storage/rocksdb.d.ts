// The part of @nxtedition/rocksdb 12 that we use; the package brings no types.
//
// The methods with an underscore are its synchronous and allocation-poor paths. They check nothing: on a closed
// database they crash the process, so rocks-store guards every call. `options` must be an object, and that of an
// iterator must name the encodings: an iterator without encodings reads uninitialized memory.

declare module '@nxtedition/rocksdb' {
  export interface NativeOptions {
    readonly [option: string]: string | number | boolean | Uint8Array | undefined
  }

  export interface NativeBatch {
    _put(key: Uint8Array, value: Uint8Array, options: NativeOptions): void
    _del(key: Uint8Array, options: NativeOptions): void
    _clear(): void
    _writeSync(options: { readonly sync?: boolean }): void
    close(): Promise<void>
  }

  /** Keys and values in turn: k, v, k, v; parts that were not requested are undefined. */
  export interface NativeRows {
    readonly rows: (Buffer | undefined)[]
    readonly finished: boolean
  }

  export interface NativeIterator {
    _nextvSync(rowsMax: number, options: NativeOptions): NativeRows
    _nextvAsync(rowsMax: number, options: NativeOptions): Promise<NativeRows>
    close(): Promise<void>
  }

  export class RocksLevel {
    constructor(directoryOrHandle: string | bigint, options?: NativeOptions)
    /** Another thread of this process attaches with `new RocksLevel(handle)`, and must never close the database. */
    readonly handle: bigint
    /** A property of RocksDB, as text; '' if there is none. */
    getProperty(property: string): string
    open(options?: NativeOptions): Promise<void>
    close(): Promise<void>
    batch(): NativeBatch
    iterator(options: NativeOptions): NativeIterator
    _getManySync(keys: readonly Uint8Array[], options: NativeOptions): (Buffer | undefined)[]
  }

  const rocksdb: { RocksLevel: typeof RocksLevel }
  export default rocksdb
}
