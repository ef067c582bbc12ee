// An honest client on a busy machine: it asks again as long as it is told to come again.
//
// Workers that the machine keeps from answering each other for a second say 503 with `Retry-After`; that is no mistake
// of theirs.

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
