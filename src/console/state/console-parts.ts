// The parts that every view gets.

import type { ConsoleClient } from '../interface/console-client.js'
import type { AddressBar } from './address.js'
import type { MetricHistory } from './metric-history.js'
import type { RequestDraft } from './request-draft.js'

export interface ConsoleParts {
  readonly client: ConsoleClient
  readonly bar: AddressBar
  readonly metrics: MetricHistory
  readonly draft: RequestDraft
}
