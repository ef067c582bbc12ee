// What the forwarder may hold and do at a time.
//
// A provider has a lane of its own, because one that is slow or dead must cost its own requests only: few of them are under way at a time to a
// provider that has not answered the last time, and all such providers together leave room for those that do.

export interface ForwarderLimits {
  /** Requests at a time to one provider that answers. */
  readonly laneSendsMax: number
  /** The same to a provider that has not answered yet, or not the last time. */
  readonly laneUnprovenSendsMax: number
  /** Requests at a time to all providers: the bound on sockets. */
  readonly sendsMax: number
  /** How many of them may go to providers that do not answer. */
  readonly unprovenSendsMax: number
  /** Share of its time that a request must have left to be begun: where many wait in vain, each would cost a connection for a moment. */
  readonly timeLeftShareMin: number
  /** Requests that wait for one provider; further ones fail at once. Each costs its body. */
  readonly laneQueueMax: number
  /** Requests that wait for all of them. */
  readonly queueMax: number
  /** Providers remembered at a time. Each costs 1 KB, and its idle connections; the longest idle ones are forgotten. */
  readonly lanesMax: number
  /** Bytes of an answer's body. Reading as much JSON takes some 60 ms, in which nothing else happens. */
  readonly answerBytesMax: number
}

export const limitsByDefault: ForwarderLimits = {
  laneSendsMax: 32,
  laneUnprovenSendsMax: 4,
  sendsMax: 512,
  unprovenSendsMax: 384,
  timeLeftShareMin: 0.1,
  laneQueueMax: 1_000,
  queueMax: 10_000,
  lanesMax: 1_000,
  answerBytesMax: 10 * 1024 * 1024,
}
