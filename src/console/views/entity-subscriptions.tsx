// The subscriptions of the tenant, each with whether it is about an entity, and why or why not.

import { useEffect, useState } from 'preact/hooks'
import type { Explanation } from '../../domain/subscriptions/explanation.js'
import type { ConsoleClient } from '../interface/console-client.js'
import { ExplanationNote } from '../parts/explanation-note.js'
import { CountNote, Problem } from '../parts/notes.js'
import type { AddressBar } from '../state/address.js'
import type { SubscriptionShape } from '../state/document-shapes.js'
import { useReading } from '../state/reading.js'
import type { EntityName } from './delete-entity.js'

/** Subscriptions that are asked about the entity. */
const askedMax = 50

interface Explained {
  readonly subscription: SubscriptionShape
  /** undefined: the broker could not explain it. */
  readonly explanation: Explanation | undefined
}

export function EntitySubscriptions({
  client,
  bar,
  name,
}: {
  readonly client: ConsoleClient
  readonly bar: AddressBar
  readonly name: EntityName
}) {
  const { tenant } = name
  const query = { limit: String(askedMax), options: 'count' }
  const { json, total, problem } = useReading<readonly SubscriptionShape[]>(client, {
    method: 'GET',
    path: 'v2/subscriptions',
    query,
    tenant,
  })
  const explained = useExplanations(client, name, json)
  const concerned = explained.filter(({ explanation }) => explanation !== undefined && isAbout(explanation))
  return (
    <section aria-labelledby="subscriptions-title">
      <h2 id="subscriptions-title">Subscriptions that concern it</h2>
      <Problem problem={problem} />
      {concerned.map(({ subscription, explanation }) => (
        <details key={subscription.id}>
          <summary>
            {explanation?.fires ? '✓' : '✗'} {subscription.description ?? subscription.id}
          </summary>
          {explanation && <ExplanationNote explanation={explanation} />}
          <a href={bar.link('subscription', { id: subscription.id })}>Open the subscription {subscription.id}</a>
        </details>
      ))}
      <p>
        {concerned.length === 0 && total !== undefined && <span>None. </span>}
        <CountNote shown={explained.length} total={total} what="subscriptions asked, of which those above are" />
      </p>
    </section>
  )
}

/** The entity and the path are meant; other conditions may hinder it. */
const isAbout = ({ conditions }: Explanation): boolean =>
  conditions.every(({ condition, holds }) => holds || (condition !== 'entities' && condition !== 'servicePath'))

function useExplanations(
  client: ConsoleClient,
  { tenant, path: servicePath, id, type }: EntityName,
  subscriptions: readonly SubscriptionShape[] | undefined,
): readonly Explained[] {
  const [explained, setExplained] = useState<readonly Explained[]>([])
  useEffect(() => {
    if (!subscriptions) return
    const ending = new AbortController()
    const askAll = async (): Promise<void> => {
      const found: Explained[] = []
      for (const subscription of subscriptions) {
        const path = `v2/subscriptions/${encodeURIComponent(subscription.id)}`
        const query = { options: 'explain', entity: id, type }
        const answer = await client.ask<Explanation>({ method: 'GET', path, query, tenant, servicePath }, ending.signal)
        if (ending.signal.aborted) return
        const explanation = answer.ok ? answer.json : undefined
        found.push({ subscription, explanation })
      }
      setExplained(found)
    }
    void askAll()
    return () => ending.abort()
  }, [client, tenant, servicePath, id, type, subscriptions])
  return explained
}
