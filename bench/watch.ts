// The cost of counting requests: the HTTP layer without a server, with and without a watcher, in turn.
//
//     node dist/bench/watch.js
//
// Headers are made anew for each request, as a server passes them; their hashes are part of the cost.

import { systemChance, systemClock } from '../src/clock.js'
import type { Exchange } from '../src/http/front.js'
import type { Reply } from '../src/http/reply.js'
import type { Request } from '../src/http/request.js'
import type { Route } from '../src/http/routes.js'
import { Server } from '../src/http/server.js'
import { noTraces } from '../src/messages/admin.js'
import { Alarms, Summary } from '../src/observe/alarms.js'
import { ForwardingTallies, TenantTallies } from '../src/observe/label-tallies.js'
import { RegistrationTallies } from '../src/observe/registration-tallies.js'
import { RequestTallies } from '../src/observe/request-tallies.js'
import { ServiceTallies } from '../src/observe/service-metrics.js'
import { StatisticsBook } from '../src/observe/statistics.js'
import { TrafficWatcher } from '../src/observe/traffic-watcher.js'
import type { Logger } from '../src/ports.js'

const requestsPerRound = 100_000
const rounds = 41

const answer = Buffer.alloc(300)
const route: Route = {
  template: '/v2',
  allow: 'GET',
  refusals: 'usual',
  read: new Map([['GET', (_request: Request, reply: Reply) => reply.json(answer)]]),
  write: new Map(),
  isCompressed: true,
  needs: { GET: 'principal' },
}
const elsewhere = () => ({
  queue: { in: 0, out: 0, reject: 0, sentOk: 0, sentError: 0, timeInQueueMs: 0, size: 0 },
  simulated: 0,
  commitMs: 0,
  lastCommitMs: 0,
})
const blocks = { counters: false, semWait: false, timing: false, notifQueue: false }
const silence = () => {}
const logger: Logger = {
  level: 'WARN',
  fatal: silence,
  error: silence,
  warn: silence,
  info: silence,
  debug: silence,
  summary: silence,
}
const log = {
  level: 'WARN',
  infoPayloadBytesMax: 5120,
  lineBytesMax: 32768,
  deprecate: false,
  traces: noTraces,
} as const

const head = Buffer.from('GET/v2tenant/some/path')

class FreshRequest implements Exchange {
  readonly method = head.toString('latin1', 0, 3)
  readonly path = head.toString('latin1', 3, 6)
  readonly query = ''
  readonly asksForWebSocket = false

  header(name: string): string {
    if (name === 'fiware-service') return head.toString('latin1', 6, 12)
    return name === 'fiware-servicepath' ? head.toString('latin1', 12) : ''
  }

  headerTimes(name: string): number {
    return this.header(name) === '' ? 0 : 1
  }

  clientAddress(): string {
    return '127.0.0.1'
  }

  reply(): void {}
  stream(): void {}
  events(): undefined {}
  webSocket(): boolean {
    return false
  }
  replyAndClose(): void {}
}

function nsPerRequest(server: Server): number {
  // Processor time, because other programs may use the machine.
  const started = process.cpuUsage()
  for (let n = 0; n < requestsPerRound; n++) server.onRequest(new FreshRequest())
  return (process.cpuUsage(started).user * 1000) / requestsPerRound
}

const settings = { bodyBytesMax: 1_000_000, tenants: true }
const alarms = new Alarms(logger, false, systemClock)
const watch = new TrafficWatcher({
  logger,
  log,
  requests: new RequestTallies(),
  tenants: new TenantTallies(),
  forwarding: new ForwardingTallies(),
  registrations: new RegistrationTallies(systemClock),
  statistics: new StatisticsBook(blocks, systemClock, elsewhere),
  services: new ServiceTallies(),
  alarms,
  summary: new Summary(alarms),
})
const plain = new Server(() => route, settings, systemChance, logger)
const watched = new Server(() => route, settings, systemChance, logger, { watch, clock: systemClock })

// The least disturbed round of each, because other programs may use the machine.
let plainNs = Number.POSITIVE_INFINITY
let watchedNs = Number.POSITIVE_INFINITY
for (let round = 0; round < rounds; round++) {
  plainNs = Math.min(plainNs, nsPerRequest(plain))
  watchedNs = Math.min(watchedNs, nsPerRequest(watched))
}
const extraNs = (watchedNs - plainNs).toFixed(0)
console.log(
  `a request: ${plainNs.toFixed(0)} ns when nobody watches, ${extraNs} ns more when it is counted (best of ${rounds})`,
)
