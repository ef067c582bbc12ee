// Types of entities, with their number and their attributes. A type leads to the table of its entities.

import type { JsonObject } from '../../domain/json.js'
import type { ConsoleRequest } from '../interface/console-request.js'
import { CountNote, CurlNote, Problem } from '../parts/notes.js'
import { number } from '../parts/value-text.js'
import type { ConsoleParts } from '../state/console-parts.js'
import { useValue } from '../state/observable.js'
import { useReading } from '../state/reading.js'
import { scopeOf } from '../state/scope.js'

interface TypeShape {
  readonly type: string
  readonly attrs: JsonObject
  readonly count: number
}

/** Types that one answer has. */
const pageTypes = 100
/** Attributes of a type that are shown. */
const attributesMax = 50

export function TypesView({ client, bar }: ConsoleParts) {
  const address = useValue(bar.address)
  const offset = Math.max(0, Number(address.parameters.offset ?? 0) || 0)
  const query = { limit: String(pageTypes), offset: offset === 0 ? '' : String(offset), options: 'count' }
  const request: ConsoleRequest = { method: 'GET', path: 'v2/types', query, ...scopeOf(address) }
  const { json, total, problem } = useReading<readonly TypeShape[]>(client, request)
  const types = json ?? []
  return (
    <section aria-labelledby="view-title">
      <h1 id="view-title">Types</h1>
      <Problem problem={problem} />
      <div class="scroll" tabIndex={0} role="region" aria-label="Table of types">
        <table>
          <thead>
            <tr>
              <th scope="col">Type</th>
              <th scope="col">Entities</th>
              <th scope="col">Attributes</th>
            </tr>
          </thead>
          <tbody>
            {types.map(({ type, attrs, count }) => (
              <tr key={type}>
                <th scope="row">
                  <a href={bar.link('entities', { type })}>{type === '' ? '(none)' : type}</a>
                </th>
                <td>{number(count)}</td>
                <td class="wrap">{listed(Object.keys(attrs))}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <div class="buttons">
        <CountNote shown={types.length} total={total} what="types" />
        {offset > 0 && (
          <button type="button" onClick={() => bar.change({ offset: String(Math.max(0, offset - pageTypes)) })}>
            Previous
          </button>
        )}
        {total !== undefined && offset + types.length < total && (
          <button type="button" onClick={() => bar.change({ offset: String(offset + pageTypes) })}>
            Next
          </button>
        )}
      </div>
      <CurlNote client={client} request={request} />
    </section>
  )
}

function listed(names: readonly string[]): string {
  const rest = names.length - attributesMax
  return names.slice(0, attributesMax).join(', ') + (rest > 0 ? ` and ${number(rest)} more` : '')
}
