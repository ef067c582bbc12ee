// Options of all measurements of rates: the subject, the folder, and the times.

import type { Subject } from './servers.js'

export interface RateOptions {
  readonly subject: Subject
  readonly folder: string
  /** Seconds of one measurement. */
  readonly seconds: number
  readonly rounds: number
  readonly warmUpSeconds: number
  readonly connections: number
}
