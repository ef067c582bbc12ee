// Opens the engines that keep a cluster's logs, as the configuration names them, and checks their versions.
//
// Not here: the entries that describe the cluster (cluster-marks.ts), files of the configuration (cluster-files.ts).

import { type Certificates, type EtcdLog, faultOfEtcd, openEtcdLog } from '../../cluster/index.js'
import { systemClock } from '../clock.js'
import type { ClusterConfig } from '../config/config.js'
import type { Logger } from '../ports.js'
import { logAccessesOf } from './cluster-files.js'

/**
 * Opens the logs of the configured cluster, in their order. `tls`: the certificates for other nodes; also used for the
 * engines if the options set no others. Throws an error with a sentence for the operator when a file cannot be read.
 */
export const openLogsOf = (config: ClusterConfig, tls: Certificates | undefined): readonly EtcdLog[] =>
  logAccessesOf(config, tls).map(({ address, tls: shown }) =>
    openEtcdLog(address, 'orrery', systemClock, shown ? { tls: shown } : {}),
  )

/**
 * Checks the versions of the members of the engines that answer. Returns whether every engine did. Rejects with a
 * sentence for the operator when a version is known to lose data, unless the options accept that.
 */
export async function checkEngines(
  logs: readonly Pick<EtcdLog, 'versions'>[],
  { isLogUnsafe }: Pick<ClusterConfig, 'isLogUnsafe'>,
  logger: Pick<Logger, 'warn'>,
): Promise<boolean> {
  const all = await Promise.all(logs.map(log => log.versions()))
  for (const [member, version] of all.flatMap(versions => [...versions])) {
    const fault = faultOfEtcd(version)
    if (fault === undefined) continue
    const words = `the log engine (-shardLog) at ${member} is etcd ${version}: ${fault}`
    if (!isLogUnsafe)
      throw new Error(
        `${words}. Upgrade it (docs/operations/cluster.md#versions-of-etcd), or accept the risk with -shardLogUnsafe`,
      )
    logger.warn(`cluster: ${words}. -shardLogUnsafe accepts that`)
  }
  return all.every(versions => versions.size > 0)
}
