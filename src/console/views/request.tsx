// Try it: a request as it is typed, and its answer. The colour of the button shows whether it changes something.

import type { ConsoleClient } from '../interface/console-client.js'
import { bodyText, type DescribedOperation, isOf } from '../interface/open-api.js'
import { changesSomething, type TypedMethod, typedMethods } from '../interface/typed-request.js'
import { AnswerNote } from '../parts/answer-note.js'
import { CopyButton } from '../parts/notes.js'
import { number } from '../parts/value-text.js'
import type { ConsoleParts } from '../state/console-parts.js'
import { useValue } from '../state/observable.js'
import { useOperations } from '../state/operations.js'
import type { RequestDraft } from '../state/request-draft.js'
import { scopeOf } from '../state/scope.js'

const isMethod = (text: string): text is TypedMethod => typedMethods.some(one => one === text)

export function RequestView({ client, bar, draft }: ConsoleParts) {
  const address = useValue(bar.address)
  const scope = scopeOf(address)
  const { method: named = 'GET', target = '/v2/entities?limit=20' } = address.parameters
  const method = isMethod(named) ? named : 'GET'
  const parts = useValue(draft.parts)
  const operations = useOperations()
  const known = operations.find(one => one.method === method && isOf(one.path, target))
  const reading = client.read({ method, target, ...parts }, scope)
  const choose = ({ method, path, example }: DescribedOperation): void => {
    bar.change({ method, target: path })
    // A body that was typed stays, unless it is an example.
    const isExample = operations.some(one => bodyText(one.example) === parts.body)
    if (isExample) draft.parts.set({ ...parts, body: bodyText(example) })
  }
  const send = async (event: Event): Promise<void> => {
    event.preventDefault()
    if (reading.ok) await exchange(client, draft, reading)
  }
  return (
    <section aria-labelledby="view-title">
      <h1 id="view-title">Try it</h1>
      <p class="quiet">
        A request to this broker, with the tenant, the service path and the key of this page. It goes nowhere else.
      </p>
      <form onSubmit={send}>
        <div class="filters">
          <label class="field operation">
            Operation ({number(operations.length)})
            <select
              value={known ? operations.indexOf(known) : -1}
              onChange={({ currentTarget }) => {
                const chosen = operations[Number(currentTarget.value)]
                if (chosen) choose(chosen)
              }}
            >
              <option value={-1}>typed below</option>
              {operations.map((one, at) => (
                <option key={`${one.method} ${one.path}`} value={at}>
                  {one.method} {one.path} – {one.summary}
                </option>
              ))}
            </select>
          </label>
        </div>
        <div class="request-line">
          <label>
            Method
            <select value={method} onChange={({ currentTarget }) => bar.change({ method: currentTarget.value })}>
              {typedMethods.map(one => (
                <option key={one}>{one}</option>
              ))}
            </select>
          </label>
          <label>
            Path and query
            <input
              required
              data-filter="first"
              spellcheck={false}
              autocomplete="off"
              value={target}
              aria-invalid={!reading.ok}
              onInput={({ currentTarget }) => bar.change({ target: currentTarget.value })}
            />
          </label>
        </div>
        {known && <OperationNote operation={known} target={target} />}
        <label class="block">
          Headers, one in a line
          <textarea
            rows={2}
            spellcheck={false}
            value={parts.headers}
            onInput={({ currentTarget }) => draft.parts.set({ ...parts, headers: currentTarget.value })}
          />
        </label>
        {changesSomething(method) && (
          <label class="block">
            Body
            <textarea
              rows={Math.min(20, Math.max(4, parts.body.split('\n').length))}
              spellcheck={false}
              value={parts.body}
              onInput={({ currentTarget }) => draft.parts.set({ ...parts, body: currentTarget.value })}
            />
          </label>
        )}
        {!reading.ok && (
          <p class="field-problem" role="alert">
            {reading.fault}
          </p>
        )}
        <div class="buttons">
          <button type="submit" class={changesSomething(method) ? 'writes' : 'main'} disabled={!reading.ok}>
            Send {method}
          </button>
          {reading.ok && <CopyButton name="Copy as curl" text={client.curlOfTyped(reading.request)} />}
        </div>
      </form>
      {reading.ok && (
        <details class="curl">
          <summary>curl</summary>
          <code class="wrap">{client.curlOfTyped(reading.request)}</code>
        </details>
      )}
      <AnswerNote outcome={useValue(draft.outcome)} />
    </section>
  )
}

type ReadRequest = Extract<ReturnType<ConsoleClient['read']>, { ok: true }>

async function exchange(client: ConsoleClient, draft: RequestDraft, { request }: ReadRequest): Promise<void> {
  const { method, url } = request
  const line = `${method} ${url.pathname}${url.search}`
  draft.outcome.set({ kind: 'waiting' })
  const answer = await client.exchange(request)
  draft.outcome.set(answer ? { kind: 'answered', line, answer } : { kind: 'unanswered', line })
}

function OperationNote({
  operation: { path, summary, parameters },
  target,
}: {
  readonly operation: DescribedOperation
  readonly target: string
}) {
  const open = target.match(/\{\w+\}/g)
  return (
    <details class="about">
      <summary>
        {summary}: <code>{path}</code>, {number(parameters.length)} parameters
        {open && <span class="bad"> – put a value in place of {open.join(' and ')}</span>}
      </summary>
      <dl class="facts">
        {parameters.flatMap(({ name, in: place, description }) => [
          <dt key={`name ${place} ${name}`}>
            {name} ({place})
          </dt>,
          <dd key={`about ${place} ${name}`}>{description}</dd>,
        ])}
      </dl>
    </details>
  )
}
