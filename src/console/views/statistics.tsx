// The statistics of the broker, as rows: the path of a member in the answer, and its value.

import { useState } from 'preact/hooks'
import type { Json, JsonObject } from '../../domain/json.js'
import type { ConsoleClient, RequestProblem } from '../interface/console-client.js'
import type { ConsoleRequest } from '../interface/console-request.js'
import { Question } from '../parts/dialog.js'
import { CountNote, CurlNote, Problem } from '../parts/notes.js'
import { valueText } from '../parts/value-text.js'
import { useReading } from '../state/reading.js'

/** Rows that are shown. */
const rowsMax = 200

const request: ConsoleRequest = { method: 'GET', path: 'statistics' }

export function StatisticsPart({ client }: { readonly client: ConsoleClient }) {
  const { json, problem, again } = useReading<JsonObject>(client, request)
  const [resets, setResets] = useState(false)
  const [failed, setFailed] = useState<RequestProblem | undefined>(undefined)
  const reset = async (): Promise<void> => {
    setResets(false)
    const answer = await client.ask({ method: 'DELETE', path: request.path })
    setFailed(answer.ok ? undefined : answer.problem)
    if (answer.ok) again()
  }
  const rows = json ? rowsOf(json) : []
  return (
    <>
      <h2>Statistics</h2>
      <p class="quiet">
        Since the start, or since the last reset. The options <code>-statCounters</code>, <code>-statTiming</code>,{' '}
        <code>-statNotifQueue</code> and <code>-statSemWait</code> add blocks.
      </p>
      <Problem problem={problem ?? failed} />
      <div class="buttons">
        <CountNote shown={Math.min(rows.length, rowsMax)} total={json && rows.length} what="numbers" />
        <button type="button" onClick={again}>
          Read again
        </button>
        <button type="button" onClick={() => setResets(true)}>
          Reset…
        </button>
      </div>
      <dl class="facts">
        {rows
          .slice(0, rowsMax)
          .flatMap(([name, value]) => [
            <dt key={`name ${name}`}>{name}</dt>,
            <dd key={`value ${name}`}>{valueText(value)}</dd>,
          ])}
      </dl>
      <CurlNote client={client} request={request} />
      {resets && (
        <Question
          title="Reset the statistics?"
          text="All counters and times begin anew, for everybody who reads them."
          verb="Reset"
          onYes={() => void reset()}
          onNo={() => setResets(false)}
        />
      )}
    </>
  )
}

/** The numbers and texts of an object, however deep. */
function rowsOf(object: JsonObject, above = ''): [name: string, value: Json][] {
  return Object.entries(object).flatMap(([key, value]): [string, Json][] => {
    const name = above === '' ? key : `${above} › ${key}`
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    return isObject ? rowsOf(value as JsonObject, name) : [[name, value]]
  })
}
