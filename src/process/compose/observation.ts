// The parts that observe a node: its log, its alarms and its counters. They exist before the other parts.

import type { Config } from '../../config/config.js'
import type { LogSettings } from '../../messages/admin.js'
import { Alarms, Summary } from '../../observe/alarms.js'
import { ClockReporter } from '../../observe/clock-reporter.js'
import { ForwardingTallies, TenantTallies } from '../../observe/label-tallies.js'
import { LoopDelay } from '../../observe/loop-delay.js'
import { LoopUtilization } from '../../observe/loop-utilization.js'
import { RegistrationTallies } from '../../observe/registration-tallies.js'
import { LogReporter } from '../../observe/reporters.js'
import { ConnectionTallies, RequestTallies } from '../../observe/request-tallies.js'
import { ServiceTallies } from '../../observe/service-metrics.js'
import { StreamTallies } from '../../observe/stream-tallies.js'
import type { Logger } from '../../ports.js'
import type { Surroundings } from '../surroundings.js'

export interface Observation {
  readonly logger: Logger
  /** The settings of the logger, which operators may change. */
  readonly log: LogSettings
  readonly alarms: Alarms
  readonly summary: Summary
  readonly requests: RequestTallies
  readonly connections: ConnectionTallies
  /** Requests by tenant; undefined as `services`. */
  readonly tenants: TenantTallies | undefined
  readonly forwardings: ForwardingTallies
  readonly registrations: RegistrationTallies
  readonly streams: StreamTallies
  /** undefined: numbers by service are not enabled. */
  readonly services: ServiceTallies | undefined
  readonly loop: LoopDelay
  readonly loopUtilization: LoopUtilization
  /** Reports losses of the engine of a cluster's log. */
  readonly logReporter: LogReporter
  /** Reports a wrong clock of a node of a cluster. */
  readonly clockReporter: ClockReporter
}

export function openObservation(
  { log: levels, logging, statistics }: Config,
  { clock, logger, log = { ...levels } }: Surroundings,
): Observation {
  const alarms = new Alarms(logger, logging.relogAlarms, clock)
  return {
    logger,
    log,
    alarms,
    summary: new Summary(alarms),
    requests: new RequestTallies(),
    connections: new ConnectionTallies(),
    tenants: statistics.byService ? new TenantTallies() : undefined,
    forwardings: new ForwardingTallies(),
    registrations: new RegistrationTallies(clock),
    streams: new StreamTallies(),
    services: statistics.byService ? new ServiceTallies() : undefined,
    loop: new LoopDelay(clock),
    loopUtilization: new LoopUtilization(clock),
    logReporter: new LogReporter(logger, alarms),
    clockReporter: new ClockReporter(logger, alarms),
  }
}
