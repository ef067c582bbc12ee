// The registrations that provide something of an entity.

import type { ConsoleClient } from '../interface/console-client.js'
import { CountNote, Problem } from '../parts/notes.js'
import { type RegistrationShape, type SubjectShape, subjectText } from '../state/document-shapes.js'
import { useReading } from '../state/reading.js'
import type { EntityName } from './delete-entity.js'

/** Registrations that are read. */
const readMax = 1_000

export function EntityRegistrations({ client, name }: { readonly client: ConsoleClient; readonly name: EntityName }) {
  const { tenant, path: servicePath } = name
  const query = { limit: String(readMax), options: 'count' }
  const request = { method: 'GET', path: 'v2/registrations', query, tenant, servicePath } as const
  const { json, total, problem } = useReading<readonly RegistrationShape[]>(client, request)
  const read = json ?? []
  const concerned = read.filter(({ dataProvided: { entities = [] } }) => entities.some(one => isMeant(one, name)))
  return (
    <section aria-labelledby="registrations-title">
      <h2 id="registrations-title">Registrations that concern it</h2>
      <Problem problem={problem} />
      <ul>
        {concerned.map(({ id, description, provider, dataProvided: { entities = [], attrs = [] } }) => (
          <li key={id} class="wrap">
            {description ?? id}: {entities.map(subjectText).join(', ')}
            {attrs.length > 0 && `, attributes ${attrs.join(', ')}`}, provided by {provider.http?.url}
          </li>
        ))}
      </ul>
      <p>
        {concerned.length === 0 && total !== undefined && <span>None. </span>}
        <CountNote shown={read.length} total={total} what="registrations read, of which those above are" />
      </p>
    </section>
  )
}

/** Registrations know no other pattern than the one of every id (docs/interface/registrations.md). */
const isMeant = ({ id, idPattern, type }: SubjectShape, entity: EntityName): boolean =>
  (id === entity.id || idPattern !== undefined) && (type === undefined || type === entity.type)
