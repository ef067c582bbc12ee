// POST /admin/backup: the file of a backup, streamed to a client that knows the key (docs/operations/backup.md).
//
// The file has everything of all tenants, and secrets that no other answer shows. So there is no backup without a key
// that the operator has chosen. The address of a client proves nothing: a proxy on the same machine makes all of them
// local.
//
// Not here: what is in the file (broker/backup.ts), how a body without a known length is sent (front.ts).

import { createHash, timingSafeEqual } from 'node:crypto'
import type { BackupOperations } from '../broker/backup.js'
import { refusals } from '../domain/refusal.js'
import type { Reply } from './reply.js'
import type { Request } from './request.js'

const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest()

export class BackupHandlers {
  private readonly key: Buffer | undefined

  /** `key`: what clients have to know; undefined: nobody gets a backup. */
  constructor(
    private readonly operations: Pick<BackupOperations, 'begin'>,
    key: string | undefined,
  ) {
    this.key = key === undefined ? undefined : digestOf(key)
  }

  backUp({ authToken }: Pick<Request, 'authToken'>, reply: Reply): void {
    if (!this.key) return reply.refuse(refusals.backupOff)
    // Takes the same time for every key.
    if (!timingSafeEqual(digestOf(authToken), this.key)) return reply.refuse(refusals.backupKey)
    this.operations.begin().then(
      begun => (begun.ok ? reply.stream(begun.value, 'application/octet-stream') : reply.refuse(begun.refusal)),
      (error: Error) => reply.refuse(refusals.failure(error.message)),
    )
  }
}
