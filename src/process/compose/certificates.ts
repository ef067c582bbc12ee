// The files of certificates that a node's options name, by their use. All of them may be replaced while the node runs
// (docs/operations/certificates.md).
//
// Not here: detecting changes (certificate-watch.ts), the users of the files (front.ts, delivery.ts, join-cluster.ts).

import type { Config } from '../../config/config.js'
import { type CertificateFiles, CertificateWatch } from '../certificate-watch.js'
import type { Surroundings } from '../surroundings.js'

/** Reads the files now. The regular looks start with `begin`. */
export function openCertificates(config: Config, { clock, logger, place }: Surroundings): CertificateWatch {
  // Workers read the same files, and only one of them reports.
  const isReporter = place?.kind !== 'worker' || place.worker === 0
  const quiet = { info: (line: string) => logger.debug(line), warn: (line: string) => logger.debug(line) }
  return new CertificateWatch(certificateFilesOf(config), { clock, logger: isReporter ? logger : quiet })
}

/** The files to watch. */
export function certificateFilesOf({ http, notifications, cluster }: Config): readonly CertificateFiles[] {
  const found: CertificateFiles[] = []
  if (http.tls) {
    const { keyFile: key, certFile: cert, clients } = http.tls
    const files = { key, cert, ...(clients && { clientCa: clients.caFile }) }
    found.push({ use: 'https', files, shown: 'cert' })
  }
  if (cluster?.tls) {
    const { keyFile: clusterKey, certFile: clusterCert, caFile: clusterCa } = cluster.tls
    found.push({ use: 'cluster', files: { clusterKey, clusterCert, clusterCa }, shown: 'clusterCert' })
  }
  if (cluster?.logTls) {
    const { keyFile: shardLogKey, certFile: shardLogCert, caFile: shardLogCa } = cluster.logTls
    const pair = shardLogKey !== undefined && shardLogCert !== undefined ? { shardLogKey, shardLogCert } : {}
    found.push({
      use: 'log',
      files: { ...pair, shardLogCa },
      shown: shardLogCert === undefined ? undefined : 'shardLogCert',
    })
  }
  const { caFile: notifCaFile, insecure } = notifications.tls
  if (notifCaFile !== undefined && !insecure) found.push({ use: 'receivers', files: { notifCaFile }, shown: undefined })
  return found
}
