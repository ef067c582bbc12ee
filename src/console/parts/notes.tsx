// Short notes of every view: what went wrong, the command with the same effect, a time, how many there are.

import { useState } from 'preact/hooks'
import type { ConsoleClient, RequestProblem } from '../interface/console-client.js'
import type { ConsoleRequest } from '../interface/console-request.js'
import { localTime, number } from './value-text.js'

/** An error of the interface, with its request. */
export function Problem({ problem }: { readonly problem: RequestProblem | undefined }) {
  if (!problem) return null
  const { status, error, text, request } = problem
  return (
    <div class="problem" role="alert">
      <strong>
        {status} {error}
      </strong>{' '}
      <span class="wrap">{text}</span>
      <div class="quiet">
        {request.method} /{request.path}
      </div>
    </div>
  )
}

/** The same request as a command for a shell. */
export function CurlNote({ client, request }: { readonly client: ConsoleClient; readonly request: ConsoleRequest }) {
  const command = client.curl(request)
  return (
    <details class="curl">
      <summary>curl</summary>
      <code class="wrap">{command}</code>
      <CopyButton text={command} name="Copy command" />
    </details>
  )
}

/** Browsers let a page write to the clipboard over TLS and on the machine itself only; elsewhere there is no button. */
export function CopyButton({ text, name }: { readonly text: string; readonly name: string }) {
  const [outcome, setOutcome] = useState<'none' | 'copied' | 'refused'>('none')
  if (!isSecureContext) return null
  const copy = (): void => {
    navigator.clipboard.writeText(text).then(
      () => setOutcome('copied'),
      () => setOutcome('refused'),
    )
  }
  return (
    <>
      <button type="button" onClick={copy}>
        {name}
      </button>
      <span role="status" class="quiet">
        {outcome === 'copied' ? ' copied' : outcome === 'refused' ? ' the browser refuses it' : ''}
      </span>
    </>
  )
}

/** A local time, with UTC in its title. */
export function Moment({ time }: { readonly time: string | undefined }) {
  if (time === undefined || time === '') return <span class="quiet">never</span>
  return (
    <time dateTime={time} title={time}>
      {localTime(time)}
    </time>
  )
}

/** How many there are, and how many of them are shown. */
export function CountNote({
  shown,
  total,
  what,
}: {
  readonly shown: number
  readonly total: number | undefined
  readonly what: string
}) {
  return (
    <span role="status" class="quiet">
      {total === undefined ? 'reading…' : `${number(shown)} of ${number(total)} ${what} shown`}
    </span>
  )
}
