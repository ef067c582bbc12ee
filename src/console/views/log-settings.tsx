// The settings of the log, which an operator may change while the broker runs: level, lengths, trace levels.

import { useState } from 'preact/hooks'
import type { ConsoleClient, RequestProblem } from '../interface/console-client.js'
import type { ConsoleRequest } from '../interface/console-request.js'
import { CurlNote, Problem } from '../parts/notes.js'
import { useReading } from '../state/reading.js'

interface LogShape {
  readonly level: string
  readonly infoPayloadMaxSize: number
  readonly lineMaxSize: number
  readonly deprecate: boolean
}

/** What a person has typed or chosen, and the broker has not accepted yet. */
interface LogText {
  readonly level?: string
  readonly infoPayloadMaxSize?: string
  readonly lineMaxSize?: string
  readonly deprecate?: boolean
}

const levels = ['NONE', 'FATAL', 'ERROR', 'WARN', 'INFO', 'DEBUG']

const shown: ConsoleRequest = { method: 'GET', path: 'admin/log' }
const traces: ConsoleRequest = { method: 'GET', path: 'log/trace' }

export function LogPart({ client }: { readonly client: ConsoleClient }) {
  const { json, problem, again } = useReading<LogShape>(client, shown)
  const [text, setText] = useState<LogText>({})
  const [sent, setSent] = useState<ConsoleRequest | undefined>(undefined)
  const [failed, setFailed] = useState<RequestProblem | undefined>(undefined)
  const [isDone, setIsDone] = useState(false)
  const log = json && { ...json, ...text }
  const change = async (event: Event): Promise<void> => {
    event.preventDefault()
    if (!log) return
    const query = Object.fromEntries(Object.entries(log).map(([name, value]) => [name, String(value)]))
    const request = { method: 'PUT', path: 'admin/log', query } as const
    const answer = await client.ask(request)
    setSent(request)
    setFailed(answer.ok ? undefined : answer.problem)
    setIsDone(answer.ok)
    if (!answer.ok) return
    setText({})
    again()
  }
  return (
    <>
      <h2>Log</h2>
      <p class="quiet">Changes hold until the next start.</p>
      <Problem problem={problem} />
      {log && (
        <form onSubmit={change}>
          <div class="filters">
            <label class="field">
              Level
              <select
                value={log.level}
                onChange={({ currentTarget }) => setText({ ...text, level: currentTarget.value })}
              >
                {levels.map(level => (
                  <option key={level}>{level}</option>
                ))}
              </select>
            </label>
            <label class="field">
              Bytes of a body in a line at INFO
              <input
                inputMode="numeric"
                value={log.infoPayloadMaxSize}
                onInput={({ currentTarget }) => setText({ ...text, infoPayloadMaxSize: currentTarget.value })}
              />
            </label>
            <label class="field">
              Bytes of a line
              <input
                inputMode="numeric"
                value={log.lineMaxSize}
                onInput={({ currentTarget }) => setText({ ...text, lineMaxSize: currentTarget.value })}
              />
            </label>
            <label class="tick">
              <input
                type="checkbox"
                checked={log.deprecate}
                onChange={({ currentTarget }) => setText({ ...text, deprecate: currentTarget.checked })}
              />
              Log deprecated usages
            </label>
            <button type="submit" class="main">
              Change the log
            </button>
            <span role="status" class="quiet">
              {isDone && `The level is ${json?.level}.`}
            </span>
          </div>
          <Problem problem={failed} />
        </form>
      )}
      <TraceLevels client={client} />
      <CurlNote client={client} request={sent ?? shown} />
    </>
  )
}

function TraceLevels({ client }: { readonly client: ConsoleClient }) {
  const { json, problem, again } = useReading<{ readonly tracelevels: string }>(client, traces)
  const [text, setText] = useState('')
  const [failed, setFailed] = useState<RequestProblem | undefined>(undefined)
  const send = async (method: 'PUT' | 'DELETE', path: string): Promise<void> => {
    const answer = await client.ask({ method, path })
    setFailed(answer.ok ? undefined : answer.problem)
    if (answer.ok) again()
  }
  const set = (event: Event): void => {
    event.preventDefault()
    void send('PUT', `log/trace/${encodeURIComponent(text.trim())}`)
  }
  const levels = json?.tracelevels
  return (
    <form class="filters" onSubmit={set}>
      <label class="field">
        Trace levels, such as 19,21-25
        <input required value={text} onInput={({ currentTarget }) => setText(currentTarget.value)} />
      </label>
      <button type="submit">Set trace levels</button>
      <button type="button" onClick={() => void send('DELETE', 'log/trace')}>
        Clear trace levels
      </button>
      <span role="status">Set: {levels === undefined || levels === 'empty' ? 'none' : levels}</span>
      <Problem problem={problem ?? failed} />
    </form>
  )
}
