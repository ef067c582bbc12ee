// The list of subscriptions, with status and counters; creates one.

import { useRef, useState } from 'preact/hooks'
import type { ConsoleRequest } from '../interface/console-request.js'
import { type ChartPoint, LineChart } from '../parts/chart.js'
import { CountNote, CurlNote, Moment, Problem } from '../parts/notes.js'
import { offsetIn, PageButtons } from '../parts/page-buttons.js'
import { number } from '../parts/value-text.js'
import { useAgainLater } from '../state/again-later.js'
import { useAllowances } from '../state/allowances.js'
import type { ConsoleParts } from '../state/console-parts.js'
import { receiverOf, type SubscriptionShape, subjectText } from '../state/document-shapes.js'
import { chartSpanMs, type NumberHistory, withNumbers } from '../state/number-history.js'
import { useValue } from '../state/observable.js'
import { useReading } from '../state/reading.js'
import { scopeOf } from '../state/scope.js'
import { CreateSubscription } from './create-subscription.js'

const pageSubscriptions = 100

export function SubscriptionsView({ client, bar }: ConsoleParts) {
  const address = useValue(bar.address)
  const scope = scopeOf(address)
  const offset = offsetIn(address)
  const query = { limit: String(pageSubscriptions), offset: offset === 0 ? '' : String(offset), options: 'count' }
  const request: ConsoleRequest = { method: 'GET', path: 'v2/subscriptions', query, ...scope }
  const reading = useReading<readonly SubscriptionShape[]>(client, request)
  const { json, total, problem, again } = reading
  const subscriptions = json ?? []
  const sent = useSent(json)
  useAgainLater(reading)
  const allowed = useAllowances(client, scope)
  const [creates, setCreates] = useState(false)
  return (
    <section aria-labelledby="view-title">
      <h1 id="view-title">Subscriptions</h1>
      <Problem problem={problem} />
      <div class="buttons">
        <CountNote shown={subscriptions.length} total={total} what="subscriptions" />
        <button type="button" onClick={again}>
          Read again
        </button>
        {allowed.has('subscribe') && (
          <button type="button" onClick={() => setCreates(true)}>
            Create…
          </button>
        )}
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-label="Table of subscriptions">
        <table>
          <thead>
            <tr>
              <th scope="col">Subscription</th>
              <th scope="col">Status</th>
              <th scope="col">Subject</th>
              <th scope="col">Receiver</th>
              <th scope="col">Sent</th>
              <th scope="col">Deliveries</th>
              <th scope="col">Failures in a row</th>
              <th scope="col">Last success</th>
              <th scope="col">Last failure</th>
            </tr>
          </thead>
          <tbody>
            {subscriptions.map(subscription => (
              <SubscriptionRow
                key={subscription.id}
                subscription={subscription}
                sent={sent.get(subscription.id) ?? []}
                link={bar.link('subscription', { id: subscription.id })}
              />
            ))}
          </tbody>
        </table>
      </div>
      <PageButtons bar={bar} offset={offset} limit={pageSubscriptions} total={total} />
      <CurlNote client={client} request={request} />
      {creates && (
        <CreateSubscription
          client={client}
          scope={scope}
          onDone={() => {
            setCreates(false)
            again()
          }}
          onClose={() => setCreates(false)}
        />
      )}
    </section>
  )
}

/** The counters of deliveries since the view was opened, by the id of the subscription. */
function useSent(json: readonly SubscriptionShape[] | undefined): NumberHistory {
  const history = useRef<{ of: typeof json; numbers: NumberHistory }>({ of: undefined, numbers: new Map() })
  if (json && history.current.of !== json) {
    const counters = json.map(({ id, notification: { timesSent = 0 } }) => [id, timesSent] as const)
    history.current = { of: json, numbers: withNumbers(history.current.numbers, counters, Date.now()) }
  }
  return history.current.numbers
}

/** Deliveries between two readings. A counter that is smaller than before belongs to a new subscription. */
function deliveriesOf(sent: readonly ChartPoint[]): ChartPoint[] {
  return sent.slice(1).map(({ atMs, value }, at) => ({ atMs, value: Math.max(0, value - (sent[at]?.value ?? 0)) }))
}

function Deliveries({ name, sent }: { readonly name: string; readonly sent: readonly ChartPoint[] }) {
  const points = deliveriesOf(sent)
  const nowMs = sent.at(-1)?.atMs ?? 0
  const sum = points.reduce((all, { value }) => all + value, 0)
  return (
    <LineChart
      points={points}
      nowMs={nowMs}
      spanMs={chartSpanMs(sent, nowMs)}
      label={`Deliveries of ${name} since this view was opened: ${number(sum)}`}
    />
  )
}

function SubscriptionRow({
  subscription,
  sent,
  link,
}: {
  readonly subscription: SubscriptionShape
  readonly sent: readonly ChartPoint[]
  readonly link: string
}) {
  const { id, description, status, subject, notification } = subscription
  const { timesSent = 0, failsCounter = 0, lastSuccess, lastFailure, lastFailureReason } = notification
  return (
    <tr>
      <th scope="row" class="wrap">
        <a href={link}>{description ?? id}</a>
      </th>
      <td>{status}</td>
      <td class="wrap">{subject.entities.map(subjectText).join(', ')}</td>
      <td class="wrap">{receiverOf(subscription)}</td>
      <td>{number(timesSent)}</td>
      <td class="spark">
        <Deliveries name={description ?? id} sent={sent} />
      </td>
      <td>{number(failsCounter)}</td>
      <td>
        <Moment time={lastSuccess} />
      </td>
      <td class="wrap">
        <Moment time={lastFailure} /> {lastFailureReason}
      </td>
    </tr>
  )
}
