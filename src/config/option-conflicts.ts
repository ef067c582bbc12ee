// Options that do not fit together: contradictions refuse a start, and options without an effect are a warning
// (docs/operations/options.md).
//
// Not here: values that are bad by themselves (kinds.ts), the configuration (config.ts).

import type { Given } from './command-line.js'
import * as kinds from './kinds.js'
import { type OptionName, options, type Values } from './options.js'

/** Faults of combinations of values that are good one by one. A value that is bad already is not reported again. */
export function contradictions(values: Values, given: ReadonlyMap<OptionName, Given>): string[] {
  const lines: string[] = []
  const where = (name: OptionName): string => given.get(name)?.where ?? `-${name}`
  const isBad = (name: OptionName): boolean => {
    const one = given.get(name)
    return one !== undefined && options[name].kind.read(one.text) === undefined
  }

  if (values.ipv4 && values.ipv6) {
    lines.push(`${where('ipv4')}: excludes ${where('ipv6')}; without both, both families are served`)
  }
  if (values.tlsMin === '1.3' && values.httpServer === 'uws')
    lines.push(`${where('tlsMin')}: not together with -httpServer uws, which cannot leave out TLS 1.2`)
  for (const [at, name] of ports.entries())
    for (const earlier of ports.slice(0, at))
      if (values[name] !== undefined && values[name] === values[earlier] && !isBad(earlier))
        lines.push(`${where(name)}: is the port of -${earlier} already; it needs one of its own`)
  // Without them a port that is meant to be closed to others would be open.
  if (values.clientCa !== undefined && !values.https) lines.push(`${where('clientCa')}: needs -https`)
  if (given.has('clientAuth') && values.clientCa === undefined && !isBad('clientCa'))
    lines.push(`${where('clientAuth')}: needs -clientCa`)
  if (values.clientCa !== undefined && values.httpServer === 'uws')
    lines.push(`${where('clientCa')}: not together with -httpServer uws, which cannot require certificates of clients`)
  if (values.https) {
    for (const name of ['key', 'cert'] as const) {
      if (values[name] === undefined && !isBad(name)) lines.push(`${where('https')}: needs -${name}`)
    }
  }
  if (values.notifFlowControl && !values.notificationMode.startsWith('threadpool') && !isBad('notificationMode')) {
    lines.push(`${where('notifFlowControl')}: needs -notificationMode threadpool`)
  }
  if (values.t !== undefined && values.logLevel !== 'DEBUG' && !isBad('logLevel')) {
    lines.push(`${where('t')}: needs -logLevel DEBUG`)
  }
  if (values.consoleTiles !== undefined && values.noConsole && !isBad('consoleTiles'))
    lines.push(`${where('consoleTiles')}: not together with -noConsole`)
  if (values.auditRequired && values.auditLog === undefined && !isBad('auditLog'))
    lines.push(`${where('auditRequired')}: needs -auditLog`)
  // A callback may arrive at another process than the one that its reader is connected to.
  if (values.ngsiProxy && values.workers !== 1 && !isBad('workers'))
    lines.push(`${where('ngsiProxy')}: not together with -workers; an event source is known in one process`)
  if (values.ngsiProxy && values.clusterListen !== undefined)
    lines.push(`${where('ngsiProxy')}: not together with -clusterListen; an event source is known in one process`)
  return [...lines, ...clusterConflicts(values, where, isBad)]
}

/** Each needs a port of its own. */
const ports = ['port', 'http1Port', 'livePort', 'adminPort'] as const

/** Options that a node of a cluster needs, and options that it excludes. */
function clusterConflicts(
  values: Values,
  where: (name: OptionName) => string,
  isBad: (name: OptionName) => boolean,
): string[] {
  const lines: string[] = []
  const needs = (name: OptionName, needed: readonly OptionName[]): void => {
    if (values[name] === undefined || values[name] === '') return
    for (const other of needed)
      if (values[other] === undefined && !isBad(other)) lines.push(`${where(name)}: needs -${other}`)
  }
  needs('clusterListen', ['nodeName', 'shardLog'])
  for (const name of ['shardLog', 'nodeName'] as const) needs(name, ['clusterListen'])
  needs('shardLogUser', ['shardLog', 'shardLogPasswordFile'])
  needs('shardLogPasswordFile', ['shardLogUser'])
  needs('shardLogCa', ['shardLog'])
  needs('shardLogCert', ['shardLogKey', 'shardLogCa'])
  needs('shardLogKey', ['shardLogCert'])
  const { shardLog } = values
  if (shardLog?.includes('@') && values.shardLogUser !== undefined)
    lines.push(`${where('shardLogUser')}: -shardLog names a user already`)
  if (shardLog !== undefined && !shardLog.includes('etcds:') && values.shardLogCa !== undefined)
    lines.push(`${where('shardLogCa')}: needs etcds:// in -shardLog`)
  for (const name of ['clusterJoin', 'clusterAddress', 'failureDomain', 'clusterCert'] as const)
    needs(name, ['clusterListen'])
  for (const name of ['clusterCert', 'clusterKey', 'clusterCa'] as const)
    needs(name, ['clusterCert', 'clusterKey', 'clusterCa'])
  if (values.adminPort !== undefined && values.clusterListen?.endsWith(`:${values.adminPort}`))
    lines.push(`${where('adminPort')}: is the port of -clusterListen already; it needs one of its own`)
  if (values.clusterListen !== undefined && values.workers !== 1)
    lines.push(`${where('workers')}: not together with -clusterListen; start several nodes`)
  if (values.clusterListen !== undefined && (values.durability === 'sync' || values.durability === 'os'))
    lines.push(`${where('durability')}: a node of a cluster has replicated`)
  if (values.clusterListen === undefined && values.durability === 'replicated')
    lines.push(`${where('durability')}: replicated needs -shardLog`)
  return lines
}

/** One warning for each given option that never has an effect. A flag given as FALSE requests nothing. */
export function withoutEffect(values: Values, given: ReadonlyMap<OptionName, Given>): string[] {
  const lines: string[] = []
  for (const [name, { where }] of given) {
    const { effect, help } = options[name]
    if (effect === 'ignored' && values[name] !== false) lines.push(`${where} is ignored: ${help}`)
    if ((name === 'key' || name === 'cert' || name === 'tlsMin') && !values.https)
      lines.push(`${where} is ignored: there is no -https`)
    if (name === 'adminLocalIp' && values.adminPort === undefined)
      lines.push(`${where} is ignored: there is no -adminPort`)
    if (name === 'backupKeyFile' && values.access !== undefined)
      lines.push(`${where} is ignored: with -access a backup needs a principal that may admin and read everything`)
    if (name === 'corsOrigin' && !kinds.isOriginSetting(values.corsOrigin))
      lines.push(`${where}: ${JSON.stringify(values.corsOrigin)} is not the origin of a page, as SCHEME://HOST[:PORT]`)
    if (name === 'reqTimeout' && values.reqTimeout > 0 && values.httpServer !== 'node')
      lines.push(
        `${where} has an effect with -httpServer node, and on -http1Port and -adminPort: uws closes idle connections after about 10 s`,
      )
  }
  return lines
}
