// An honest client on a busy machine: it repeats a request as long as the answer is 503.
//
// Workers that cannot answer each other for a second on a busy machine answer 503 with `Retry-After`; that is not a
// failure.

import { setTimeout as pause } from 'node:timers/promises'
import { type Answer, HttpClient } from '../support/http-client.js'

const patienceMs = 60_000
const againMs = 100

export class PatientClient extends HttpClient {
  override async send(
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Answer> {
    for (const untilMs = performance.now() + patienceMs; ; await pause(againMs)) {
      const answer = await super.send(method, path, body, headers)
      if (answer.status !== 503 || performance.now() > untilMs) return answer
    }
  }
}
