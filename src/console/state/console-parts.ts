// The parts that every view gets.

import type { ConsoleClient } from '../interface/console-client.js'
import type { AddressBar } from './address.js'
import type { MetricHistory } from './metric-history.js'

export interface ConsoleParts {
  readonly client: ConsoleClient
  readonly bar: AddressBar
  readonly metrics: MetricHistory
}
