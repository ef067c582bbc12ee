// The table of options: every option of docs/operations/options.md and our own, each with its environment variable,
// kind, default, effect and one line of help. Usage texts, checks, warnings and tests read it.
//
// Not here: the use of the values by the running program (config.ts).

import { parseEgressPattern } from '../domain/subscriptions/receiver-url.js'
import { workersMax } from './cores.js'
import * as kinds from './kinds.js'
import { flag, type OptionKind, path, shaped, text, upperWord, whole, wholeOr, word } from './kinds.js'

/**
 * `now`: has an effect. `granted`: requests a behaviour that is always on. `ignored`: never has an effect, and causes a
 * warning.
 */
export type OptionEffect = 'now' | 'granted' | 'ignored'

export interface Option<T> {
  /** Name of the environment variable, without the prefix. */
  readonly env: string
  readonly kind: OptionKind<T>
  readonly byDefault: T
  readonly effect: OptionEffect
  /** For the long usage; for an ignored option: the reason. */
  readonly help: string
  /** Must never be shown. */
  readonly secret: boolean
}

type About = Pick<Option<unknown>, 'help'> & Partial<Pick<Option<unknown>, 'effect' | 'secret'>>

function option<T>(
  env: string,
  kind: OptionKind<T>,
  byDefault: T,
  { help, effect = 'now', secret = false }: About,
): Option<T> {
  return { env, kind, byDefault, effect, help, secret }
}

const network = {
  port: option('PORT', whole(1, 65535), 1026, { help: 'Port to listen on.' }),
  localIp: option('LOCALIP', text(1), undefined, { help: 'Address to listen on; without it, all interfaces.' }),
  ipv4: option('USEIPV4', flag, false, { help: 'Listens on IPv4 only. Not together with -ipv6.' }),
  ipv6: option('USEIPV6', flag, false, { help: 'Listens on IPv6 only. Not together with -ipv4.' }),
  https: option('HTTPS', flag, false, { help: 'Serves TLS instead of plain HTTP; needs -key and -cert.' }),
  key: option('HTTPS_KEYFILE', path, undefined, { help: 'PEM file with the private key, best as an absolute path.' }),
  cert: option('HTTPS_CERTFILE', path, undefined, { help: 'PEM file with the certificate, best as an absolute path.' }),
  tlsMin: option('TLS_MIN', word('1.2', '1.3'), '1.2', {
    help: 'Oldest version of TLS that clients may speak; 1.3 is served by node, since uws cannot leave out 1.2.',
  }),
  clientCa: option('CLIENT_CAFILE', path, undefined, {
    help: 'PEM file with authorities: clients are asked for a certificate of theirs; served by node. Needs -https.',
  }),
  clientAuth: option('CLIENT_AUTH', word('required', 'optional'), 'required', {
    help: 'Whether a client without a certificate is refused; needs -clientCa. optional: it is as one that shows nothing.',
  }),
  httpServer: option('HTTP_SERVER', word('uws', 'node'), undefined, {
    help: 'Which HTTP server is used; without it, uws where it can be loaded, otherwise node.',
  }),
  http1Port: option('HTTP1_PORT', whole(1, 65535), undefined, {
    help: 'A second port with the same interface, served by node:http: for clients and proxies that speak HTTP/1.0, and for long idle connections.',
  }),
  livePort: option('LIVE_PORT', whole(1, 65535), undefined, {
    help: 'A port of its own for GET /health/live, plain HTTP: answered at once, also while the node is busy with a long request.',
  }),
  adminPort: option('ADMIN_PORT', whole(1, 65535), undefined, {
    help: 'A port of its own for operators: administration and the cluster are served only there, metrics and health there too.',
  }),
  adminLocalIp: option('ADMIN_LOCALIP', text(1), undefined, {
    help: 'Address to listen on for -adminPort; without it, the loopback address: operators of this machine alone.',
  }),
  maxConnections: option('MAX_CONN', whole(1), 1020, {
    help: 'Client connections at a time. At the limit the one that has waited longest for a request, or for the rest of one, makes room. Each one more costs a file descriptor and some memory: raise their limit too.',
  }),
  maxConnectionsPerAddress: option('MAX_CONN_PER_ADDRESS', whole(0), 0, {
    help: 'Client connections of one address at a time; 0 is no limit. With uws it costs each request some time.',
  }),
  reqTimeout: option('REQ_TIMEOUT', whole(0, undefined, 's'), 0, {
    help: 'Closes idle client connections; 0 is never.',
  }),
  inReqPayloadMaxSize: option('IN_REQ_PAYLOAD_MAX_SIZE', whole(0, undefined, 'bytes'), 1048576, {
    help: 'Larger request bodies are refused. Raising it costs memory: that much for each connection at a time, at worst.',
  }),
  answerBytesMax: option('ANSWER_BYTES_MAX', whole(1, 1024, 'MB'), 64, {
    help: 'Longest answer. A request with a longer answer is refused; limit makes it shorter. Raising it costs memory for clients that read slowly.',
  }),
  answersInFlightMax: option('ANSWERS_IN_FLIGHT_MAX', whole(1, 1048576, 'MB'), 512, {
    help: 'Memory for all answers under way; beyond, requests are answered 503. Workers have a part of it each, with room for one answer at least.',
  }),
  httpCompression: option('HTTP_COMPRESSION', word('on', 'off'), 'on', {
    help: 'Compresses answers above 1 KB for clients that accept it (br, gzip), and takes compressed request bodies. off: a proxy does that, or a secret of an entity may stand beside text that others write.',
  }),
  multiservice: option('MULTI_SERVICE', flag, false, { help: 'Tenants on. Without it the tenant header is ignored.' }),
  outReqMsgMaxSize: option('OUT_REQ_MSG_MAX_SIZE', whole(0, undefined, 'bytes'), 8388608, {
    help: 'Limit of notifications and forwarded requests, headers included.',
  }),
  corsOrigin: option('CORS_ALLOWED_ORIGIN', kinds.corsOrigins, '', {
    help: 'Origins whose pages may see answers, as SCHEME://HOST[:PORT] with commas, or __ALL; empty is CORS off.',
  }),
  noConsole: option('NO_CONSOLE', flag, false, {
    help: 'The console is not served: there are no paths below /console.',
  }),
  consoleTiles: option('CONSOLE_TILES', kinds.consoleTiles, undefined, {
    help: 'Streets on the map of the console: the URL of a tile server with {z}, {x} and {y}, or an archive of raster tiles (.pmtiles). Without it the map has land and borders.',
  }),
  corsMaxAge: option('CORS_MAX_AGE', whole(-1, 86400, 's'), 86400, { help: 'How long a preflight may be cached.' }),
  compat: option('COMPAT', word('fiware'), undefined, {
    help: 'fiware: everything that Orrery sends carries Fiware-* headers instead of Ctx-*, Ctx-* headers of requests are ignored, and -fwdPathless is slash.',
  }),
  disableNgsiv1: option('DISABLE_NGSIV1', flag, false, { help: 'There is no NGSIv1 here.', effect: 'granted' }),
  connectionMemory: option('CONN_MEMORY', whole(0, 1024, 'KB'), 64, {
    help: 'buffers grow and shrink as needed',
    effect: 'ignored',
  }),
  reqPoolSize: option('TRQ_POOL_SIZE', whole(0, 1024), 0, {
    help: 'requests need no threads of their own',
    effect: 'ignored',
  }),
}

const access = {
  access: option('ACCESS', path, undefined, {
    help: 'File that says who may do what; without it any client may do everything.',
  }),
  auditLog: option('AUDIT_LOG', path, undefined, {
    help: 'File with a line for each request that changes something, is refused, or administers; - is standard output.',
  }),
  auditRequired: option('AUDIT_REQUIRED', flag, false, {
    help: 'Requests that change something are refused with 503 while lines of -auditLog cannot be written.',
  }),
}

const processes = {
  workers: option('WORKERS', wholeOr('auto', 1, workersMax), 1, {
    help: 'Processes that share the port, each with its part of the entities; auto: one for each core that the process may use. Another number than before divides the data anew at the start.',
  }),
}

const patterns = shaped(
  text => text === '' || text.split(',').every(one => parseEgressPattern(one) !== undefined),
  'patterns with commas: host, host:port, address, or network',
  'pattern,..',
)

const hostPort = '(?:\\[[0-9A-Fa-f:.]+\\]|[A-Za-z0-9._-]+):[0-9]{1,5}'
const hostPorts = `${hostPort}(?:,${hostPort})*`
const address = shaped(new RegExp(`^${hostPort}$`), 'an address, as HOST:PORT', 'host:port')
const addresses = shaped(new RegExp(`^(?:${hostPorts})?$`), 'addresses, as HOST:PORT,HOST:PORT', 'host:port,..')
/** Engines among which the shards of a cluster are divided at most. */
export const enginesMax = 16
const engine = `etcds?://(?:[^@/\\s]+@)?${hostPorts}/?`
const engines = shaped(
  new RegExp(`^${engine}(?: ${engine}){0,${enginesMax - 1}}$`),
  'the address of an etcd, as etcd://HOST:PORT,HOST:PORT, or of several with spaces between',
  'etcd://..',
)
const name = shaped(/^[A-Za-z0-9._-]{1,100}$/, "a name of up to 100 letters, digits, '.', '_' and '-'", 'name')

const cluster = {
  nodeName: option('NODE_NAME', name, undefined, {
    help: 'Name of this node in its cluster; each node has another one.',
  }),
  clusterListen: option('CLUSTER_LISTEN', address, undefined, {
    help: 'HOST:PORT where other nodes of the cluster find this one; makes it a node of a cluster. Needs -nodeName and -shardLog.',
  }),
  clusterAddress: option('CLUSTER_ADDRESS', address, undefined, {
    help: 'HOST:PORT by which other nodes reach this node, where it differs from -clusterListen.',
  }),
  clusterJoin: option('CLUSTER_JOIN', addresses, '', {
    help: 'HOST:PORT of other nodes, with commas; one that answers is enough. A host may be a DNS name with several addresses.',
  }),
  shardLog: option('SHARD_LOG', engines, undefined, {
    help: 'etcd://HOST:PORT,HOST:PORT (or etcds:// for TLS) of the etcd that keeps the log of the cluster, with user:password@ if need be. Several with spaces between divide the shards among them; their number and order never change.',
    secret: true,
  }),
  shardLogUser: option('SHARD_LOG_USER', text(1, 100), undefined, {
    help: 'User that etcd knows this node by; needs -shardLogPasswordFile.',
  }),
  shardLogPasswordFile: option('SHARD_LOG_PASSWORD_FILE', path, undefined, {
    help: 'File with the password of -shardLogUser; the line break at its end is not part of it.',
  }),
  shardLogCa: option('SHARD_LOG_CA', path, undefined, {
    help: 'PEM file of the authority that has certified etcd, for etcds://. Without it that of -clusterCa, or those of the system.',
  }),
  shardLogCert: option('SHARD_LOG_CERT', path, undefined, {
    help: 'PEM file with the certificate that etcd is shown; needs -shardLogKey and -shardLogCa. Without -shardLogCa that of -clusterCert.',
  }),
  shardLogKey: option('SHARD_LOG_KEY', path, undefined, { help: 'PEM file with its private key.' }),
  shardLogUnsafe: option('SHARD_LOG_UNSAFE', flag, false, {
    help: 'Accept a version of etcd that is known to lose data.',
  }),
  replicas: option('REPLICAS', whole(1, 7), 3, {
    help: 'Nodes that keep each shard, its owner among them. More survive the loss of more disks, and each costs every change once more. With 1, the content of the shards of a node is lost with its disk.',
  }),
  balance: option('BALANCE', word('load', 'count', 'off'), 'load', {
    help: 'What moves shards between nodes that stay. `load`: unequal numbers of shards, and loads that differ for a minute. `count`: unequal numbers. `off`: nothing. The least of all nodes applies.',
  }),
  failureDomain: option('FAILURE_DOMAIN', text(1, 100), undefined, {
    help: 'What fails together with this node: a rack, a zone. Copies of a shard stand in different ones as long as there are any.',
  }),
  clockSkewMax: option('CLOCK_SKEW_MAX', whole(10, 60000, 'ms'), 500, {
    help: 'How far the clock of a node may be from the clocks of the others before it is an alarm. Beyond four times that the node takes no shards.',
  }),
  clusterCert: option('CLUSTER_CERT', path, undefined, {
    help: 'PEM file with the certificate of this node, for TLS between nodes.',
  }),
  clusterKey: option('CLUSTER_KEY', path, undefined, { help: 'PEM file with its private key.' }),
  clusterCa: option('CLUSTER_CA', path, undefined, {
    help: 'PEM file of the authority; every holder of one of its certificates is a node.',
  }),
  clusterInsecure: option('CLUSTER_INSECURE', flag, false, {
    help: 'Nodes talk without TLS also beyond this machine. Whoever reaches the address can change everything.',
  }),
}

const storage = {
  dataDir: option('DATA_DIR', path, './data', { help: 'Directory of the store. One process at a time.' }),
  durability: option('DURABILITY', word('sync', 'os', 'replicated'), undefined, {
    help: 'sync: an answered change survives the loss of power. os: only the end of the process, for faster writes. replicated: what -shardLog implies, a majority of the log engine has it. Without it sync, or os with -writeConcern 0.',
  }),
  diskReserve: option('DISK_RESERVE', whole(0, 1048576, 'MB'), 64, {
    help: 'Room that is kept in -dataDir for hard times. With less than that free besides, writes are refused with 507 until twice as much is free; 0: off.',
  }),
  backupKeyFile: option('BACKUP_KEY_FILE', path, undefined, {
    help: 'File with the key that POST /admin/backup and "orrery backup" need, 16 characters or more; the line break at its end is not part of it. Without it there are no backups over HTTP.',
  }),
  expiryInterval: option('EXPIRY_INTERVAL', whole(10, 60000, 'ms'), 1000, {
    help: 'How often entities past their dateExpires are removed. Raising it leaves them visible for longer.',
  }),
}

const streams = {
  maxStreams: option('MAX_STREAMS', whole(1), 10000, {
    help: 'Open streams of this node. Raising it costs up to 20 KB each, and more for slow readers; -maxConnections bounds them as well.',
  }),
  noStreams: option('NO_STREAMS', flag, false, { help: 'There are no streams: GET /v2/stream is answered 404.' }),
  streamCompression: option('STREAM_COMPRESSION', flag, false, {
    help: 'Messages over WebSocket are compressed, with clients that want it. It costs processor time for each message and stream.',
  }),
  ngsiProxy: option('NGSI_PROXY', flag, false, {
    help: 'Serves the paths of ngsi-proxy, /eventsource and /callbacks: pages in browsers get notifications through them. For one process: not with workers, and not in a cluster.',
  }),
  streamBuffer: option('STREAM_BUFFER', whole(1, 1048576, 'MB'), 64, {
    help: 'Memory for the latest changes, from which readers of streams that come back get what they have missed. Raising it lets them stay away for longer, up to ten minutes.',
  }),
}

const queries = {
  viewMemory: option('VIEW_MEMORY', whole(0, 1048576, 'MB'), 256, {
    help: 'Memory for views, which answer filters and orders without reading entities. 0: no views, every filter is a scan.',
  }),
  scanDeadline: option('SCAN_DEADLINE', whole(1, 3600000, 'ms'), 30000, {
    help: 'A query that takes longer is answered 503. Raising it lets slow queries work for clients that may have gone.',
  }),
  scanRows: option('SCAN_ROWS', whole(1), 10000000, {
    help: 'A query that would have to look into more entities is refused. Raising it makes longer scans possible. A million take 4 to 8 s, so -scanDeadline may end them before.',
  }),
}

const notifications = {
  notifDelivery: option('NOTIF_DELIVERY', word('atLeastOnce', 'bestEffort'), 'atLeastOnce', {
    help: 'atLeastOnce: a notification is kept with its change until it was delivered or given up. bestEffort: one try, lost with the process.',
  }),
  notifReplay: option('NOTIF_REPLAY', word('auto', 'manual'), 'auto', {
    help: 'auto: dead letters are sent again when their receiver answers again. manual: only when a client asks for it. Needs atLeastOnce.',
  }),
  deadLetterMaxAge: option('DEAD_LETTER_MAX_AGE', whole(1, 5256000, 'minutes'), 10080, {
    help: 'Dead letters are deleted when they are older. Raising it costs disk.',
  }),
  deadLetterMaxBytes: option('DEAD_LETTER_MAX_BYTES', whole(64, 1048576, 'MB'), 1024, {
    help: 'Disk for the dead letters of a process, a sixteenth of it for one subscription. Beyond, the oldest of those that have most go.',
  }),
  notifDescendants: option('NOTIF_DESCENDANTS', whole(0), 1000, {
    help: 'Notifications that descend from one request of a client where notifications trigger others; 0 is any number. More are dropped. Raising it makes long chains possible.',
  }),
  notificationMode: option('NOTIF_MODE', kinds.notificationMode, 'transient', {
    help: 'How many notifications are sent at a time: transient 32 to a receiver, persistent one to a receiver, threadpool n in all while q wait.',
  }),
  notifFlowControl: option('NOTIF_FLOW_CONTROL', kinds.flowControl, undefined, {
    help: 'Slows updates with options=flowControl down while notifications queue; needs threadpool.',
  }),
  httpTimeout: option('HTTP_TIMEOUT', whole(-1, 1800000, 'ms'), -1, {
    help: 'Time of one notification or forwarded request; -1 is 5000.',
  }),
  mqttTimeout: option('MQTT_TIMEOUT', whole(-1, 1800000, 'ms'), -1, { help: 'Wait for an MQTT server; -1 is 5000.' }),
  mqttMaxAge: option('MQTT_MAX_AGE', whole(0, undefined, 'minutes'), 60, { help: 'Closes idle MQTT connections.' }),
  cprForwardLimit: option('CPR_FORWARD_LIMIT', whole(0), 1000, {
    help: 'Requests to context providers for one of a client, one after the other; 0 is none. Raising it makes slow answers slower.',
  }),
  fwdPathless: option('FWD_PATHLESS', word('plain', 'slash', 'v2'), undefined, {
    help: 'Where a provider is asked whose URL has no path: plain at /op/query, slash at //op/query, v2 at /v2/op/query. Without it plain, or slash with -compat fiware.',
  }),
  insecureNotif: option('INSECURE_NOTIF', flag, false, {
    help: 'Does not verify the certificates of receivers and providers.',
  }),
  egressAllow: option('EGRESS_ALLOW', patterns, '', {
    help: 'Where notifications and forwarded requests may go; without it everywhere but to link-local addresses.',
  }),
  egressDeny: option('EGRESS_DENY', patterns, '', {
    help: 'Where they may not go; it has precedence over -egressAllow. The log engine and the ports of the cluster are always denied.',
  }),
  notifCaFile: option('NOTIF_CA_FILE', path, undefined, {
    help: 'PEM file of certificates that receivers and providers over HTTPS and MQTTS are trusted by, besides the usual ones.',
  }),
  disableCustomNotifications: option('DISABLE_CUSTOM_NOTIF', flag, false, { help: 'Templates are not expanded.' }),
  simulatedNotification: option('DROP_NOTIF', flag, false, { help: 'Notifications are counted and not sent.' }),
  subCacheIval: option('SUBCACHE_IVAL', whole(0, 3600, 's'), 60, {
    help: 'Subscriptions are always up to date.',
    effect: 'granted',
  }),
  noCache: option('NOCACHE', flag, false, { help: 'Subscriptions are always up to date.', effect: 'granted' }),
}

const logging = {
  logLevel: option('LOG_LEVEL', upperWord('NONE', 'FATAL', 'ERROR', 'WARN', 'INFO', 'DEBUG'), 'WARN', {
    help: 'Least severe lines to log. INFO writes one or two KB for a request, DEBUG more.',
  }),
  t: option('TRACE', kinds.traceLevels, undefined, { help: 'Trace levels; needs -logLevel DEBUG.' }),
  fg: option('FOREGROUND', flag, false, { help: 'The process always stays in the foreground.', effect: 'granted' }),
  disableFileLog: option('DISABLE_FILE_LOG', flag, false, { help: 'No log file, even with -logDir.' }),
  logFormat: option('LOG_FORMAT', word('pipe', 'json'), 'pipe', { help: 'Lines with fields between bars, or JSON.' }),
  logDir: option('LOG_DIR', path, undefined, {
    help: 'Directory of a log file, contextBroker.log; without it there is none.',
  }),
  logAppend: option('LOG_APPEND', flag, false, { help: 'Continues the log file instead of beginning a new one.' }),
  logForHumans: option('LOG_FOR_HUMANS', flag, false, { help: 'Short lines on standard output.' }),
  logLineMaxSize: option('LOG_LINE_MAX_SIZE', whole(100, undefined, 'bytes'), 32768, { help: 'Longest line.' }),
  logInfoPayloadMaxSize: option('LOG_INFO_PAYLOAD_MAX_SIZE', whole(0, undefined, 'bytes'), 5120, {
    help: 'How much of a body is logged at INFO.',
  }),
  logSummary: option('LOG_SUMMARY_PERIOD', whole(0, 2678400, 's'), 0, { help: 'Period of the summary; 0 is none.' }),
  relogAlarms: option('RELOG_ALARMS', flag, false, { help: 'Logs an alarm each time, not only when it is raised.' }),
  logDeprecate: option('LOG_DEPRECATE', flag, false, { help: 'Warns of deprecated usages.' }),
  disableMetrics: option('DISABLE_METRICS', flag, false, {
    help: 'Requests are not counted by tenant and path; /admin/metrics is refused.',
  }),
  statCounters: option('STAT_COUNTERS', flag, false, { help: 'Counters in /statistics.' }),
  statSemWait: option('STAT_SEM_WAIT', flag, false, { help: 'Waiting times in /statistics.' }),
  statTiming: option('STAT_TIMING', flag, false, { help: 'Timing in /statistics.' }),
  statNotifQueue: option('STAT_NOTIF_QUEUE', flag, false, { help: 'Notification queues in /statistics.' }),
  pidpath: option('PID_PATH', path, undefined, { help: 'File for the process id.' }),
}

const embedded = { help: 'the store is embedded, see -dataDir', effect: 'ignored' } as const
const legacy = {
  db: option('MONGO_DB', text(1, 10), 'orion', embedded),
  dbURI: option('MONGO_URI', text(), '', { ...embedded, secret: true }),
  dbpwd: option('MONGO_PASSWORD', text(), '', { ...embedded, secret: true }),
  dbPoolSize: option('MONGO_POOL_SIZE', whole(1, 10000), 10, embedded),
  writeConcern: option('MONGO_WRITE_CONCERN', whole(0, 1), 1, { help: '0 is taken as -durability os.' }),
  dbhost: option('MONGO_HOST', text(), '', embedded),
  rplSet: option('MONGO_REPLICA_SET', text(), '', embedded),
  dbTimeout: option('MONGO_TIMEOUT', text(), '', embedded),
  dbuser: option('MONGO_USER', text(), '', embedded),
  dbAuthMech: option('MONGO_AUTH_MECH', text(), '', embedded),
  dbAuthDb: option('MONGO_AUTH_SOURCE', text(), '', embedded),
  dbSSL: option('MONGO_SSL', flag, false, embedded),
  dbDisableRetryWrites: option('MONGO_DISABLE_RETRY_WRITES', flag, false, embedded),
  reqMutexPolicy: option('MUTEX_POLICY', word('all', 'none', 'read', 'write'), 'all', {
    help: 'changes of one entity are always made one after the other',
    effect: 'ignored',
  }),
  strictNgsiv1Ids: option('CHECK_ID_V1', flag, false, { help: 'there is no NGSIv1 here', effect: 'ignored' }),
  kafkaTimeout: option('KAFKA_TIMEOUT', whole(-1, 1800000, 'ms'), -1, {
    help: 'there is no Kafka here',
    effect: 'ignored',
  }),
  kafkaMaxAge: option('KAFKA_MAX_AGE', whole(0, undefined, 'minutes'), 60, {
    help: 'there is no Kafka here',
    effect: 'ignored',
  }),
  ngsiv1Autocast: option('NGSIV1_AUTOCAST', flag, false, { help: 'there is no NGSIv1 here', effect: 'ignored' }),
}

/** The table as the long usage shows it. */
export const sections: Readonly<Record<string, Readonly<Record<string, Option<unknown>>>>> = {
  'Network and server': network,
  Access: access,
  Processes: processes,
  Cluster: cluster,
  Storage: storage,
  Queries: queries,
  Streams: streams,
  'Notifications and forwarding': notifications,
  'Logging, statistics and process': logging,
  Legacy: legacy,
}

export const options = {
  ...network,
  ...access,
  ...processes,
  ...cluster,
  ...storage,
  ...queries,
  ...streams,
  ...notifications,
  ...logging,
  ...legacy,
}

export type OptionName = keyof typeof options

/** The value of every option, given or default. */
export type Values = {
  readonly [N in OptionName]: (typeof options)[N] extends Option<infer T> ? T : never
}

export const optionNames = Object.keys(options) as OptionName[]

/** Whether the table has this name, in exactly this case. */
export const isOptionName = (name: string): name is OptionName => Object.hasOwn(options, name)

/** Prefixes of environment variables; an earlier one wins. */
export const envPrefixes = ['CTX_', 'ORION_'] as const
