// The files that the options of a cluster name, read: certificates of the nodes, and what this one shows the engine of
// the log. A failure names the option.
//
// Not here: what is made of them (cluster-log.ts, join-cluster.ts).

import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
// Not by the index of the library, which loads gRPC: a start that is looked at needs none of it.
import type { Certificates } from '../../cluster/asks/grpc-tls.js'
import { type EtcdAddress, type EtcdTls, parseEtcdAddress } from '../../cluster/logs/etcd-options.js'
import type { ClusterConfig, LogTls } from '../config/config.js'
import type { OptionName } from '../config/options.js'
import type { CertificateContents } from './certificate-watch.js'
import { certificatesOfText } from './pem.js'

/** What the files of the nodes' certificates say. */
export const certificatesOf = ({ certFile, keyFile, caFile }: NonNullable<ClusterConfig['tls']>): Certificates => ({
  cert: readOf('clusterCert', certFile).toString(),
  key: readOf('clusterKey', keyFile).toString(),
  ca: readOf('clusterCa', caFile).toString(),
})

/** The same of files that were read already. */
export const nodeCertificatesIn = ({ clusterCert, clusterKey, clusterCa }: CertificateContents): Certificates => ({
  cert: String(clusterCert),
  key: String(clusterKey),
  ca: String(clusterCa),
})

/** What the engine of the log is shown, of files that were read already. Fails with a sentence when it is of no use. */
export function logTlsIn({ shardLogCert: cert, shardLogKey: key, shardLogCa: ca }: CertificateContents): EtcdTls {
  certificatesOfText(String(ca), '-shardLogCa: the file')
  const tls = { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) }
  assertPair(tls)
  return tls
}

/** Fails with a sentence when the key is that of another certificate. */
export function assertPair({ cert, key }: EtcdTls): void {
  try {
    if (cert && key) createSecureContext({ cert, key })
  } catch (error) {
    throw new Error(`-shardLogCert and -shardLogKey: ${(error as Error).message}`)
  }
}

/**
 * Where the engine of the log is, as whom this node speaks to it, and what it shows; undefined: nothing, it is plain.
 */
export interface LogAccess {
  readonly address: EtcdAddress
  readonly tls: EtcdTls | undefined
}

/** `tls`: what this side shows other nodes, and the engine as well where nothing else is said. */
export function logAccessOf(config: ClusterConfig, tls: Certificates | undefined): LogAccess {
  const address = parseEtcdAddress(config.log)
  if (typeof address === 'string') throw new Error(`-shardLog: ${address}`)
  const { logUser: user, logTls } = config
  const known = user ? { ...address, user: user.name, password: passwordIn(user.passwordFile) } : address
  if (!address.secure) return { address: known, tls: undefined }
  return { address: known, tls: logTls ? filesOf(logTls) : tls && buffersOf(tls) }
}

/** What a file has but for the line break at its end. */
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
