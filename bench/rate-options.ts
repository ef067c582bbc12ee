// What all measurements of rates are told: of what, where, and for how long.

import type { Subject } from './servers.js'

export interface RateOptions {
  readonly subject: Subject
  readonly folder: string
  /** Of one measurement. */
  readonly seconds: number
  readonly rounds: number
  readonly warmUpSeconds: number
  readonly connections: number
}
