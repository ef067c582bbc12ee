// The dialog that creates a registration. The page checks the provider and the date as they are typed, the broker the
// rest.

import { useState } from 'preact/hooks'
import type { Json } from '../../domain/json.js'
import type { ConsoleClient } from '../interface/console-client.js'
import type { ConsoleRequest } from '../interface/console-request.js'
import { FormDialog } from '../parts/form-dialog.js'
import { namesIn, urlFault } from '../parts/typed-texts.js'
import type { ConsoleScope } from '../state/scope.js'

interface RegistrationText {
  readonly description: string
  readonly type: string
  readonly id: string
  readonly attrs: string
  readonly url: string
  readonly mode: string
  readonly expires: string
}

const empty: RegistrationText = { description: '', type: '', id: '', attrs: '', url: '', mode: 'all', expires: '' }

const fields: readonly (readonly [name: keyof RegistrationText, label: string])[] = [
  ['description', 'Description'],
  ['type', 'Type of entities (empty: every type)'],
  ['id', 'Id of the entity (empty: every id)'],
  ['attrs', 'Attributes that it provides (empty: every attribute)'],
]

const modes: readonly (readonly [mode: string, name: string])[] = [
  ['all', 'queries and updates'],
  ['query', 'queries'],
  ['update', 'updates'],
  ['none', 'nothing'],
]

export function CreateRegistration({
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
  const set = (name: keyof RegistrationText, value: string): void => setText({ ...text, [name]: value })
  // A registration is for one path.
  const servicePath = scope.servicePath.replace(/\/?#$/, '')
  const providerFault = urlFault('The provider', text.url)
  const expiresFault = Number.isNaN(Date.parse(text.expires || '2000-01-01'))
    ? 'The end must be a date, such as 2030-12-31T12:00:00Z.'
    : undefined
  const request: ConsoleRequest = {
    method: 'POST',
    path: 'v2/registrations',
    body: bodyOf(text),
    tenant: scope.tenant,
    servicePath,
  }
  return (
    <FormDialog
      client={client}
      title="Create a registration"
      verb="Create"
      request={request}
      fault={providerFault ?? expiresFault}
      onDone={onDone}
      onClose={onClose}
    >
      <p class="quiet">The provider is asked for entities in the service path {servicePath || '/'}.</p>
      <div class="fields">
        {fields.map(([name, label]) => (
          <label key={name}>
            {label}
            <input value={text[name]} onInput={({ currentTarget }) => set(name, currentTarget.value)} />
          </label>
        ))}
        <label>
          Provider (URL)
          <input
            required
            value={text.url}
            aria-invalid={providerFault !== undefined}
            onInput={({ currentTarget }) => set('url', currentTarget.value)}
          />
        </label>
        <label>
          It is asked for
          <select value={text.mode} onChange={({ currentTarget }) => set('mode', currentTarget.value)}>
            {modes.map(([mode, name]) => (
              <option key={mode} value={mode}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <label>
          End (date; empty: never)
          <input
            value={text.expires}
            aria-invalid={expiresFault !== undefined}
            onInput={({ currentTarget }) => set('expires', currentTarget.value)}
          />
        </label>
      </div>
    </FormDialog>
  )
}

function bodyOf({ description, type, id, attrs, url, mode, expires }: RegistrationText): Json {
  const entity: Json = { ...(id === '' ? { idPattern: '.*' } : { id }), ...(type !== '' && { type }) }
  return {
    ...(description !== '' && { description }),
    dataProvided: { entities: [entity], attrs: namesIn(attrs) },
    provider: { http: { url }, supportedForwardingMode: mode },
    ...(expires !== '' && { expires }),
  }
}
