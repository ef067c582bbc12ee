// API keys: their form, their hash, and the entry of the access file that fits one (docs/interface/access.md#keys).
//
// A key has 256 random bits, so its plain SHA-256 is safe to store. The file's map is searched by the hash of the
// shown key. The time of that search reveals something about this hash at most, and no client can choose a hash. The
// hash that was found is then compared as a whole, in constant time.

import { hash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { AccessFile } from '../domain/access/access-file.js'
import type { AccessKey } from '../domain/access/proofs-parser.js'

/** Every key begins with it, and no token does. */
export const keyPrefix = 'ok_'

const keyForm = /^ok_[A-Za-z0-9_-]{43}$/

/** Whether a text has the form of a key. */
export const isKeyForm = (text: string): boolean => text.length === keyLength && keyForm.test(text)

const keyLength = keyPrefix.length + 43

/** A new key. */
export const newKey = (): string => keyPrefix + randomBytes(32).toString('base64url')

/** 64 lower-case hexadecimal digits. */
export const keyHash = (key: string): string => hash('sha256', key, 'hex')

const hashLength = 64
const shownHash = Buffer.alloc(hashLength)
const storedHash = Buffer.alloc(hashLength)

// [hot] Once per request with a key. Most of its time goes into SHA-256 (authenticator.ts has numbers).
/** The entry of a key in the file, also when it has expired; undefined: there is none. */
export function keyIn({ keys }: Pick<AccessFile, 'keys'>, key: string): AccessKey | undefined {
  const digest = keyHash(key)
  const found = keys.get(digest)
  if (!found) return undefined
  shownHash.write(digest, 'latin1')
  storedHash.write(found.sha256, 'latin1')
  return timingSafeEqual(shownHash, storedHash) ? found : undefined
}
