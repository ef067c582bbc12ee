// The answer to a request that a person has typed: status, time, headers and body.

import { useState } from 'preact/hooks'
import type { TypedAnswer } from '../interface/typed-answer.js'
import type { DraftOutcome } from '../state/request-draft.js'
import { CopyButton } from './notes.js'
import { number, secondsText } from './value-text.js'

export function AnswerNote({ outcome }: { readonly outcome: DraftOutcome }) {
  switch (outcome.kind) {
    case 'none':
      return null
    case 'waiting':
      return <p role="status">Waiting for the answer…</p>
    case 'unanswered':
      return (
        <div class="problem" role="alert">
          <strong>No answer</strong> <span class="wrap">to {outcome.line}</span>
        </div>
      )
    case 'answered':
      return <Answered line={outcome.line} answer={outcome.answer} />
  }
}

function Answered({ line, answer }: { readonly line: string; readonly answer: TypedAnswer }) {
  const [indents, setIndents] = useState(true)
  const { status, statusText, headers, text, isCut, tookMs } = answer
  const indented = isCut ? undefined : indentedJson(text)
  const shown = indents && indented !== undefined ? indented : text
  return (
    <section aria-labelledby="answer-title">
      <h2 id="answer-title">Answer</h2>
      <p role="status">
        <strong class={status < 400 ? 'good' : 'bad'}>
          {status} {statusText}
        </strong>{' '}
        after {secondsText(tookMs / 1000)}, {number(text.length)} characters
        {isCut && ' shown; the answer goes on'}
        <br />
        <span class="quiet wrap">{line}</span>
      </p>
      <details class="curl">
        <summary>{number(headers.length)} headers</summary>
        <dl class="facts">
          {headers.flatMap(([name, value]) => [
            <dt key={`name ${name}`}>{name}</dt>,
            <dd key={`value ${name}`}>{value}</dd>,
          ])}
        </dl>
      </details>
      {text !== '' && (
        <>
          <div class="buttons">
            {indented !== undefined && (
              <label class="tick">
                <input
                  type="checkbox"
                  checked={indents}
                  onChange={({ currentTarget }) => setIndents(currentTarget.checked)}
                />
                Indented
              </label>
            )}
            <CopyButton name="Copy the body" text={text} />
          </div>
          <pre class="answer" tabIndex={0} role="region" aria-label="Body of the answer">
            {shown}
          </pre>
        </>
      )}
    </section>
  )
}

/** undefined: the text is no JSON. */
function indentedJson(text: string): string | undefined {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2)
  } catch {
    return undefined
  }
}
