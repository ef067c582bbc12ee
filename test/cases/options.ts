// The options of docs/operations/options.md and our own, written down once more from the specification: name, variable,
// default, values that must be accepted and values that must be refused.

export interface OptionCase {
  readonly name: string
  readonly env: string
  readonly byDefault?: unknown
  readonly good: readonly string[]
  readonly bad: readonly string[]
}

const notNumbers = ['', ' 5', '5 ', '+5', '5.0', '1e3', '0x10', 'five']

const number = (name: string, env: string, byDefault: number | undefined, min: number, max?: number): OptionCase => ({
  name,
  env,
  byDefault,
  good: [`${min}`, `${max ?? Number.MAX_SAFE_INTEGER}`],
  bad: [`${min - 1}`, max === undefined ? '9007199254740992' : `${max + 1}`, ...notNumbers],
})

const words = (
  name: string,
  env: string,
  byDefault: string | undefined,
  good: string[],
  bad: string[],
): OptionCase => ({
  name,
  env,
  byDefault,
  good,
  bad: ['', ...bad],
})

const path = (name: string, env: string, byDefault?: string): OptionCase => words(name, env, byDefault, ['/a b/c'], [])

const free = (name: string, env: string): OptionCase => ({ name, env, byDefault: '', good: ['', 'x', '-x'], bad: [] })

const egressPatterns = ['*', 'a.example', 'fe80::/10', '*.a.example:80,[::1]:1,10.0.0.0/8']

export const valueCases: readonly OptionCase[] = [
  number('port', 'PORT', 1026, 1, 65535),
  words('localIp', 'LOCALIP', undefined, ['127.0.0.1', '::1'], []),
  path('key', 'HTTPS_KEYFILE'),
  path('cert', 'HTTPS_CERTFILE'),
  path('access', 'ACCESS'),
  path('auditLog', 'AUDIT_LOG'),
  number('maxConnections', 'MAX_CONN', 1020, 1),
  number('connectionMemory', 'CONN_MEMORY', 64, 0, 1024),
  number('reqPoolSize', 'TRQ_POOL_SIZE', 0, 0, 1024),
  number('maxConnectionsPerAddress', 'MAX_CONN_PER_ADDRESS', 0, 0),
  number('reqTimeout', 'REQ_TIMEOUT', 0, 0),
  number('inReqPayloadMaxSize', 'IN_REQ_PAYLOAD_MAX_SIZE', 1048576, 0),
  number('answerBytesMax', 'ANSWER_BYTES_MAX', 64, 1, 1024),
  number('answersInFlightMax', 'ANSWERS_IN_FLIGHT_MAX', 512, 1, 1048576),
  words('httpCompression', 'HTTP_COMPRESSION', 'on', ['on', 'off'], ['gzip']),
  number('outReqMsgMaxSize', 'OUT_REQ_MSG_MAX_SIZE', 8388608, 0),
  {
    name: 'consoleTiles',
    env: 'CONSOLE_TILES',
    byDefault: undefined,
    good: [
      'https://tiles.example/{z}/{x}/{y}.png',
      'http://localhost:8080/a/{z}/{y}/{x}?key=b',
      'city.pmtiles',
      '/maps/a b.pmtiles',
    ],
    bad: [
      '',
      'city.mbtiles',
      'https://tiles.example/{z}/{x}.png',
      'https://tiles.example/{z}/{x}/{y}/{r}.png',
      'https://{s}.tiles.example/{z}/{x}/{y}.png',
      'https://a:b@tiles.example/{z}/{x}/{y}.png',
      'https://tiles.example;script-src/{z}/{x}/{y}.png',
      'ftp://tiles.example/{z}/{x}/{y}.png',
    ],
  },
  {
    ...free('corsOrigin', 'CORS_ALLOWED_ORIGIN'),
    good: ['', '__ALL', 'https://a.example', 'arrakis', 'https://a,http://localhost:8080,app://local,http://[::1]:1'],
    bad: [
      'https://a.example,__ALL',
      'https://a.example,',
      'https://a.example,https://b.example/',
      'https://a.example, https://b.example',
      'https://a.example,b.example',
      'https://a.example,HTTPS://b.example',
      'https://a.example,https://b.example:443',
      'https://a.example,https://u@b.example',
      Array.from({ length: 101 }, (_, n) => `http://h${n}`).join(),
    ],
  },
  number('corsMaxAge', 'CORS_MAX_AGE', 86400, -1, 86400),
  words(
    'notificationMode',
    'NOTIF_MODE',
    'transient',
    ['persistent', 'threadpool', 'threadpool:1:1', 'threadpool:100:10,a_1:5:2,b:1:1'],
    ['Transient', 'permanent', 'threadpool:', 'threadpool:0:1', 'threadpool:1:0', 'threadpool:1', 'threadpool:1:1,a:1'],
  ),
  number('httpTimeout', 'HTTP_TIMEOUT', -1, -1, 1800000),
  number('mqttTimeout', 'MQTT_TIMEOUT', -1, -1, 1800000),
  number('mqttMaxAge', 'MQTT_MAX_AGE', 60, 0),
  number('kafkaTimeout', 'KAFKA_TIMEOUT', -1, -1, 1800000),
  number('kafkaMaxAge', 'KAFKA_MAX_AGE', 60, 0),
  number('cprForwardLimit', 'CPR_FORWARD_LIMIT', 1000, 0),
  number('subCacheIval', 'SUBCACHE_IVAL', 60, 0, 3600),
  words(
    'logLevel',
    'LOG_LEVEL',
    'WARN',
    ['NONE', 'FATAL', 'ERROR', 'INFO', 'debug'],
    ['Debug', 'WARNING', 'TRACE', '3'],
  ),
  path('logDir', 'LOG_DIR'),
  words('logFormat', 'LOG_FORMAT', 'pipe', ['json', 'pipe'], ['JSON', 'text']),
  number('logLineMaxSize', 'LOG_LINE_MAX_SIZE', 32768, 100),
  number('logInfoPayloadMaxSize', 'LOG_INFO_PAYLOAD_MAX_SIZE', 5120, 0),
  number('logSummary', 'LOG_SUMMARY_PERIOD', 0, 0, 2678400),
  path('pidpath', 'PID_PATH'),
  words('db', 'MONGO_DB', 'orion', ['a', 'abcdefghij'], ['abcdefghijk']),
  free('dbURI', 'MONGO_URI'),
  free('dbpwd', 'MONGO_PASSWORD'),
  number('dbPoolSize', 'MONGO_POOL_SIZE', 10, 1, 10000),
  number('writeConcern', 'MONGO_WRITE_CONCERN', 1, 0, 1),
  free('dbhost', 'MONGO_HOST'),
  free('rplSet', 'MONGO_REPLICA_SET'),
  free('dbTimeout', 'MONGO_TIMEOUT'),
  free('dbuser', 'MONGO_USER'),
  free('dbAuthMech', 'MONGO_AUTH_MECH'),
  free('dbAuthDb', 'MONGO_AUTH_SOURCE'),
  words('reqMutexPolicy', 'MUTEX_POLICY', 'all', ['none', 'read', 'write'], ['ALL', 'some']),
  path('dataDir', 'DATA_DIR', './data'),
  path('notifCaFile', 'NOTIF_CA_FILE'),
  path('backupKeyFile', 'BACKUP_KEY_FILE'),
  words('fwdPathless', 'FWD_PATHLESS', undefined, ['plain', 'slash', 'v2'], ['', 'v1', 'PLAIN', '/']),
  words('notifDelivery', 'NOTIF_DELIVERY', 'atLeastOnce', ['bestEffort'], ['exactlyOnce', 'besteffort']),
  words('compat', 'COMPAT', undefined, ['fiware'], ['Fiware', 'orion']),
  words('durability', 'DURABILITY', undefined, ['sync', 'os'], ['SYNC', 'none']),
  words('notifReplay', 'NOTIF_REPLAY', 'auto', ['auto', 'manual'], ['Auto', 'never']),
  number('deadLetterMaxAge', 'DEAD_LETTER_MAX_AGE', 10080, 1, 5256000),
  number('deadLetterMaxBytes', 'DEAD_LETTER_MAX_BYTES', 1024, 64, 1048576),
  number('notifDescendants', 'NOTIF_DESCENDANTS', 1000, 0),
  number('replicas', 'REPLICAS', 3, 1, 7),
  words('balance', 'BALANCE', 'load', ['load', 'count', 'off'], ['Load', 'none']),
  number('clockSkewMax', 'CLOCK_SKEW_MAX', 500, 10, 60000),
  number('diskReserve', 'DISK_RESERVE', 64, 0, 1048576),
  number('expiryInterval', 'EXPIRY_INTERVAL', 1000, 10, 60000),
  number('workers', 'WORKERS', 1, 1, 64),
  number('maxStreams', 'MAX_STREAMS', 10000, 1),
  number('streamBuffer', 'STREAM_BUFFER', 64, 1, 1048576),
  number('viewMemory', 'VIEW_MEMORY', 256, 0, 1048576),
  number('scanDeadline', 'SCAN_DEADLINE', 30000, 1, 3600000),
  number('scanRows', 'SCAN_ROWS', 10000000, 1),
  number('http1Port', 'HTTP1_PORT', undefined, 1, 65535),
  number('livePort', 'LIVE_PORT', undefined, 1, 65535),
  number('adminPort', 'ADMIN_PORT', undefined, 1, 65535),
  {
    ...free('egressAllow', 'EGRESS_ALLOW'),
    good: ['', ...egressPatterns],
    bad: ['a b', '10.0.0.0/33', 'h:0', '1.2.3', 'a,,b'],
  },
  { ...free('egressDeny', 'EGRESS_DENY'), good: ['', ...egressPatterns], bad: ['*x', '::g', '[::1', 'a:65536', ','] },
  words('tlsMin', 'TLS_MIN', '1.2', ['1.2', '1.3'], ['1.1', '1', 'TLSv1.3']),
  words('httpServer', 'HTTP_SERVER', undefined, ['uws', 'node'], ['automatic', 'UWS']),
]

/** Options that other options require; the tests set them too. */
const listen = ['-clusterListen', '10.0.0.1:7000']
const named = ['-nodeName', 'a']
const logged = ['-shardLog', 'etcds://10.0.0.9:2379']
const inCluster = [...listen, ...named, ...logged]
const cert = ['-clusterCert', 'cert.pem']
const key = ['-clusterKey', 'key.pem']
const ca = ['-clusterCa', 'ca.pem']
const user = ['-shardLogUser', 'orrery']
const password = ['-shardLogPasswordFile', 'password']
const logCert = ['-shardLogCert', 'cert.pem']
const logKey = ['-shardLogKey', 'key.pem']
const logCa = ['-shardLogCa', 'ca.pem']
const served = ['-https', '-key', 'key.pem', '-cert', 'cert.pem']
const badAddresses = ['host', ':7000', 'host:', 'host:seven', 'a b:1', 'http://host:1']

export const conditionalCases: readonly (OptionCase & { readonly along: readonly string[] })[] = [
  {
    name: 'adminLocalIp',
    env: 'ADMIN_LOCALIP',
    along: ['-adminPort', '8083'],
    good: ['0.0.0.0', '::1', 'admin.example'],
    bad: [''],
  },
  {
    name: 'nodeName',
    env: 'NODE_NAME',
    along: [...listen, ...logged],
    good: ['a', 'node-1.example', 'N_2'],
    bad: ['', 'a b', 'a/b', 'x'.repeat(101)],
  },
  {
    name: 'clusterListen',
    env: 'CLUSTER_LISTEN',
    along: [...named, ...logged],
    good: ['127.0.0.1:7000', '[::1]:7000', 'host.example:0'],
    bad: ['', ...badAddresses],
  },
  {
    name: 'clusterAddress',
    env: 'CLUSTER_ADDRESS',
    along: inCluster,
    good: ['node-1.nodes:7000'],
    bad: ['', ...badAddresses],
  },
  {
    name: 'clusterJoin',
    env: 'CLUSTER_JOIN',
    byDefault: '',
    along: inCluster,
    good: ['', 'a:1', 'a:1,b:2,[::1]:3'],
    bad: [...badAddresses, 'a:1,', ',a:1'],
  },
  {
    name: 'shardLog',
    env: 'SHARD_LOG',
    along: [...listen, ...named],
    good: ['etcd://a:2379', 'etcds://a:1,b:2', 'etcd://user:word@a:1', 'etcd://a:1,b:2 etcd://c:1,d:2'],
    bad: [
      'etcd://a:1  etcd://b:1',
      'etcd://a:1 b:1',
      'etcd://a:1 ',
      '',
      'a:2379',
      'http://a:2379',
      'etcd://',
      'etcd://a',
    ],
  },
  {
    name: 'shardLogUser',
    env: 'SHARD_LOG_USER',
    along: [...inCluster, ...password],
    good: ['orrery'],
    bad: ['', 'x'.repeat(101)],
  },
  {
    name: 'shardLogPasswordFile',
    env: 'SHARD_LOG_PASSWORD_FILE',
    along: [...inCluster, ...user],
    good: ['/run/secrets/etcd'],
    bad: [''],
  },
  { name: 'shardLogCa', env: 'SHARD_LOG_CA', along: inCluster, good: ['ca.pem'], bad: [''] },
  {
    name: 'shardLogCert',
    env: 'SHARD_LOG_CERT',
    along: [...inCluster, ...logKey, ...logCa],
    good: ['c.pem'],
    bad: [''],
  },
  {
    name: 'shardLogKey',
    env: 'SHARD_LOG_KEY',
    along: [...inCluster, ...logCert, ...logCa],
    good: ['k.pem'],
    bad: [''],
  },
  { name: 'clientCa', env: 'CLIENT_CAFILE', along: served, good: ['ca.pem'], bad: [''] },
  {
    name: 'clientAuth',
    env: 'CLIENT_AUTH',
    byDefault: 'required',
    along: [...served, '-clientCa', 'ca.pem'],
    good: ['required', 'optional'],
    bad: ['', 'none', 'Required'],
  },
  { name: 'failureDomain', env: 'FAILURE_DOMAIN', along: inCluster, good: ['rack 1'], bad: ['', 'x'.repeat(101)] },
  { name: 'clusterCert', env: 'CLUSTER_CERT', along: [...inCluster, ...key, ...ca], good: ['c.pem'], bad: [''] },
  { name: 'clusterKey', env: 'CLUSTER_KEY', along: [...inCluster, ...cert, ...ca], good: ['k.pem'], bad: [''] },
  { name: 'clusterCa', env: 'CLUSTER_CA', along: [...inCluster, ...cert, ...key], good: ['a.pem'], bad: [''] },
  {
    name: 'notifFlowControl',
    env: 'NOTIF_FLOW_CONTROL',
    along: ['-notificationMode', 'threadpool'],
    good: ['0:1:1', '1:100:5000', '0.5:1:1', '.5:1:1', '1.0:1:1'],
    bad: ['', '1', '1:1', '1.1:1:1', '2:1:1', '-1:1:1', '1:0:1', '1:1:0', '1:1:1:1', 'x:1:1', '.:1:1'],
  },
  {
    name: 't',
    env: 'TRACE',
    along: ['-logLevel', 'DEBUG'],
    good: ['0', '255', '0-255', '70,90', '60,80-90', '5-5'],
    bad: ['', '256', '0-256', '9-8', '1,', ',1', '1-', '-1', '1-2-3', 'a'],
  },
]

export const flagCases: readonly (readonly [name: string, env: string])[] = [
  ['ipv4', 'USEIPV4'],
  ['ipv6', 'USEIPV6'],
  ['https', 'HTTPS'],
  ['multiservice', 'MULTI_SERVICE'],
  ['disableNgsiv1', 'DISABLE_NGSIV1'],
  ['noConsole', 'NO_CONSOLE'],
  ['noStreams', 'NO_STREAMS'],
  ['streamCompression', 'STREAM_COMPRESSION'],
  ['ngsiProxy', 'NGSI_PROXY'],
  ['auditRequired', 'AUDIT_REQUIRED'],
  ['insecureNotif', 'INSECURE_NOTIF'],
  ['clusterInsecure', 'CLUSTER_INSECURE'],
  ['shardLogUnsafe', 'SHARD_LOG_UNSAFE'],
  ['disableCustomNotifications', 'DISABLE_CUSTOM_NOTIF'],
  ['simulatedNotification', 'DROP_NOTIF'],
  ['noCache', 'NOCACHE'],
  ['logAppend', 'LOG_APPEND'],
  ['disableFileLog', 'DISABLE_FILE_LOG'],
  ['fg', 'FOREGROUND'],
  ['logForHumans', 'LOG_FOR_HUMANS'],
  ['relogAlarms', 'RELOG_ALARMS'],
  ['logDeprecate', 'LOG_DEPRECATE'],
  ['disableMetrics', 'DISABLE_METRICS'],
  ['statCounters', 'STAT_COUNTERS'],
  ['statSemWait', 'STAT_SEM_WAIT'],
  ['statTiming', 'STAT_TIMING'],
  ['statNotifQueue', 'STAT_NOTIF_QUEUE'],
  ['dbSSL', 'MONGO_SSL'],
  ['dbDisableRetryWrites', 'MONGO_DISABLE_RETRY_WRITES'],
  ['strictNgsiv1Ids', 'CHECK_ID_V1'],
  ['ngsiv1Autocast', 'NGSIV1_AUTOCAST'],
]

/** Options that are accepted and never have an effect: each causes one warning. */
export const ignoredNames: readonly string[] = [
  ...['connectionMemory', 'reqPoolSize', 'db', 'dbURI', 'dbpwd', 'dbPoolSize', 'dbhost', 'rplSet'],
  ...['dbTimeout', 'dbuser', 'dbAuthMech', 'dbAuthDb', 'dbSSL', 'dbDisableRetryWrites', 'reqMutexPolicy'],
  ...['strictNgsiv1Ids', 'ngsiv1Autocast', 'kafkaTimeout', 'kafkaMaxAge'],
]
