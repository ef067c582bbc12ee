// POST /admin/backup: streams the file of a backup to a client that has the key (docs/operations/backup.md).
//
// The file has all data of all tenants, and secrets that no other answer shows. So there is no backup without a key
// that the operator has chosen, or a principal whose rules allow it. The address of a client proves nothing: behind a
// proxy on the same machine all clients look local.
//
// Not here: the content of the file (broker/backup.ts), sending a body without a known length (front.ts).

import { createHash, timingSafeEqual } from 'node:crypto'
import type { BackupOperations } from '../broker/backup.js'
import { type Refusal, refusals } from '../domain/refusal.js'
import type { Reply } from './reply.js'
import type { Request } from './request.js'

const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest()

export class BackupHandlers {
  private readonly key: Buffer | undefined

  /** `key`: the key that clients must send; undefined: no client gets a backup. */
  constructor(
    private readonly operations: Pick<BackupOperations, 'begin'>,
    key: string | undefined,
  ) {
    this.key = key === undefined ? undefined : digestOf(key)
  }

  backUp({ authToken, permit }: Pick<Request, 'authToken' | 'permit'>, reply: Reply): void {
    const refusal = permit ? undefined : this.refuseKey(authToken)
    if (refusal) return reply.refuse(refusal)
    this.operations.begin().then(
      begun => (begun.ok ? reply.stream(begun.value, 'application/octet-stream') : reply.refuse(begun.refusal)),
      (error: Error) => reply.refuse(refusals.failure(error.message)),
    )
  }

  private refuseKey(shown: string): Refusal | undefined {
    if (!this.key) return refusals.backupOff
    // The comparison takes the same time for every key.
    return timingSafeEqual(digestOf(shown), this.key) ? undefined : refusals.backupKey
  }
}
