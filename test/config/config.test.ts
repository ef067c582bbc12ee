// Options and environment: accepted values, refusals, and precedence. The options themselves are in cases/options.ts.

import t from 'tap'
import { commandNames } from '../../src/config/commands.js'
import { type Config, type ConfigReading, readConfig, version } from '../../src/config/config.js'
import { optionNames, options } from '../../src/config/options.js'
import { unknownVariablesMax } from '../../src/config/variables.js'
import { conditionalCases, flagCases, ignoredNames, valueCases } from '../cases/options.js'

type Run = Extract<ConfigReading, { kind: 'run' }>

function run(argv: readonly string[], env: Record<string, string> = {}): Run {
  const reading = readConfig(argv, env)
  if (reading.kind !== 'run') throw new Error(`refused: ${JSON.stringify(reading)}`)
  return reading
}

const config = (argv: readonly string[], env: Record<string, string> = {}): Config => run(argv, env).config

function faults(argv: readonly string[], env: Record<string, string> = {}): string[] {
  const reading = readConfig(argv, env)
  return reading.kind === 'refuse' ? reading.lines : []
}

t.test('the table has every option of the specification and no other', async t => {
  const cases = [...valueCases, ...conditionalCases].map(one => [one.name, one.env])
  t.same(optionNames.map(name => [name, options[name].env]).sort(), [...cases, ...flagCases].sort())
})

t.test('two options never share an environment variable', async t => {
  t.equal(new Set(optionNames.map(name => options[name].env)).size, optionNames.length)
})

/** Options that some flags need. */
const neededAlong: Readonly<Record<string, readonly string[]>> = {
  https: ['-key', 'k', '-cert', 'c'],
  auditRequired: ['-auditLog', '-'],
}

for (const { name, env, byDefault, good, bad, along = [] } of [
  ...valueCases.map(one => ({ ...one, along: [] as readonly string[] })),
  ...conditionalCases,
]) {
  t.test(`-${name} has its default, accepts values within its limits and refuses the rest`, async t => {
    t.equal(options[name as keyof typeof options].byDefault, byDefault)
    for (const value of good) {
      t.same(faults([`-${name}`, value, ...along]), [], `-${name} ${value}`)
      t.same(faults(along, { [`CTX_${env}`]: value }), [], `CTX_${env}=${value}`)
      t.same(faults(along, { [`ORION_${env}`]: value }), [], `ORION_${env}=${value}`)
    }
    for (const value of bad) {
      const [line, ...more] = faults([`-${name}`, value, ...along])
      t.same(more, [])
      t.match(line, new RegExp(`^-${name}: (?:".*"|\\*+) is not `), `-${name} ${value}`)
      if (value) t.match(faults(along, { [`CTX_${env}`]: value }), [new RegExp(`^CTX_${env} \\(-${name}\\): `)])
    }
  })
}

for (const [name, env] of flagCases) {
  t.test(`-${name} is a flag, and one of four words in the environment`, async t => {
    const along = neededAlong[name] ?? []
    t.equal(options[name as keyof typeof options].byDefault, false)
    t.same(faults([`-${name}`, ...along]), [])
    t.same(faults([`-${name}=true`, ...along]), [`-${name}: takes no value`])
    for (const word of ['TRUE', 'true', 'FALSE', 'false']) t.same(faults(along, { [`CTX_${env}`]: word }), [])
    for (const word of ['True', '1', 'yes', ' true']) {
      t.same(faults(along, { [`CTX_${env}`]: word }), [
        `CTX_${env} (-${name}): "${word}" is not TRUE, true, FALSE or false`,
      ])
    }
  })
}

t.test('without any option the configuration is the default one', async t => {
  t.same(
    { ...config([]), settings: [] },
    {
      settings: [],
      http: {
        server: undefined,
        port: 1026,
        host: undefined,
        family: 'both',
        tls: undefined,
        connectionsMax: 1020,
        connectionsPerAddressMax: 0,
        idleTimeoutS: 0,
        bodyBytesMax: 1048576,
      },
      answers: { answerBytesMax: 67108864, answersInFlightMax: 536870912 },
      compresses: true,
      cors: undefined,
      vocabulary: undefined,
      workers: 1,
      workersFollowCores: false,
      egress: { allow: [], deny: [] },
      tenants: false,
      store: { directory: './data', durability: 'sync', reserveBytes: 67108864 },
      backup: { keyFile: undefined },
      expiryIntervalMs: 1000,
      queries: { viewBytesMax: 268435456, scanDeadlineMs: 30000, scanRowsMax: 10000000 },
      hasConsole: true,
      streams: { streamsMax: 10000, bufferBytesMax: 67108864, isCompressed: false, ngsiProxy: false },
      notifications: {
        delivery: 'atLeastOnce',
        descendantsMax: 1000,
        mode: 'transient',
        flowControl: undefined,
        httpTimeoutMs: 5000,
        mqttTimeoutMs: 5000,
        mqttIdleMsMax: 3600000,
        messageBytesMax: 8388608,
        simulated: false,
        disableCustomNotifications: false,
        replays: true,
        deadLetters: { bytesMaxInAll: 1073741824, bytesMax: 67108864, ageMsMax: 604800000 },
        tls: { insecure: false, caFile: undefined },
      },
      forwarding: { requestsMax: 1000, pathless: 'plain' },
      log: { level: 'WARN', infoPayloadBytesMax: 5120, lineBytesMax: 32768, deprecate: false, traces: new Set() },
      logging: {
        format: 'pipe',
        forHumans: false,
        file: undefined,
        summaryS: 0,
        relogAlarms: false,
        pidFile: undefined,
      },
      statistics: { counters: false, semWait: false, timing: false, notifQueue: false, byService: true },
    },
  )
})

t.test('every option with an effect arrives in the configuration', async t => {
  const argv =
    '-port 8080 -http1Port 8081 -livePort 8082 -adminPort 8083 -localIp ::1 -ipv6 -https -key k.pem -cert c.pem -tlsMin 1.3 -clientCa ca.pem -clientAuth optional -httpServer node -maxConnections 7 -maxConnectionsPerAddress 6 -reqTimeout 8 ' +
    '-inReqPayloadMaxSize 9 -answerBytesMax 2 -answersInFlightMax 3 -httpCompression off -multiservice -dataDir /d -durability os -diskReserve 12 -backupKeyFile /k -expiryInterval 50 ' +
    '-corsOrigin https://a.example -corsMaxAge -1 -compat fiware -workers 2 -viewMemory 3 -scanDeadline 4 -scanRows 5 -maxStreams 6 -streamBuffer 2 -streamCompression -logLevel debug -t 1,3-4 -logLineMaxSize 200 -logDeprecate ' +
    '-logFormat json -logForHumans -logDir /l -logAppend -logSummary 9 -relogAlarms -pidpath /p ' +
    '-statCounters -statSemWait -statTiming -statNotifQueue -disableMetrics ' +
    '-notifDelivery bestEffort -notifReplay manual -deadLetterMaxAge 3 -deadLetterMaxBytes 128 -notifDescendants 13 -notificationMode threadpool:2:3 -notifFlowControl 0.5:4:5 -httpTimeout 6 -mqttTimeout 7 ' +
    '-mqttMaxAge 8 -outReqMsgMaxSize 9 -simulatedNotification -disableCustomNotifications -logInfoPayloadMaxSize 10 ' +
    '-egressAllow *.city.example,10.0.0.0/8 -egressDeny 10.0.0.1 -cprForwardLimit 11 -fwdPathless slash -insecureNotif -notifCaFile ca.pem'
  t.same(
    { ...config(argv.split(' ')), settings: [] },
    {
      settings: [],
      http: {
        server: 'node',
        port: 8080,
        http1Port: 8081,
        livePort: 8082,
        admin: { port: 8083, host: '::1' },
        host: '::1',
        family: 'ipv6',
        tls: {
          keyFile: 'k.pem',
          certFile: 'c.pem',
          minVersion: '1.3',
          clients: { caFile: 'ca.pem', isRequired: false },
        },
        connectionsMax: 7,
        connectionsPerAddressMax: 6,
        idleTimeoutS: 8,
        bodyBytesMax: 9,
      },
      answers: { answerBytesMax: 2097152, answersInFlightMax: 3145728 },
      compresses: false,
      cors: { origins: ['https://a.example'], maxAgeS: -1 },
      vocabulary: 'Fiware',
      workers: 2,
      workersFollowCores: false,
      egress: { allow: ['*.city.example', '10.0.0.0/8'], deny: ['10.0.0.1'] },
      tenants: true,
      store: { directory: '/d', durability: 'os', reserveBytes: 12582912 },
      backup: { keyFile: '/k' },
      expiryIntervalMs: 50,
      queries: { viewBytesMax: 3145728, scanDeadlineMs: 4, scanRowsMax: 5 },
      hasConsole: true,
      streams: { streamsMax: 6, bufferBytesMax: 2097152, isCompressed: true, ngsiProxy: false },
      notifications: {
        delivery: 'bestEffort',
        descendantsMax: 13,
        mode: 'threadpool:2:3',
        flowControl: { gauge: 0.5, stepMs: 4, waitMsMax: 5 },
        httpTimeoutMs: 6,
        mqttTimeoutMs: 7,
        mqttIdleMsMax: 480000,
        messageBytesMax: 9,
        simulated: true,
        disableCustomNotifications: true,
        replays: false,
        deadLetters: { bytesMaxInAll: 134217728, bytesMax: 8388608, ageMsMax: 180000 },
        tls: { insecure: true, caFile: 'ca.pem' },
      },
      forwarding: { requestsMax: 11, pathless: 'slash' },
      log: { level: 'DEBUG', infoPayloadBytesMax: 10, lineBytesMax: 200, deprecate: true, traces: new Set([1, 3, 4]) },
      logging: {
        format: 'json',
        forHumans: true,
        file: { directory: '/l', append: true },
        summaryS: 9,
        relogAlarms: true,
        pidFile: '/p',
      },
      statistics: { counters: true, semWait: true, timing: true, notifQueue: true, byService: false },
    },
  )
  t.equal(config(['-ipv4']).http.family, 'ipv4')
})

t.test('-compat fiware asks agents where Orion does, unless another option decides', async t => {
  t.equal(config(['-compat', 'fiware']).forwarding.pathless, 'slash')
  t.equal(config(['-compat', 'fiware', '-fwdPathless', 'v2']).forwarding.pathless, 'v2')
})

t.test('-writeConcern 0 is taken as -durability os, unless a durability is named', async t => {
  t.equal(config(['-writeConcern', '0']).store.durability, 'os')
  t.equal(config(['-writeConcern', '1']).store.durability, 'sync')
  t.equal(config(['-writeConcern', '0', '-durability', 'sync']).store.durability, 'sync')
  t.equal(config([], { ORION_MONGO_WRITE_CONCERN: '0' }).store.durability, 'os')
  t.same(run(['-writeConcern', '0']).warnings, [])
})

t.test('the settings are all options with an effect, each with its source', async t => {
  const { settings, warnings, config } = run(['-port', '80', '-dbpwd', 'hunter2', '-connectionMemory', '5'], {
    CTX_WORKERS: '2',
  })
  t.same(
    settings.filter(line => /port |workers|logDir|dbpwd/.test(line)),
    ['-port 80   (-port)', '-workers 2   (CTX_WORKERS (-workers))'],
  )
  t.same(warnings.toSorted(), [
    '-connectionMemory is ignored: buffers grow and shrink as needed',
    '-dbpwd is ignored: the store is embedded, see -dataDir',
  ])
  t.notMatch(settings.join(), 'hunter2')
  t.match(config.settings[0], { name: 'port', value: '80', source: '-port' })
})

t.test(
  '-workers auto is one worker for each core, as many as there can be at most, and the settings show the number',
  async t => {
    const read = (cores: number) => {
      const reading = readConfig(['-workers', 'auto'], {}, () => cores)
      if (reading.kind !== 'run') throw new Error(reading.kind)
      return reading
    }
    for (const [cores, workers] of [
      [1, 1],
      [3, 3],
      [200, 64],
    ] as const) {
      const { config, settings } = read(cores)
      t.match(config, { workers, workersFollowCores: true })
      t.ok(settings.includes(`-workers auto (${workers} here)   (-workers)`))
    }
    t.same(faults([], { CTX_WORKERS: 'many' }), [
      'CTX_WORKERS (-workers): "many" is not auto, or a whole number from 1 to 64',
    ])
  },
)

t.test('the settings show values that follow from other options', async t => {
  const { settings } = run(['-compat', 'fiware', '-writeConcern', '0'])
  t.ok(settings.includes('-durability os   (follows from others)'))
  t.ok(settings.includes('-fwdPathless slash   (follows from others)'))
})

t.test('the effective configuration is one line, without secrets', async t => {
  const { effective } = run(['-port', '80', '-dbURI', 'mongodb://me:hunter2@h/'])
  t.match(effective, /^configuration: -port 80 .* -workers 1 /)
  t.notMatch(effective, /hunter2|\n/)
})

t.test('the configuration is frozen in all its parts', async t => {
  const frozen = config(['-https', '-key', 'k', '-cert', 'c'])
  for (const part of [frozen, frozen.http, frozen.http.tls, frozen.store]) t.ok(Object.isFrozen(part))
})

for (const argv of [['-port', '7'], ['--port', '7'], ['--port=7'], ['-port=7'], ['-port', '6', '--port', '7']]) {
  t.test(`${argv.join(' ')} sets the port to 7`, async t => {
    t.equal(config(argv).http.port, 7)
  })
}

t.test('a value may begin with a dash', async t => {
  t.same(faults(['-httpTimeout', '-1', '-corsMaxAge', '-1', '-dbpwd', '-secret']), [])
  t.equal(config(['-dataDir', '-a']).store.directory, '-a')
})

t.test('the command line wins over the environment, and CTX_ over ORION_', async t => {
  t.equal(config([], { ORION_PORT: '1' }).http.port, 1)
  t.equal(config([], { ORION_PORT: '1', CTX_PORT: '2' }).http.port, 2)
  t.equal(config(['-port', '3'], { ORION_PORT: '1', CTX_PORT: '2' }).http.port, 3)
  t.equal(config(['-multiservice'], { CTX_MULTI_SERVICE: 'FALSE' }).tenants, true)
  t.equal(config([], { ORION_MULTI_SERVICE: 'TRUE', CTX_MULTI_SERVICE: 'FALSE' }).tenants, false)
})

t.test('a variable that something else wins over is not looked at', async t => {
  t.same(faults([], { CTX_PORT: '1', ORION_PORT: 'tcp://10.0.0.1:1026' }), [])
  t.same(faults(['-port', '1'], { CTX_PORT: 'x' }), [])
})

t.test('an empty variable is not set', async t => {
  t.equal(config([], { CTX_PORT: '' }).http.port, 1026)
  t.equal(config([], { CTX_PORT: '', ORION_PORT: '5' }).http.port, 5)
})

t.test('all that is wrong is reported at once, a line each', async t => {
  const argv = ['-port', '0', '-noswap', '-maxConnections', '-fg', 'stray', '-key']
  t.same(faults(argv, { CTX_DURABILITY: 'maybe' }).sort(), [
    '"stray": not an option',
    '-key: needs a value',
    '-maxConnections: needs a value',
    '-noswap: unknown option',
    '-port: "0" is not a whole number from 1 to 65535',
    'CTX_DURABILITY (-durability): "maybe" is not sync, os or replicated',
  ])
})

for (const name of ['noswap', 'expiration', 'harakiri', 'p', 'toString', '__proto__', 'no-fg']) {
  t.test(`-${name} is an unknown option, one line with its value`, async t => {
    t.same(faults([`-${name}`, '60']), [`-${name}: unknown option`])
    t.same(faults([`--${name}=60`]), [`-${name}: unknown option`])
  })
}

const slips: readonly (readonly [given: string, meant: string])[] = [
  ['-prot', '-port'],
  ['-Port', '-port'],
  ['--PORT', '-port'],
  ['-por', '-port'],
  ['-portt', '-port'],
  ['-multiService', '-multiservice'],
  ['-maxConnection', '-maxConnections'],
  ['-notificationmod', '-notificationMode'],
  ['-hlep', '-help'],
]
for (const [given, meant] of slips)
  t.test(`the refusal of ${given} suggests ${meant}`, async t => {
    t.same(faults([given, '7']), [`${given.replace(/^--/, '-')}: unknown option; did you mean ${meant}?`])
  })

const strays: readonly (readonly [argv: readonly string[], line: string])[] = [
  [['exprot'], '"exprot": neither a command nor an option; did you mean export?'],
  [['port', '7'], '"port": neither a command nor an option; did you mean -port?'],
  [['-fg', 'port'], '"port": not an option; did you mean -port?'],
  [['nothing'], '"nothing": neither a command nor an option'],
]
for (const [argv, line] of strays)
  t.test(`${argv.join(' ')} is neither a command nor an option`, async t => {
    t.equal(faults(argv)[0], line)
  })

t.test('settings that contradict each other are refused', async t => {
  t.same(faults(['-ipv4', '-ipv6']), ['-ipv4: excludes -ipv6; without both, both families are served'])
  t.same(faults(['-ipv4'], { CTX_USEIPV6: 'TRUE' }), [
    '-ipv4: excludes CTX_USEIPV6 (-ipv6); without both, both families are served',
  ])
  t.same(faults(['-https']), ['-https: needs -key', '-https: needs -cert'])
  t.same(faults(['-https', '-key', 'k']), ['-https: needs -cert'])
  t.same(faults(['-notifFlowControl', '1:1:1']), ['-notifFlowControl: needs -notificationMode threadpool'])
  t.same(faults(['-t', '0-255']), ['-t: needs -logLevel DEBUG'])
  t.equal(config(['-ngsiProxy']).streams.ngsiProxy, true)
  for (const workers of ['2', 'auto'])
    t.same(faults(['-ngsiProxy', '-workers', workers]), [
      '-ngsiProxy: not together with -workers; an event source is known in one process',
    ])
  const cluster = ['-clusterListen', '127.0.0.1:7000', '-shardLog', 'etcd://127.0.0.1:2379', '-nodeName', 'a']
  t.same(faults(['-ngsiProxy', ...cluster]), [
    '-ngsiProxy: not together with -clusterListen; an event source is known in one process',
  ])
  t.same(faults(['-t', '0-255', '-logLevel', 'INFO']), ['-t: needs -logLevel DEBUG'])
})

t.test('an audit log goes to a file or to standard output, and only one that is there may be required', async t => {
  t.equal(run([]).config.audit, undefined)
  t.strictSame(run(['-auditLog', 'a.log']).config.audit, { file: 'a.log', isRequired: false })
  t.strictSame(run(['-auditLog', '-', '-auditRequired']).config.audit, { file: undefined, isRequired: true })
  t.same(faults(['-auditRequired']), ['-auditRequired: needs -auditLog'])
})

t.test('a bad value is not complained about twice', async t => {
  t.equal(faults(['-t', '1', '-logLevel', 'LOUD']).length, 1)
  t.equal(faults(['-notifFlowControl', '1:1:1', '-notificationMode', 'pool']).length, 1)
  t.equal(faults(['-https', '-key', '', '-cert', 'c']).length, 1)
})

t.test('each ignored option yields one warning, and no other option does', async t => {
  for (const name of optionNames) {
    const { kind, env } = options[name]
    const value = valueCases.find(one => one.name === name)?.good.at(-1)
    if (
      conditionalCases.some(one => one.name === name) ||
      ['https', 'key', 'cert', 'tlsMin', 'reqTimeout', 'auditRequired'].includes(name)
    )
      continue
    const argv = kind.placeholder === '' ? [`-${name}`] : [`-${name}`, value ?? '']
    const warned = ignoredNames.includes(name)
    t.match(run(argv).warnings, warned ? [new RegExp(`^-${name} is ignored: `)] : [], name)
    t.equal(run(argv).warnings.length, warned ? 1 : 0)
    const variable = run([], { [`ORION_${env}`]: value || 'TRUE' })
    t.match(variable.warnings, warned ? [`ORION_${env} (-${name}) is ignored: `] : [])
  }
})

t.test('a variable that is no option is warned of once, without its value', async t => {
  const env = {
    CTX_PROT: 'hunter2',
    ORION_MONGO_HOSTS: 'hunter2',
    CTX_MULTISERVICE: 'TRUE',
    CTX_NOTHING_LIKE_IT: '1',
    CTX_LOG_LEVEL: 'INFO',
    OTHER_PORT: '1',
  }
  const { warnings } = run([], env)
  t.same(warnings, [
    'environment variable CTX_MULTISERVICE is unknown; did you mean CTX_MULTI_SERVICE?',
    'environment variable CTX_NOTHING_LIKE_IT is unknown',
    'environment variable CTX_PROT is unknown; did you mean CTX_PORT?',
    'environment variable ORION_MONGO_HOSTS is unknown; did you mean ORION_MONGO_HOST?',
  ])
})

t.test('variables that Docker, Kubernetes and the image of Orion set cause no warning', async t => {
  const names = ['ORION_SERVICE_HOST', 'ORION_SERVICE_PORT', 'ORION_SERVICE_PORT_HTTP', 'ORION_PORT_1026_TCP']
  const more = ['ORION_PORT_1026_TCP_ADDR', 'CTX_PORT_1026_UDP_PROTO', 'ORION_USER', 'ORION_USER_UID']
  t.same(run([], Object.fromEntries([...names, ...more].map(name => [name, 'x']))).warnings, [])
})

t.test('the address of a service is no port, and one warning reports that', async t => {
  const address = 'tcp://10.0.0.7:1026'
  const { config, warnings } = run([], {
    ORION_PORT: address,
    CTX_LIVE_PORT: address,
    CTX_LIVE_SERVICE_HOST: '10.0.0.7',
    CTX_LIVE_PORT_1026_TCP: address,
    ORION_CONTEXT_BROKER_PORT: address,
  })
  t.match(config.http, { port: 1026, livePort: undefined })
  t.match(warnings, [/^CTX_LIVE_PORT, ORION_PORT: ignored, since it is the address of a service/])
  t.equal(warnings.length, 1)
  t.notMatch(warnings[0], /10\.0/)
  t.equal(run([], { CTX_PORT: address, ORION_PORT: '1027' }).config.http.port, 1027, 'the other prefix counts')
  t.equal(run(['-port', '1028'], { ORION_PORT: address }).config.http.port, 1028)
  t.match(faults([], { ORION_PORT: 'http://h' }), [/ORION_PORT \(-port\): "http:\/\/h" is not/])
})

t.test('very many unknown variables are counted', async t => {
  const env = Object.fromEntries(Array.from({ length: 25 }, (_, n) => [`CTX_X_${String(n).padStart(2, '0')}_Y`, '1']))
  const { warnings } = run([], env)
  t.equal(warnings.length, unknownVariablesMax + 1)
  t.equal(warnings.at(-1), '5 more environment variables are unknown')
})

t.test('an ignored flag that is off yields no warning', async t => {
  t.same(run([], { CTX_NGSIV1_AUTOCAST: 'FALSE' }).warnings, [])
})

t.test('an idle timeout is warned of where it is not heeded', async t => {
  const line =
    '-reqTimeout has an effect with -httpServer node, and on -http1Port and -adminPort: uws closes idle connections after about 10 s'
  t.same(run(['-reqTimeout', '3']).warnings, [line])
  t.same(run(['-reqTimeout', '3', '-httpServer', 'node']).warnings, [])
  t.same(run(['-reqTimeout', '0']).warnings, [])
})

t.test('several origins are a list, and a single one that no browser sends is warned of', async t => {
  t.same(config(['-corsOrigin', 'https://a.example,http://b:8080']).cors, {
    origins: ['https://a.example', 'http://b:8080'],
    maxAgeS: 86400,
  })
  t.equal(config(['-corsOrigin', '__ALL']).cors?.origins, 'all')
  t.same(run(['-corsOrigin', 'https://a.example']).warnings, [])
  for (const one of ['arrakis', 'https://a.example/', 'https://a.example:443', '*'])
    t.same(run(['-corsOrigin', one]).warnings, [
      `-corsOrigin: "${one}" is not the origin of a page, as SCHEME://HOST[:PORT]`,
    ])
})

t.test('TLS 1.3 alone is not for uws', async t => {
  const served = ['-https', '-key', 'k', '-cert', 'c', '-tlsMin', '1.3']
  t.match(faults([...served, '-httpServer', 'uws']), [/^-tlsMin: not together with -httpServer uws/])
  t.same(faults(served), [])
})

t.test('certificates of clients need https, and are not for uws', async t => {
  const served = ['-https', '-key', 'k', '-cert', 'c']
  const asking = [...served, '-clientCa', 'a']
  t.match(faults(['-clientCa', 'a']), [/^-clientCa: needs -https$/])
  t.match(faults([...served, '-clientAuth', 'required']), [/^-clientAuth: needs -clientCa$/])
  t.match(faults([...served, '-clientAuth', 'optional']), [/^-clientAuth: needs -clientCa$/])
  t.match(faults([...asking, '-httpServer', 'uws']), [/^-clientCa: not together with -httpServer uws/])
  t.same(faults([...asking, '-clientAuth', 'optional', '-httpServer', 'node']), [])
  t.same(config(asking).http.tls?.clients, { caFile: 'a', isRequired: true })
  t.same(config(served).http.tls?.clients, undefined)
})

t.test('the second port has to be another one', async t => {
  t.match(faults(['-port', '8080', '-http1Port', '8080']), [/^-http1Port: is the port of -port already/])
  t.same(faults(['-port', '8080', '-http1Port', '8081']), [])
  t.match(faults(['-port', '8080', '-livePort', '8080']), [/^-livePort: is the port of -port already/])
  t.match(faults(['-http1Port', '8081', '-livePort', '8081']), [/^-livePort: is the port of -http1Port already/])
})

t.test('the port for operators has to be another one than every other port of the broker', async t => {
  const inCluster = ['-nodeName', 'a', '-shardLog', 'etcd://e:1', '-clusterListen', '[::]:7026']
  for (const [argv, taken] of [
    [['-port', '8080'], '8080'],
    [[], '1026'],
    [['-http1Port', '8081'], '8081'],
    [['-livePort', '8082'], '8082'],
    [inCluster, '7026'],
  ] as const) {
    const faulty = faults([...argv, '-adminPort', taken])
    t.match(faulty, [/^-adminPort: is the port of -(port|http1Port|livePort|clusterListen) already; it needs one of/])
    t.equal(faulty.length, 1)
    t.same(faults([...argv, '-adminPort', '8083']), [])
  }
  t.same(faults([...inCluster, '-adminPort', '26']), [], 'another port that ends alike')
})

t.test('without an address the port for operators is for this machine alone, in its family', async t => {
  t.equal(config([]).http.admin, undefined)
  t.same(config(['-adminPort', '7']).http.admin, { port: 7, host: '127.0.0.1' })
  t.same(config(['-adminPort', '7', '-ipv6']).http.admin, { port: 7, host: '::1' })
  t.same(config(['-adminPort', '7', '-localIp', '10.0.0.1']).http.admin, { port: 7, host: '127.0.0.1' })
  t.same(config(['-adminPort', '7'], { CTX_ADMIN_LOCALIP: '::' }).http.admin, { port: 7, host: '::' })
  t.match(run(['-adminPort', '7']).effective, / -adminPort 7 -adminLocalIp 127\.0\.0\.1 /)
  t.notMatch(run([]).effective, /admin/)
  t.same(run(['-adminLocalIp', '::1']).warnings, ['-adminLocalIp is ignored: there is no -adminPort'])
})

t.test('a key without https is warned of', async t => {
  t.same(run(['-key', 'k']).warnings, ['-key is ignored: there is no -https'])
})

t.test('the command line and values from the environment can be logged', async t => {
  const env = { CTX_PORT: '1', ORION_FOREGROUND: 'TRUE', CTX_MAX_CONN: '5', OTHER: 'x' }
  const reading = run(['-multiservice', '--port', '2'], env)
  t.equal(reading.commandLine, 'start command line <orrery -multiservice --port 2>')
  t.same(reading.fromEnv.sort(), ['env var CTX_MAX_CONN (-maxConnections): 5', 'env var ORION_FOREGROUND (-fg): TRUE'])
})

t.test('passwords never show', async t => {
  const secret = 'hunter2'
  const byLine = run(['-dbpwd', secret, `--dbpwd=${secret}`, '-fg', '-dbURI', `mongodb://me:${secret}@host/`])
  t.equal(byLine.commandLine, 'start command line <orrery -dbpwd ****** -dbpwd=****** -fg -dbURI ******>')
  t.same(run([], { CTX_MONGO_PASSWORD: secret }).fromEnv, ['env var CTX_MONGO_PASSWORD (-dbpwd): ******'])
  t.notMatch(JSON.stringify(byLine), secret)
  t.notMatch(JSON.stringify(readConfig(['-dbpwd', secret.repeat(1000)], {})), secret)
})

t.test('help and version are printed, with any other options', async t => {
  const print = (...argv: string[]): string => {
    const reading = readConfig(argv, {})
    return reading.kind === 'print' ? reading.text : ''
  }
  t.match(print('--version'), /^orrery \d+\.\d+\.\d+$/)
  t.equal(print('version'), print('--version'))
  t.equal(print('-port', 'x', '--version'), `orrery ${version}`)
  t.match(print('-u'), /^Usage: orrery \[-port <1\.\.65535>\]/)
  for (const help of ['--help', '-help', '-h', '--h', 'help']) t.equal(print(help), print('-U'), help)
  for (const name of commandNames) t.match(print('-U'), `  ${name} `)
  for (const name of optionNames) t.match(print('-U'), `  -${name}`)
  t.match(print('-U'), 'CTX_EXPIRY_INTERVAL, default 1000 ms')
})

t.test('a refusal shows the short usage', async t => {
  t.match(readConfig(['-port', 'x'], {}), { kind: 'refuse', usage: /^Usage: orrery / })
})

t.test('a node of a cluster needs all of its options, and none that contradicts them', async t => {
  const listen = ['-clusterListen', '127.0.0.1:7000']
  const log = ['-shardLog', 'etcd://127.0.0.1:2379']
  const whole = [...listen, ...log, '-nodeName', 'a']
  t.same(faults(whole), [])
  t.same(faults([...whole, '-durability', 'replicated']), [])
  t.same(faults(listen), ['-clusterListen: needs -nodeName', '-clusterListen: needs -shardLog'])
  t.same(faults(['-nodeName', 'a']), ['-nodeName: needs -clusterListen'])
  for (const workers of ['2', 'auto'])
    t.same(faults([...whole, '-workers', workers]), ['-workers: not together with -clusterListen; start several nodes'])
  t.same(faults([...whole, '-durability', 'os']), ['-durability: a node of a cluster has replicated'])
  t.same(faults(['-durability', 'replicated']), ['-durability: replicated needs -shardLog'])
  t.same(faults([...whole, '-clusterCert', 'c.pem', '-clusterKey', 'k.pem']), [
    '-clusterCert: needs -clusterCa',
    '-clusterKey: needs -clusterCa',
  ])
  const known = ['-shardLogUser', 'u', '-shardLogPasswordFile', 'p']
  t.same(faults([...whole, ...known]), [])
  t.same(faults([...whole, '-shardLogUser', 'u']), ['-shardLogUser: needs -shardLogPasswordFile'])
  t.same(faults([...whole, '-shardLogPasswordFile', 'p']), ['-shardLogPasswordFile: needs -shardLogUser'])
  t.same(faults([...listen, '-nodeName', 'a', '-shardLog', 'etcd://me:word@b:2379', ...known]), [
    '-shardLogUser: -shardLog names a user already',
  ])
  t.same(faults([...whole, '-shardLogCa', 'ca.pem']), ['-shardLogCa: needs etcds:// in -shardLog'])
  const secure = [...listen, '-nodeName', 'a', '-shardLog', 'etcds://127.0.0.1:2379']
  t.same(faults([...secure, '-shardLogCa', 'ca.pem']), [])
  t.same(faults([...secure, '-shardLogCert', 'c.pem', '-shardLogKey', 'k.pem']), ['-shardLogCert: needs -shardLogCa'])
})

t.test('the address of the log engine is not printed, since it may contain a password', async t => {
  const reading = readConfig(['-nodeName', 'a', '-clusterListen', 'a:1', '-shardLog', 'etcd://me:secret@b:2379'], {})
  t.equal(reading.kind, 'run')
  if (reading.kind === 'run') {
    t.notMatch(JSON.stringify([reading.commandLine, reading.effective, reading.warnings]), /secret/)
    const { settings } = reading.config
    t.match(
      settings.filter(({ name }) => name === 'shardLog'),
      [{ value: '******', source: '-shardLog' }],
    )
    t.notMatch(JSON.stringify(settings), /secret/)
  }
})
