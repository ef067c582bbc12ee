// The dialog that creates a subscription. The query is checked by the broker as it is typed, the receiver by the page.

import { useState } from 'preact/hooks'
import type { Json } from '../../domain/json.js'
import type { ConsoleClient } from '../interface/console-client.js'
import type { ConsoleRequest } from '../interface/console-request.js'
import { FilterField } from '../parts/filter-field.js'
import { FormDialog } from '../parts/form-dialog.js'
import { namesIn, urlFault } from '../parts/typed-texts.js'
import { useReading } from '../state/reading.js'
import type { ConsoleScope } from '../state/scope.js'

interface SubscriptionText {
  readonly description: string
  readonly type: string
  readonly id: string
  readonly attrs: string
  readonly url: string
  readonly throttling: string
}

const empty: SubscriptionText = { description: '', type: '', id: '', attrs: '', url: '', throttling: '' }

const fields: readonly (readonly [name: keyof SubscriptionText, label: string])[] = [
  ['description', 'Description'],
  ['type', 'Type of entities (empty: every type)'],
  ['id', 'Id of the entity (empty: every id)'],
  ['attrs', 'Attributes, of which one has to change (empty: every attribute)'],
]

export function CreateSubscription({
  client,
  scope,
  onDone,
  onClose,
}: {
  readonly client: ConsoleClient
  readonly scope: ConsoleScope
  readonly onDone: () => void
  readonly onClose: () => void
}) {
  const [text, setText] = useState(empty)
  const [q, setQ] = useState('')
  const set = (name: keyof SubscriptionText, value: string): void => setText({ ...text, [name]: value })
  const check = useReading(
    client,
    q === '' ? undefined : { method: 'GET', path: 'v2/entities', query: { q, limit: '1', attrs: 'id' }, ...scope },
  )
  const fault = urlFault('The receiver', text.url)
  const request: ConsoleRequest = { method: 'POST', path: 'v2/subscriptions', body: bodyOf(text, q), ...scope }
  return (
    <FormDialog
      client={client}
      title="Create a subscription"
      verb="Create"
      request={request}
      fault={fault}
      onDone={onDone}
      onClose={onClose}
    >
      <div class="fields">
        {fields.map(([name, label]) => (
          <label key={name}>
            {label}
            <input value={text[name]} onInput={({ currentTarget }) => set(name, currentTarget.value)} />
          </label>
        ))}
        <FilterField label="Query (q) that has to hold" value={q} onChange={setQ} problem={check.problem} />
        <label>
          Receiver (URL)
          <input
            required
            value={text.url}
            aria-invalid={fault !== undefined}
            onInput={({ currentTarget }) => set('url', currentTarget.value)}
          />
        </label>
        <label>
          Throttling (seconds)
          <input
            inputMode="numeric"
            value={text.throttling}
            onInput={({ currentTarget }) => set('throttling', currentTarget.value)}
          />
        </label>
      </div>
    </FormDialog>
  )
}

function bodyOf({ description, type, id, attrs, url, throttling }: SubscriptionText, q: string): Json {
  const names = namesIn(attrs)
  const condition: Json = { ...(names.length > 0 && { attrs: names }), ...(q !== '' && { expression: { q } }) }
  const entity: Json = { ...(id === '' ? { idPattern: '.*' } : { id }), ...(type !== '' && { type }) }
  return {
    ...(description !== '' && { description }),
    subject: { entities: [entity], ...(Object.keys(condition).length > 0 && { condition }) },
    notification: { http: { url } },
    // The broker refuses another text than a number, with a reason.
    ...(throttling !== '' && { throttling: Number.isNaN(Number(throttling)) ? throttling : Number(throttling) }),
  }
}
