// One subscription: what it is, how its notifications went, why it does not fire for an entity; pauses and deletes.

import { useState } from 'preact/hooks'
import type { Json } from '../../domain/json.js'
import type { Explanation } from '../../domain/subscriptions/explanation.js'
import type { ConsoleClient, RequestProblem } from '../interface/console-client.js'
import type { ConsoleRequest } from '../interface/console-request.js'
import { Question } from '../parts/dialog.js'
import { ExplanationNote } from '../parts/explanation-note.js'
import { CopyButton, CurlNote, Moment, Problem } from '../parts/notes.js'
import { number } from '../parts/value-text.js'
import type { ConsoleParts } from '../state/console-parts.js'
import {
  type DeliveriesShape,
  type DeliveryShape,
  receiverOf,
  type SubscriptionShape,
  subjectText,
} from '../state/document-shapes.js'
import { useValue } from '../state/observable.js'
import { useReading } from '../state/reading.js'
import { scopeOf } from '../state/scope.js'

/** Deliveries and dead letters that are read. */
const deliveriesMax = 50

export function SubscriptionView({ client, bar }: ConsoleParts) {
  const address = useValue(bar.address)
  const { tenant } = scopeOf(address)
  const { id = '', entity = '' } = address.parameters
  const path = `v2/subscriptions/${encodeURIComponent(id)}`
  const request: ConsoleRequest = { method: 'GET', path, tenant }
  const { json: subscription, problem, again } = useReading<SubscriptionShape>(client, request)
  const [failed, setFailed] = useState<RequestProblem | undefined>(undefined)
  const [deletes, setDeletes] = useState(false)
  const carryOut = async (method: 'PATCH' | 'DELETE', body?: Json): Promise<void> => {
    const answer = await client.ask({ method, path, tenant, ...(body !== undefined && { body }) })
    setFailed(answer.ok ? undefined : answer.problem)
    if (!answer.ok) return
    if (method === 'DELETE') bar.open('subscriptions')
    else again()
  }
  const isPaused = subscription?.status === 'inactive'
  return (
    <section aria-labelledby="view-title">
      <h1 id="view-title" class="wrap">
        {subscription?.description ?? id}
      </h1>
      <Problem problem={problem ?? failed} />
      {subscription && !problem && (
        <>
          <Facts subscription={subscription} />
          <div class="buttons">
            <button type="button" onClick={() => carryOut('PATCH', { status: isPaused ? 'active' : 'inactive' })}>
              {isPaused ? 'Resume' : 'Pause'}
            </button>
            <button type="button" onClick={() => setDeletes(true)}>
              Delete…
            </button>
            <button type="button" onClick={again}>
              Read again
            </button>
            <CopyButton name="Copy as JSON" text={JSON.stringify(subscription)} />
          </div>
          <CurlNote client={client} request={request} />
          <Explain
            client={client}
            path={path}
            tenant={tenant}
            entity={entity}
            onEntity={chosen => bar.change({ entity: chosen })}
          />
          <Deliveries client={client} path={path} tenant={tenant} />
        </>
      )}
      {deletes && (
        <Question
          title="Delete this subscription?"
          text={`${subscription?.description ?? ''} ${id}. This cannot be undone.`}
          verb="Delete"
          onYes={() => {
            setDeletes(false)
            void carryOut('DELETE')
          }}
          onNo={() => setDeletes(false)}
        />
      )}
    </section>
  )
}

function Facts({ subscription }: { readonly subscription: SubscriptionShape }) {
  const { status, expires, throttling = 0, subject, notification } = subscription
  const { attrs = [], expression } = subject.condition ?? {}
  const {
    timesSent = 0,
    failsCounter = 0,
    lastNotification,
    lastSuccess,
    lastFailure,
    lastFailureReason,
  } = notification
  return (
    <dl class="facts">
      <dt>Status</dt>
      <dd>{status}</dd>
      <dt>Subject</dt>
      <dd>{subject.entities.map(subjectText).join(', ')}</dd>
      <dt>Condition</dt>
      <dd>
        {attrs.length > 0 ? `one of ${attrs.join(', ')} changes` : 'any change'}
        {expression && ` and ${JSON.stringify(expression)} holds`}
      </dd>
      <dt>Receiver</dt>
      <dd>{receiverOf(subscription)}</dd>
      <dt>Throttling</dt>
      <dd>{throttling === 0 ? 'none' : `${number(throttling)} s`}</dd>
      <dt>Expires</dt>
      <dd>
        <Moment time={expires} />
      </dd>
      <dt>Sent</dt>
      <dd>
        {number(timesSent)}, last <Moment time={lastNotification} />
      </dd>
      <dt>Failures in a row</dt>
      <dd>{number(failsCounter)}</dd>
      <dt>Last success</dt>
      <dd>
        <Moment time={lastSuccess} />
      </dd>
      <dt>Last failure</dt>
      <dd>
        <Moment time={lastFailure} /> {lastFailureReason}
      </dd>
    </dl>
  )
}

interface OfSubscription {
  readonly client: ConsoleClient
  readonly path: string
  readonly tenant: string
}

function Explain({
  client,
  path,
  tenant,
  entity,
  onEntity,
}: OfSubscription & { readonly entity: string; readonly onEntity: (id: string) => void }) {
  const [id, setId] = useState(entity)
  const query = { options: 'explain', entity }
  const request: ConsoleRequest = { method: 'GET', path, query, tenant }
  const { json, problem, again } = useReading<Explanation>(client, entity === '' ? undefined : request)
  const ask = (event: Event): void => {
    event.preventDefault()
    onEntity(id)
    again()
  }
  return (
    <section aria-labelledby="explain-title">
      <h2 id="explain-title">Why does it fire, or not?</h2>
      <form class="filters" onSubmit={ask}>
        <label class="field">
          Entity (id)
          <input required value={id} onInput={({ currentTarget }) => setId(currentTarget.value)} />
        </label>
        <button type="submit">Explain</button>
      </form>
      <Problem problem={problem} />
      {json !== undefined && !problem && <ExplanationNote explanation={json} />}
      {entity !== '' && <CurlNote client={client} request={request} />}
    </section>
  )
}

function Deliveries({ client, path, tenant }: OfSubscription) {
  const query = { limit: String(deliveriesMax) }
  const request: ConsoleRequest = { method: 'GET', path: `${path}/deliveries`, query, tenant }
  const { json, problem, again } = useReading<DeliveriesShape>(client, request)
  const [failed, setFailed] = useState<RequestProblem | undefined>(undefined)
  const empty: DeliveriesShape = { deliveries: [], deadLetters: [], deadLettersCount: 0 }
  const { deliveries, deadLetters, deadLettersCount } = json ?? empty
  const retry = async (): Promise<void> => {
    const answer = await client.ask({ method: 'POST', path: `${path}/deliveries/retry`, tenant })
    setFailed(answer.ok ? undefined : answer.problem)
    if (answer.ok) again()
  }
  return (
    <section aria-labelledby="deliveries-title">
      <h2 id="deliveries-title">Deliveries</h2>
      <Problem problem={problem ?? failed} />
      <DeliveryTable name="The latest deliveries" deliveries={deliveries} />
      <h3>Dead letters</h3>
      <div class="buttons">
        <span class="quiet">
          {number(deadLetters.length)} of {number(deadLettersCount)} shown
        </span>
        {deadLettersCount > 0 && (
          <button type="button" onClick={retry}>
            Send them again
          </button>
        )}
        <button type="button" onClick={again}>
          Read deliveries again
        </button>
      </div>
      <DeliveryTable name="Dead letters" deliveries={deadLetters} />
      <CurlNote client={client} request={request} />
    </section>
  )
}

function DeliveryTable({ name, deliveries }: { readonly name: string; readonly deliveries: readonly DeliveryShape[] }) {
  if (deliveries.length === 0) return <p class="quiet">None.</p>
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={name}>
      <table>
        <thead>
          <tr>
            <th scope="col">Time</th>
            <th scope="col">Entity</th>
            <th scope="col">Try</th>
            <th scope="col">Outcome</th>
            <th scope="col">Reason</th>
          </tr>
        </thead>
        <tbody>
          {deliveries.map(({ time, entity, attempt, outcome, code, reason, cause }, at) => (
            <tr key={at}>
              <td>
                <Moment time={time} />
              </td>
              <td class="wrap">
                {entity.id} ({entity.type})
              </td>
              <td>{attempt}</td>
              <td>{outcome}</td>
              <td class="wrap">{[code, reason, cause].filter(part => part !== undefined).join(' ')}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
