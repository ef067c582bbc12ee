// Access control of a node: the access file and its proofs. Without `-access` there is none, and any client may do
// everything, and nothing of this is loaded: what parses files and checks tokens is a fifth of the program's modules.
//
// The file is read before anything else is opened, so a node never serves without it. The node that a client is
// connected to decides; other workers and nodes trust it.

import { join } from 'node:path'
import { AccessControl } from '../../access/access-control.js'
import { AccessSource } from '../../access/access-source.js'
import { Authenticator } from '../../access/authenticator.js'
import { fetchOver } from '../../access/fetch-keys.js'
import type { Config } from '../../config/config.js'
import type { OpenSocket } from '../../deliver/sockets/sockets.js'
import type { Surroundings } from '../surroundings.js'
import { type NodeQuotas, openQuotas } from './quotas.js'

/** Where fetched keys of issuers are kept, in the data directory. */
const keysFolder = 'access-keys'

export interface NodeAccess {
  readonly control: AccessControl
  /** Resolves when the keys on disk were read. */
  ready(): Promise<void>
  stop(): void
}

/** The access file, and the quotas in it. */
export interface AccessInUse {
  readonly source: AccessSource
  readonly quotas: NodeQuotas
  /** Begins to identify clients. Keys of issuers are fetched over these sockets. */
  open(openSocket: OpenSocket): NodeAccess
}

/** Reads the access file. Throws an error with a sentence if it cannot be used. The regular looks start with `open`. */
export function openAccessFile(
  file: string,
  { store }: Pick<Config, 'store'>,
  { clock, logger, place, readAccess }: Pick<Surroundings, 'clock' | 'logger' | 'place' | 'readAccess'>,
): AccessInUse {
  // Workers read the same file, and only one of them reports.
  const isReporter = place?.kind !== 'worker' || place.worker === 0
  const quiet = { info: (line: string) => logger.debug(line), error: (line: string) => logger.debug(line) }
  const source = new AccessSource(file, { clock, logger: isReporter ? logger : quiet }, readAccess)
  const quotas = openQuotas(source, { clock, place })
  const open = (openSocket: OpenSocket): NodeAccess => {
    const keysDirectory = join(store.directory, keysFolder)
    const authenticator = new Authenticator({ source, clock, logger, fetch: fetchOver(openSocket), keysDirectory })
    source.begin()
    return {
      control: new AccessControl(source, authenticator, quotas.book, quotas.requests),
      ready: () => authenticator.ready(),
      stop: () => authenticator.stop(),
    }
  }
  return { source, quotas, open }
}
