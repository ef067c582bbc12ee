// Reads the files that the options of a cluster name: certificates of the nodes, and the credentials for the engine of
// the log. A failure names the option.
//
// Not here: the use of their contents (cluster-logs.ts, join-cluster.ts).

import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
// Not imported from the index of the library, which loads gRPC: `orrery config check` needs none of it.
import type { Certificates } from '../../cluster/asks/grpc-tls.js'
import { type EtcdAddress, type EtcdTls, parseEtcdAddress } from '../../cluster/logs/etcd-options.js'
import type { ClusterConfig, LogTls } from '../config/config.js'
import type { OptionName } from '../config/options.js'
import { certificatesOfText } from '../http/pem.js'
import type { CertificateContents } from './certificate-watch.js'

/** Reads the files of the nodes' certificates. */
export const certificatesOf = ({ certFile, keyFile, caFile }: NonNullable<ClusterConfig['tls']>): Certificates => ({
  cert: readOf('clusterCert', certFile).toString(),
  key: readOf('clusterKey', keyFile).toString(),
  ca: readOf('clusterCa', caFile).toString(),
})

/** The same from files that were read already. */
export const nodeCertificatesIn = ({ clusterCert, clusterKey, clusterCa }: CertificateContents): Certificates => ({
  cert: String(clusterCert),
  key: String(clusterKey),
  ca: String(clusterCa),
})

/** The credentials for the log engine, from files that were read already. Throws a sentence when they are unusable. */
export function logTlsIn({ shardLogCert: cert, shardLogKey: key, shardLogCa: ca }: CertificateContents): EtcdTls {
  certificatesOfText(String(ca), '-shardLogCa: the file')
  const tls = { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) }
  assertPair(tls)
  return tls
}

/** Throws an error with a sentence when the key belongs to another certificate. */
export function assertPair({ cert, key }: EtcdTls): void {
  try {
    if (cert && key) createSecureContext({ cert, key })
  } catch (error) {
    throw new Error(`-shardLogCert and -shardLogKey: ${(error as Error).message}`)
  }
}

/**
 * The address of the engine of the log, this node's user there, and its credentials; `tls` undefined: a plain
 * connection.
 */
export interface LogAccess {
  readonly address: EtcdAddress
  readonly tls: EtcdTls | undefined
}

/**
 * The access to each engine, in their order. `tls`: the certificates for other nodes; also used for the engines if the
 * options set no others.
 */
export const logAccessesOf = (config: ClusterConfig, tls: Certificates | undefined): readonly LogAccess[] =>
  config.logs.map(log => logAccessOf(log, config, tls))

function logAccessOf(log: string, config: ClusterConfig, tls: Certificates | undefined): LogAccess {
  const address = parseEtcdAddress(log)
  if (typeof address === 'string') throw new Error(`-shardLog: ${address}`)
  const { logUser: user, logTls } = config
  const known = user ? { ...address, user: user.name, password: passwordIn(user.passwordFile) } : address
  if (!address.secure) return { address: known, tls: undefined }
  return { address: known, tls: logTls ? filesOf(logTls) : tls && buffersOf(tls) }
}

/** The content of a file without the line break at its end. */
function passwordIn(file: string): string {
  const password = readOf('shardLogPasswordFile', file)
    .toString()
    .replace(/\r?\n$/, '')
  if (password === '') throw new Error(`-shardLogPasswordFile: ${file} is empty`)
  return password
}

const filesOf = ({ caFile, certFile, keyFile }: LogTls) => ({
  ca: readOf('shardLogCa', caFile),
  ...(certFile !== undefined && { cert: readOf('shardLogCert', certFile) }),
  ...(keyFile !== undefined && { key: readOf('shardLogKey', keyFile) }),
})

function readOf(option: OptionName, file: string): Buffer {
  try {
    return readFileSync(file)
  } catch (error) {
    throw new Error(`-${option}: ${(error as Error).message}`)
  }
}

export const buffersOf = ({ cert, key, ca }: Certificates) => ({
  cert: Buffer.from(cert),
  key: Buffer.from(key),
  ca: Buffer.from(ca),
})
