// The statistics of a process, as it answers them to `GET /statistics` and `GET /cache/statistics` (operations.md §4).
//
// Times are seconds. `mongo...` are the names of the reference: they mean the store, whatever it is.
//
// Not here: the code that counts, and the JSON (observe/statistics.ts).

/** Counts by route and verb. */
export type RequestCounts = Readonly<Record<string, Readonly<Record<string, number>>>>

export interface StatisticsCounters {
  readonly jsonRequests: number
  readonly textRequests: number
  readonly noPayloadRequests: number
  readonly requests: RequestCounts
  readonly missedVerb: number
  readonly invalidRequests: number
  readonly notificationsSent: number
  readonly deprecatedFeatures: Readonly<Record<DeprecatedFeature, number>>
}

export type DeprecatedFeature = 'ngsiv1Requests' | 'ngsiv1Forwarding' | 'ngsiv1NotifFormat' | 'geoFormat'

export interface Timing {
  readonly jsonV2Parse: number
  readonly mongoWriteWait: number
  readonly total: number
}

export interface QueueStatistics {
  readonly in: number
  readonly out: number
  readonly reject: number
  readonly sentOk: number
  readonly sentError: number
  readonly timeInQueue: number
  readonly size: number
}

/** What one process tells; a block that was not asked for at start is undefined. */
export interface Statistics {
  readonly uptimeS: number
  /** Since the start or the last reset. */
  readonly intervalS: number
  readonly counters?: StatisticsCounters | undefined
  readonly hasSemWait: boolean
  readonly timing?: { readonly accumulated: Timing; readonly last: Timing } | undefined
  readonly notifQueue?: QueueStatistics | undefined
  readonly simulatedNotifications: number
}

export interface CacheStatistics {
  /** Of subscriptions, joined; or the words that there are too many. */
  readonly ids: string
  readonly refresh: number
  readonly inserts: number
  readonly removes: number
  readonly updates: number
  readonly items: number
}
