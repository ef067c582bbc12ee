// One broker inside the process of the test: everything that `startNode` puts together, on a free port and an empty
// directory.
//
// Requests go out over a Wire, one connection each, so that a test can send requests that no HTTP library would. A
// request is written as its request line; the body is sent as it is given.
//
// Not here: the program as the operator has it (broker-process).

import { systemChance, systemClock } from '../../src/clock.js'
import type { Config } from '../../src/config/config.js'
import { noTraces } from '../../src/messages/admin.js'
import type { Logger } from '../../src/ports.js'
import { startNode } from '../../src/process/node.js'
import type { RunningNode, Surroundings } from '../../src/process/surroundings.js'
import { Wire } from '../http/wire.js'
import { type Teardown, tempDir } from './broker-process.js'

export type HttpServer = 'node' | 'uws'

/** The two servers that one suite has to fit. */
export const httpServers: readonly HttpServer[] = ['node', 'uws']

export interface LocalNodeOptions {
  /** When absent, any client may do everything. */
  readonly accessFile?: string | undefined
  /** When absent, there is no audit log. */
  readonly audit?: Config['audit']
  readonly backupKeyFile?: string
  readonly connectionsMax?: number
  readonly server?: HttpServer
  /** When absent, plain HTTP. */
  readonly tls?: Config['http']['tls']
  readonly tenants?: boolean
  readonly expiryIntervalMs?: number
  readonly answers?: Partial<Config['answers']>
  readonly queries?: Partial<Config['queries']>
  readonly notifications?: Partial<Config['notifications']>
  readonly forwarding?: Partial<Config['forwarding']>
  readonly compresses?: boolean
  readonly cors?: Config['cors']
  readonly ngsiProxy?: boolean
  readonly hasConsole?: boolean
  readonly vocabulary?: Config['vocabulary']
  readonly egress?: Partial<Config['egress']>
  readonly statistics?: Partial<Config['statistics']>
  readonly settings?: Config['settings']
  readonly logging?: Partial<Config['logging']>
  readonly surroundings?: Partial<Surroundings>
  /** When absent, an empty one is made. */
  readonly directory?: string
  /** When absent, operators have no port of their own. */
  readonly admin?: Config['http']['admin']
  readonly workers?: number
  /** Reserve on the disk; little when absent, for tests are many. */
  readonly reserveBytes?: number
}

export interface Answer {
  readonly status: number
  /** By lower-case name. */
  readonly headers: Record<string, string>
  readonly text: string
  /** The body as JSON; undefined when it is none. */
  readonly json: unknown
}

/** A broker on a port, and how to ask it. */
export class LocalNode {
  readonly port: number
  /** The node on that port, when it runs in this process. */
  readonly running: RunningNode | undefined

  constructor(port: number, running?: RunningNode) {
    this.port = port
    this.running = running
  }

  /** Sends one request as it is given: only `Host` and the length of a body are added. */
  async ask(line: string, headers: readonly string[] = [], body: string | Uint8Array = ''): Promise<Answer> {
    const wire = await Wire.to(this.port)
    try {
      // A JavaScript string is sent as UTF-8.
      await wire.request(line, headers, Buffer.from(body))
      return await readAnswer(wire, line)
    } finally {
      wire.leave()
    }
  }

  /** One request whose body, if there is one, is JSON. */
  json(line: string, body?: unknown, headers: readonly string[] = []): Promise<Answer> {
    if (body === undefined) return this.ask(line, headers)
    return this.ask(line, ['Content-Type: application/json', ...headers], JSON.stringify(body))
  }
}

/** The next answer on a connection. */
export async function readAnswer(wire: Wire, line = ''): Promise<Answer> {
  const { status, headers, body } = await wire.answer(line.startsWith('HEAD '))
  const text = Buffer.from(body, 'latin1').toString()
  const isJson = headers['content-type'] === 'application/json' && text !== ''
  return { status, headers, text, json: isJson ? JSON.parse(text) : undefined }
}

/** A logger that keeps errors and discards the rest. */
export function errorsOnly(): { readonly logger: Logger; readonly errors: string[] } {
  const errors: string[] = []
  const keep = (message: string): void => {
    errors.push(message)
  }
  const forget = (): void => {}
  return {
    errors,
    logger: { level: 'ERROR', fatal: keep, error: keep, warn: forget, info: forget, debug: forget, summary: forget },
  }
}

const mb = 1024 * 1024

const notificationsForTests: Config['notifications'] = {
  delivery: 'atLeastOnce',
  descendantsMax: 1000,
  mode: 'transient',
  flowControl: undefined,
  httpTimeoutMs: 5_000,
  mqttTimeoutMs: 5_000,
  mqttIdleMsMax: 0,
  messageBytesMax: 8_388_608,
  simulated: false,
  disableCustomNotifications: false,
  replays: true,
  deadLetters: { bytesMaxInAll: 1024 * mb, bytesMax: 64 * mb, ageMsMax: 604_800_000 },
  tls: { insecure: false, caFile: undefined },
}

export const logForTests: Config['log'] = {
  level: 'ERROR',
  infoPayloadBytesMax: 5120,
  lineBytesMax: 32_768,
  deprecate: false,
  traces: noTraces,
}

/** Starts a node that ends with the test. A failure of its store fails the test. */
export async function startLocalNode(
  t: Teardown & { fail(message: string): unknown },
  options: LocalNodeOptions = {},
): Promise<LocalNode> {
  const {
    server = 'node',
    tenants = true,
    expiryIntervalMs = 20,
    workers = 1,
    reserveBytes = 65_536,
    connectionsMax = 1020,
    queries,
    notifications,
    forwarding,
    surroundings,
  } = options
  const config: Config = {
    http: {
      server,
      port: 0,
      http1Port: undefined,
      livePort: undefined,
      admin: options.admin,
      host: '127.0.0.1',
      family: 'both',
      tls: options.tls,
      connectionsMax,
      connectionsPerAddressMax: 0,
      idleTimeoutS: 0,
      bodyBytesMax: 1_048_576,
    },
    answers: { answerBytesMax: 64 * 1024 * 1024, answersInFlightMax: 512 * 1024 * 1024, ...options.answers },
    access: options.accessFile === undefined ? undefined : { file: options.accessFile },
    audit: options.audit,
    backup: { keyFile: options.backupKeyFile },
    compresses: options.compresses ?? true,
    cors: options.cors,
    egress: { allow: [], deny: [], ...options.egress },
    vocabulary: options.vocabulary,
    workers,
    workersFollowCores: false,
    cluster: undefined,
    tenants,
    store: { directory: options.directory ?? tempDir(t), durability: 'os', reserveBytes },
    expiryIntervalMs,
    queries: { viewBytesMax: 64 * 1024 * 1024, scanDeadlineMs: 30_000, scanRowsMax: 10_000_000, ...queries },
    hasConsole: options.hasConsole ?? true,
    streams: {
      ...{ streamsMax: 100, bufferBytesMax: 64 * 1024 * 1024, isCompressed: false },
      ngsiProxy: options.ngsiProxy ?? false,
    },
    notifications: { ...notificationsForTests, ...notifications },
    forwarding: { requestsMax: 1_000, pathless: 'plain', ...forwarding },
    settings: options.settings ?? [],
    log: logForTests,
    logging: {
      format: 'pipe',
      forHumans: false,
      file: undefined,
      summaryS: 0,
      relogAlarms: false,
      pidFile: undefined,
      ...options.logging,
    },
    statistics: {
      counters: false,
      semWait: false,
      timing: false,
      notifQueue: false,
      byService: true,
      ...options.statistics,
    },
  }
  const { logger, errors } = errorsOnly()
  const node: RunningNode = await startNode(config, {
    clock: systemClock,
    chance: systemChance,
    logger,
    onFailure: error => t.fail(error.message),
    ...surroundings,
  })
  t.teardown(async () => {
    await node.drain()
    await node.close()
    for (const error of errors) t.fail(error)
  })
  return new LocalNode(node.port, node)
}
