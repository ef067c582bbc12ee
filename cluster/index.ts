// The public interface of the cluster library: asks between nodes, and nodes of a cluster. README.md lists its
// promises.

import { barePath } from './asks/address.js'
import { type Asks, openAsks } from './asks/asks.js'
import { type GrpcTransportOptions, grpcTransport } from './asks/grpc-transport.js'
import { socketTransport } from './asks/socket-transport.js'
import type { AskOptions } from './options.js'
import type { AskHost, ClusterClock, Peer, Transport } from './ports.js'

export type { Asks, ChangeListener } from './asks/asks.js'
export { type Certificates, Identity } from './asks/grpc-tls.js'
export type { GrpcTransportOptions as TransportOptions } from './asks/grpc-transport.js'
export type { ClockState } from './clocks/clock-state.js'
export { type ClusterNode, type ClusterSetup, startClusterNode } from './cluster-node.js'
export { isHere } from './gossip/member.js'
export { logIndexOf, oneLog } from './logs/divided-log.js'
export { type EtcdLog, openEtcdLog } from './logs/etcd-log.js'
export { type EtcdTls, parseEtcdAddress } from './logs/etcd-options.js'
export { faultOfEtcd } from './logs/etcd-versions.js'
export type { ShardLog, Unknown } from './logs/shard-log.js'
export { type AskOptions, askOptionsDefault } from './options.js'
export type { AskHost, AskResult as Outcome, ClusterClock, OnOutcome, Peer } from './ports.js'
export type { BegunExchange } from './replication/balancer.js'
export { assertFoundable, foundLogs } from './replication/founding.js'
export { type CopyChoice, chooseCopy, isSamePosition } from './replication/furthest.js'
export type { Unhealthy } from './replication/health.js'
export { findBehind, findLiving } from './replication/leaving.js'
export type { ClusterMark } from './replication/log-check.js'

/**
 * Starts to listen as `self` and to talk with the other nodes. Each life of a process has another `incarnation`. Fails
 * with a sentence for the operator when it cannot listen on the address. The directory of a unix socket must exist, for
 * this user only.
 */
export async function startAsks(
  self: Peer,
  incarnation: string,
  peers: readonly Peer[],
  host: AskHost,
  clock: ClusterClock,
  options: Partial<AskOptions> = {},
  transport: GrpcTransportOptions = {},
): Promise<Asks> {
  return openAsks(transportOf(transport), self, incarnation, peers, host, clock, options)
}

/** gRPC, and bare sockets where an address asks for them. With TLS, all nodes use gRPC. */
function transportOf(options: GrpcTransportOptions): Transport {
  const grpc = grpcTransport(options)
  if (options.tls) return grpc
  const at = (address: string): Transport => (barePath(address) === undefined ? grpc : socketTransport)
  return {
    listen: (address, guests) => at(address).listen(address, guests),
    dial: (address, listener) => at(address).dial(address, listener),
    call: (address, message, waitMs, onReply) => at(address).call(address, message, waitMs, onReply),
  }
}
