// Messages of proto/ as bytes, by @grpc/proto-loader: those that are too rare for code by hand.
//
// Reading trusts nothing: bytes that are no message of the type are undefined, and nothing is thrown. Unknown fields
// are skipped, missing ones are 0, '', false, null or []. Bytes that are read may share memory with the message they
// came in.
//
// The library is loaded with the first message (30 ms): a process that is no node of a cluster needs none of it.
//
// Not here: limits for reading (gossip-messages.ts, grpc-calls.ts), frames (frames.ts).

import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import type { MessageTypeDefinition } from '@grpc/proto-loader'

export interface Codec<T extends object> {
  encode(message: T): Buffer
  decode(bytes: Buffer): T | undefined
}

const require = createRequire(import.meta.url)

const folder = fileURLToPath(new URL('../../../proto/', import.meta.url))

/** A codec for `orrery.cluster.TYPE` of a file in proto/. Numbers of 64 bits are JavaScript's numbers. */
export function codecOf<T extends object>(file: string, type: string): Codec<T> {
  let loaded: MessageTypeDefinition<T, T> | undefined
  const load = (): MessageTypeDefinition<T, T> => {
    const { loadSync } = require('@grpc/proto-loader') as typeof import('@grpc/proto-loader')
    const types = loadSync(file, { includeDirs: [folder], longs: Number, defaults: true })
    return types[`orrery.cluster.${type}`] as unknown as MessageTypeDefinition<T, T>
  }
  return {
    encode: message => {
      loaded ??= load()
      return loaded.serialize(message)
    },
    decode: bytes => {
      loaded ??= load()
      try {
        return loaded.deserialize(bytes)
      } catch {
        return undefined
      }
    },
  }
}
