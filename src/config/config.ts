// Every setting of the process: read once at the start from the command line and the environment, checked one by one
// and then together, frozen, and passed on. All faults are reported at once.
//
// `Config` has the settings that this version uses, under the names the code uses, with their units. The options
// themselves are the table in config/options.ts, with names, limits, defaults and the cost of raising them.
//
// Not here: options that do not fit together (option-conflicts.ts). Whether the named files can be read and the port
// can be used: the code that opens them checks that.

import { readFileSync } from 'node:fs'
import {
  type LogSettings,
  noTraces,
  type OptionSetting,
  parseTraceLevels,
  type TraceLevels,
} from '../messages/admin.js'
import type { Durability } from '../ports.js'
import { type Given, longUsage, mask, parse, shortUsage } from './command-line.js'
import { availableCores, workersFor } from './cores.js'
import * as kinds from './kinds.js'
import { contradictions, withoutEffect } from './option-conflicts.js'
import { type OptionName, optionNames, options, type Values } from './options.js'
import { ignoredLinks, unknownVariables } from './variables.js'

/** Files for TLS to the engine of the log: its authority, and this node's certificate and key, both or none. */
export interface LogTls {
  readonly caFile: string
  readonly certFile: string | undefined
  readonly keyFile: string | undefined
}

/** A node's place in a cluster. */
export interface ClusterConfig {
  readonly name: string
  /** The address to listen on for other nodes, and the one announced to them; undefined: the same. `host:port`. */
  readonly listen: string
  readonly advertised: string | undefined
  readonly seeds: readonly string[]
  /** The addresses of the engines that keep the logs, in their order: one or several. They may hold passwords. */
  readonly logs: readonly string[]
  /** This node's user there; undefined: the ones in `logs`, if these name users. */
  readonly logUser: { readonly name: string; readonly passwordFile: string } | undefined
  /** How the engine is verified, and this node's certificate for it; undefined: the files of `tls` are used. */
  readonly logTls: LogTls | undefined
  /** Whether versions of the engine that are known to lose data are accepted. */
  readonly isLogUnsafe: boolean
  readonly replicas: number
  /** What moves shards between nodes that stay. */
  readonly balance: 'load' | 'count' | 'off'
  /** How far the clocks of nodes may be apart, in milliseconds. */
  readonly clockSkewMaxMs: number
  readonly domain: string
  /** undefined: nodes connect without TLS. */
  readonly tls: { readonly certFile: string; readonly keyFile: string; readonly caFile: string } | undefined
  /** Whether nodes may do so beyond this machine. */
  readonly isInsecure: boolean
}

/** Where the console has streets from (docs/operations/console.md#streets). */
export type ConsoleTiles =
  /** `origin`: of the URL, for the policy of the page. */
  | { readonly kind: 'server'; readonly url: string; readonly origin: string }
  | { readonly kind: 'archive'; readonly file: string }

export interface Config {
  /** Settings of the HTTP server; all but `server` fits `FrontOptions`. */
  readonly http: {
    /** undefined: the fastest that can be loaded. */
    readonly server: 'uws' | 'node' | undefined
    readonly port: number
    /** A second port, served by node:http; undefined: none. */
    readonly http1Port: number | undefined
    /** A separate port for probes for life; undefined: none. */
    readonly livePort: number | undefined
    /** The port for operators, and its address; undefined: they use the other ports. */
    readonly admin: { readonly port: number; readonly host: string } | undefined
    /** undefined: all interfaces. */
    readonly host: string | undefined
    readonly family: 'both' | 'ipv4' | 'ipv6'
    /** undefined: plain HTTP. */
    readonly tls:
      | {
          readonly keyFile: string
          readonly certFile: string
          readonly minVersion: '1.2' | '1.3'
          /** undefined: clients are not asked for certificates. */
          readonly clients: { readonly caFile: string; readonly isRequired: boolean } | undefined
        }
      | undefined
    readonly connectionsMax: number
    readonly connectionsPerAddressMax: number
    /** 0: never closes them. */
    readonly idleTimeoutS: number
    readonly bodyBytesMax: number
  }
  readonly answers: {
    /** Bytes of one answer. */
    readonly answerBytesMax: number
    /** Bytes of all answers in flight. */
    readonly answersInFlightMax: number
  }
  /** Whether answers are compressed and compressed bodies are accepted. */
  readonly compresses: boolean
  /** undefined: pages of other origins may read nothing. */
  readonly cors: { readonly origins: readonly string[] | 'all'; readonly maxAgeS: number } | undefined
  /** Names of our headers in all that is sent; undefined: `Ctx-*`, and in answers the names of the request. */
  readonly vocabulary: 'Fiware' | undefined
  /** Processes that share the port. */
  readonly workers: number
  /** Whether that number is the number of cores here (`-workers auto`). */
  readonly workersFollowCores: boolean
  /** Settings of a node of a cluster; undefined: it is a single one. */
  readonly cluster: ClusterConfig | undefined
  /** Targets of notifications and forwarded requests: patterns (docs/operations/egress.md). */
  readonly egress: { readonly allow: readonly string[]; readonly deny: readonly string[] }
  /** The access file; undefined: there is no access control. */
  readonly access: { readonly file: string } | undefined
  /** The audit log; undefined: there is none. `file` undefined: it goes to standard output. */
  readonly audit: { readonly file: string | undefined; readonly isRequired: boolean } | undefined
  /** Whether the tenant header has an effect. */
  readonly tenants: boolean
  readonly store: {
    readonly directory: string
    readonly durability: Durability
    /** Reserved room on the disk of the directory for the case that it is full; 0: free space is not watched. */
    readonly reserveBytes: number
  }
  /** `keyFile`: has the key that clients need for a backup; undefined: there are no backups. */
  readonly backup: { readonly keyFile: string | undefined }
  /** How often entities past their time are removed. */
  readonly expiryIntervalMs: number
  readonly queries: {
    /** Memory for views; 0: there are none. */
    readonly viewBytesMax: number
    /** Time after which a query is given up. */
    readonly scanDeadlineMs: number
    /** Entities that one query may read. */
    readonly scanRowsMax: number
  }
  /** Whether the console is served. */
  readonly hasConsole: boolean
  /** Where the console has streets from; undefined: it has none. */
  readonly consoleTiles: ConsoleTiles | undefined
  readonly streams: {
    /** Open streams; 0: streams are off. */
    readonly streamsMax: number
    /** Memory for the latest changes. */
    readonly bufferBytesMax: number
    /** Whether messages over WebSocket are compressed. */
    readonly isCompressed: boolean
    /** Whether the paths of ngsi-proxy are served. */
    readonly ngsiProxy: boolean
  }
  readonly notifications: {
    readonly delivery: 'atLeastOnce' | 'bestEffort'
    /**
     * The most notifications that may descend from one request of a client; 0: no limit (docs/interface/cascades.md).
     */
    readonly descendantsMax: number
    /** As given, and valid; deliver/limits.ts explains the modes. */
    readonly mode: string
    /** undefined: off. */
    readonly flowControl: { readonly gauge: number; readonly stepMs: number; readonly waitMsMax: number } | undefined
    readonly httpTimeoutMs: number
    readonly mqttTimeoutMs: number
    /** 0: connections do not age. */
    readonly mqttIdleMsMax: number
    readonly messageBytesMax: number
    /** Whether notifications are only simulated: nothing is sent. */
    readonly simulated: boolean
    readonly disableCustomNotifications: boolean
    /** Whether dead letters are sent again when their receiver answers again. */
    readonly replays: boolean
    readonly deadLetters: {
      /** For all subscriptions together, and for one. */
      readonly bytesMaxInAll: number
      readonly bytesMax: number
      readonly ageMsMax: number
    }
    readonly tls: { readonly insecure: boolean; readonly caFile: string | undefined }
  }
  readonly forwarding: {
    /** Requests to providers for one request of a client; 0: nothing is forwarded. */
    readonly requestsMax: number
    /** The text between a URL without a path and the operation: nothing, a slash, or `/v2`. */
    readonly pathless: 'plain' | 'slash' | 'v2'
  }
  /** The log settings at the start; operators may change them. */
  readonly log: Readonly<LogSettings>
  readonly logging: {
    readonly format: 'pipe' | 'json'
    /** Short lines on standard output. */
    readonly forHumans: boolean
    /** undefined: standard output alone. */
    readonly file: { readonly directory: string; readonly append: boolean } | undefined
    /** 0: no summary. */
    readonly summaryS: number
    readonly relogAlarms: boolean
    readonly pidFile: string | undefined
  }
  readonly statistics: {
    /** Blocks of `GET /statistics`. */
    readonly counters: boolean
    readonly semWait: boolean
    readonly timing: boolean
    readonly notifQueue: boolean
    /** Whether requests are counted by tenant and path, for `GET /admin/metrics`. */
    readonly byService: boolean
  }
  /** Every option that has an effect, for operators. */
  readonly settings: readonly OptionSetting[]
}

/** The result of reading the command line and the environment. No text ends with a newline. */
export type ConfigReading =
  | {
      readonly kind: 'run'
      readonly config: Config
      /** Logged at WARN: given options that have no effect, and variables that name no option. */
      readonly warnings: string[]
      /** Logged at INFO, as are the lines of `fromEnv`; passwords are masked. */
      readonly commandLine: string
      readonly fromEnv: string[]
      /** Every option that has an effect, with its value; logged at INFO, too. */
      readonly effective: string
      /** The same, one line each, with the source of each value. */
      readonly settings: readonly string[]
    }
  /** Print the text and exit with 0. */
  | { readonly kind: 'print'; readonly text: string }
  /**
   * Write the usage and then the lines to standard error and exit with 1. `format`: the format of log lines, or the
   * default when that option itself is bad.
   */
  | { readonly kind: 'refuse'; readonly lines: string[]; readonly usage: string; readonly format: 'pipe' | 'json' }

/** The version of the package that this file belongs to. */
export const version: string = JSON.parse(
  readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'),
).version

/** Reads all settings. `argv` begins with the first argument. `cores`: the number of cores for `-workers auto`. */
export function readConfig(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  cores: () => number = availableCores,
): ConfigReading {
  const { given, print, faults, shownArguments, fromEnv } = parse(argv, env)
  if (print === 'version') return { kind: 'print', text: `orrery ${version}` }
  if (print) return { kind: 'print', text: print === 'u' ? shortUsage() : longUsage() }

  const { values, faults: bad } = valuesOf(given)
  const lines = [...faults, ...bad, ...contradictions(values, given)]
  if (lines.length > 0) return { kind: 'refuse', lines, usage: shortUsage(), format: values.logFormat }
  const config = configOf(values, cores, given)
  return {
    kind: 'run',
    config,
    warnings: [...withoutEffect(values, given), ...ignoredLinks(env), ...unknownVariables(env)],
    commandLine: `start command line <${['orrery', ...shownArguments].join(' ')}>`,
    fromEnv: [...fromEnv],
    effective: `configuration: ${config.settings.map(({ name, value }) => `-${name} ${value}`).join(' ')}`,
    settings: config.settings.map(({ name, value, source }) => `-${name} ${value}   (${source})`),
  }
}

/** Options that have an effect, each with its value and its source. Those without a value are left out. */
function settingsOf(values: Values, workers: number, given: ReadonlyMap<OptionName, Given>): OptionSetting[] {
  // Includes values that follow from other options when they are not given themselves.
  const adminLocalIp = adminOf(values)?.host ?? values.adminLocalIp
  const all: Values = { ...values, durability: durabilityOf(values), fwdPathless: pathlessOf(values), adminLocalIp }
  const textOf = (name: OptionName): string =>
    name === 'workers' && values.workers === 'auto' ? `auto (${workers} here)` : String(all[name])
  return optionNames
    .filter(name => options[name].effect === 'now' && all[name] !== undefined && all[name] !== '')
    .map(name => {
      const shown = options[name].secret ? mask : textOf(name)
      const follows = values[name] === undefined ? 'follows from others' : 'default'
      const source = given.get(name)?.where ?? follows
      return { name, value: shown, source }
    })
}

/** The value of every option; for a bad one its default, and a fault. */
function valuesOf(given: ReadonlyMap<OptionName, Given>): { values: Values; faults: string[] } {
  const values: Partial<Record<OptionName, unknown>> = {}
  const faults: string[] = []
  for (const name of optionNames) {
    const { kind, byDefault, secret } = options[name]
    const one = given.get(name)
    const value = one && kind.read(one.text)
    if (one && value === undefined) {
      faults.push(`${one.where}: ${secret ? mask : JSON.stringify(one.text)} is not ${kind.form}`)
    }
    values[name] = value ?? byDefault
  }
  return { values: values as Values, faults }
}

const bytesPerMb = 1024 * 1024

const auditOf = ({ auditLog, auditRequired: isRequired }: Values): Config['audit'] =>
  auditLog === undefined ? undefined : { file: auditLog === '-' ? undefined : auditLog, isRequired }

/** The share of one subscription in the room for all dead letters. */
const subscriptionShare = 1 / 16

function configOf(values: Values, cores: () => number, given: ReadonlyMap<OptionName, Given>): Config {
  const { ipv4, ipv6 } = values
  const workers = workersFor(values.workers, cores)
  return frozen<Config>({
    settings: settingsOf(values, workers, given),
    http: {
      server: values.httpServer,
      port: values.port,
      http1Port: values.http1Port,
      livePort: values.livePort,
      admin: adminOf(values),
      host: values.localIp,
      family: ipv4 ? 'ipv4' : ipv6 ? 'ipv6' : 'both',
      tls: tlsOf(values),
      connectionsMax: values.maxConnections,
      connectionsPerAddressMax: values.maxConnectionsPerAddress,
      idleTimeoutS: values.reqTimeout,
      bodyBytesMax: values.inReqPayloadMaxSize,
    },
    answers: {
      answerBytesMax: values.answerBytesMax * bytesPerMb,
      answersInFlightMax: values.answersInFlightMax * bytesPerMb,
    },
    compresses: values.httpCompression === 'on',
    cors: corsOf(values),
    vocabulary: values.compat === 'fiware' ? 'Fiware' : undefined,
    workers,
    workersFollowCores: values.workers === 'auto',
    cluster: clusterOf(values),
    egress: { allow: listOf(values.egressAllow), deny: listOf(values.egressDeny) },
    access: values.access === undefined ? undefined : { file: values.access },
    audit: auditOf(values),
    tenants: values.multiservice,
    store: {
      directory: values.dataDir,
      durability: durabilityOf(values),
      reserveBytes: values.diskReserve * bytesPerMb,
    },
    backup: { keyFile: values.backupKeyFile },
    expiryIntervalMs: values.expiryInterval,
    queries: {
      viewBytesMax: values.viewMemory * bytesPerMb,
      scanDeadlineMs: values.scanDeadline,
      scanRowsMax: values.scanRows,
    },
    hasConsole: !values.noConsole,
    consoleTiles: consoleTilesOf(values.consoleTiles),
    streams: {
      streamsMax: values.noStreams ? 0 : values.maxStreams,
      bufferBytesMax: values.streamBuffer * bytesPerMb,
      isCompressed: values.streamCompression,
      ngsiProxy: values.ngsiProxy,
    },
    notifications: {
      delivery: values.notifDelivery,
      descendantsMax: values.notifDescendants,
      mode: values.notificationMode,
      flowControl: flowControlOf(values.notifFlowControl),
      httpTimeoutMs: timeoutMsOf(values.httpTimeout),
      mqttTimeoutMs: timeoutMsOf(values.mqttTimeout),
      mqttIdleMsMax: values.mqttMaxAge * msPerMinute,
      messageBytesMax: values.outReqMsgMaxSize,
      simulated: values.simulatedNotification,
      disableCustomNotifications: values.disableCustomNotifications,
      replays: values.notifReplay === 'auto' && values.notifDelivery === 'atLeastOnce' && !values.simulatedNotification,
      deadLetters: {
        bytesMaxInAll: values.deadLetterMaxBytes * bytesPerMb,
        bytesMax: values.deadLetterMaxBytes * bytesPerMb * subscriptionShare,
        ageMsMax: values.deadLetterMaxAge * msPerMinute,
      },
      tls: { insecure: values.insecureNotif, caFile: values.notifCaFile },
    },
    forwarding: { requestsMax: values.cprForwardLimit, pathless: pathlessOf(values) },
    log: {
      level: values.logLevel,
      infoPayloadBytesMax: values.logInfoPayloadMaxSize,
      lineBytesMax: values.logLineMaxSize,
      deprecate: values.logDeprecate,
      traces: values.t === undefined ? noTraces : (parseTraceLevels(values.t) as TraceLevels),
    },
    logging: {
      format: values.logFormat,
      forHumans: values.logForHumans,
      file:
        values.logDir === undefined || values.disableFileLog
          ? undefined
          : { directory: values.logDir, append: values.logAppend },
      summaryS: values.logSummary,
      relogAlarms: values.relogAlarms,
      pidFile: values.pidpath,
    },
    statistics: {
      counters: values.statCounters,
      semWait: values.statSemWait,
      timing: values.statTiming,
      notifQueue: values.statNotifQueue && values.notificationMode.startsWith('threadpool'),
      byService: !values.disableMetrics,
    },
  })
}

function tlsOf({ https, key, cert, tlsMin, clientCa, clientAuth }: Values): Config['http']['tls'] {
  if (!https || key === undefined || cert === undefined) return undefined
  const clients = clientCa === undefined ? undefined : { caFile: clientCa, isRequired: clientAuth === 'required' }
  return { keyFile: key, certFile: cert, minVersion: tlsMin, clients }
}

/** Freezes a value and all objects in it. */
function frozen<T extends object>(value: T): T {
  for (const part of Object.values(value)) if (typeof part === 'object' && part !== null) frozen(part)
  return Object.freeze(value)
}

/** Without an address it is the loopback address. */
const adminOf = ({ adminPort: port, adminLocalIp, ipv6 }: Values): Config['http']['admin'] =>
  port === undefined ? undefined : { port, host: adminLocalIp ?? (ipv6 ? '::1' : '127.0.0.1') }

const listOf = (text: string): readonly string[] => text.split(',').filter(item => item !== '')

function clusterOf(values: Values): ClusterConfig | undefined {
  const { nodeName, clusterListen, shardLog, clusterCert, clusterKey, clusterCa } = values
  const { shardLogUser, shardLogPasswordFile, shardLogCa, shardLogCert, shardLogKey } = values
  if (nodeName === undefined || clusterListen === undefined || shardLog === undefined) return undefined
  return {
    name: nodeName,
    listen: clusterListen,
    advertised: values.clusterAddress,
    seeds: listOf(values.clusterJoin),
    logs: shardLog.split(' '),
    logUser:
      shardLogUser !== undefined && shardLogPasswordFile !== undefined
        ? { name: shardLogUser, passwordFile: shardLogPasswordFile }
        : undefined,
    logTls: shardLogCa === undefined ? undefined : { caFile: shardLogCa, certFile: shardLogCert, keyFile: shardLogKey },
    isLogUnsafe: values.shardLogUnsafe,
    replicas: values.replicas,
    balance: values.balance,
    clockSkewMaxMs: values.clockSkewMax,
    domain: values.failureDomain ?? '',
    tls:
      clusterCert && clusterKey && clusterCa
        ? { certFile: clusterCert, keyFile: clusterKey, caFile: clusterCa }
        : undefined,
    isInsecure: values.clusterInsecure,
  }
}

/** `-writeConcern 0`: do not wait for the disk. A given -durability takes precedence (docs/operations/options.md). */
const durabilityOf = ({ durability, writeConcern }: Values): Durability =>
  durability === 'replicated' ? 'os' : (durability ?? (writeConcern === 0 ? 'os' : 'sync'))

/** Agents that came with Orion answer below `//`, because Orion asks them there. */
const pathlessOf = ({ fwdPathless, compat }: Values): Config['forwarding']['pathless'] =>
  fwdPathless ?? (compat === 'fiware' ? 'slash' : 'plain')

function consoleTilesOf(given: Values['consoleTiles']): ConsoleTiles | undefined {
  if (given === undefined) return undefined
  if (kinds.isTileFile(given)) return { kind: 'archive', file: given }
  return { kind: 'server', url: given, origin: new URL(given).origin }
}

function corsOf({ corsOrigin, corsMaxAge: maxAgeS }: Values): Config['cors'] {
  if (corsOrigin === '') return undefined
  return { origins: corsOrigin === kinds.allOrigins ? 'all' : listOf(corsOrigin), maxAgeS }
}

const msPerMinute = 60_000

/** The timeout for -1, and for 0, which would leave no time at all (docs/operations/options.md). */
const timeoutMsByDefault = 5_000
const timeoutMsOf = (givenMs: number): number => (givenMs > 0 ? givenMs : timeoutMsByDefault)

function flowControlOf(given: string | undefined): Config['notifications']['flowControl'] {
  if (given === undefined) return undefined
  const [gauge = 0, stepMs = 0, waitMsMax = 0] = given.split(':').map(Number)
  return { gauge, stepMs, waitMsMax }
}
