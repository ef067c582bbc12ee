// The table of entities: filters, order, chosen attributes, live values; creates and deletes.
//
// Not here: which rows there are (state/entity-rows.ts), how they are drawn (parts/entity-grid.tsx).

import { useState } from 'preact/hooks'
import type { JsonObject } from '../../domain/json.js'
import type { ConsoleClient, RequestProblem } from '../interface/console-client.js'
import { EntityGrid } from '../parts/entity-grid.js'
import { FeedNote } from '../parts/feed-note.js'
import { FilterField } from '../parts/filter-field.js'
import { CopyButton, CurlNote, Problem } from '../parts/notes.js'
import { number } from '../parts/value-text.js'
import { useAllowances } from '../state/allowances.js'
import { useColumns } from '../state/columns.js'
import type { ConsoleParts } from '../state/console-parts.js'
import type { EntityRow, EntityRows } from '../state/entity-rows.js'
import { type LiveRows, useLiveRows } from '../state/live-rows.js'
import { Observable, useValue } from '../state/observable.js'
import { useReading } from '../state/reading.js'
import { scopeOf } from '../state/scope.js'
import { CreateEntity } from './create-entity.js'
import { DeleteEntity } from './delete-entity.js'

export function EntitiesView(parts: ConsoleParts) {
  const { client, bar } = parts
  const address = useValue(bar.address)
  const scope = scopeOf(address)
  const { type = '', idPattern = '', q = '', orderBy = '', attrs = '' } = address.parameters
  const { georel = '', geometry = '', coords = '' } = address.parameters
  const columns = useColumns(client, scope, type, attrs)
  const { tenant, servicePath: path } = scope
  const selection = columns && { tenant, path, type, idPattern, q, georel, geometry, coords, orderBy, columns }
  const live = useLiveRows(client, selection)
  const change = (name: string) => (value: string) => bar.change({ [name]: value, row: '' })
  const types = useReading(client, {
    method: 'GET',
    path: 'v2/types',
    query: { options: 'values', limit: '100' },
    ...scope,
  })
  const suggestions = Array.isArray(types.json) ? types.json.filter(name => typeof name === 'string') : []
  const ofQ = useFilterProblem(client, live, tenant, path, { q })
  const ofId = useFilterProblem(client, live, tenant, path, { idPattern })
  return (
    <section class="fill" aria-labelledby="view-title">
      <h1 id="view-title">Entities</h1>
      <search class="filters">
        <FilterField label="Type" value={type} onChange={change('type')} suggestions={suggestions} isFirst={true} />
        <FilterField label="Id pattern" value={idPattern} onChange={change('idPattern')} problem={ofId.problem} />
        <FilterField label="Query (q)" value={q} onChange={change('q')} problem={ofQ.problem} />
        <FilterField label="Attributes" value={attrs} onChange={change('attrs')} />
      </search>
      {georel !== '' && (
        <p class="quiet wrap">
          In the area georel={georel}&geometry={geometry}&coords={coords}{' '}
          <button type="button" onClick={() => bar.change({ georel: '', geometry: '', coords: '', row: '' })}>
            Remove the area
          </button>
        </p>
      )}
      {live && <Table {...parts} live={live} isAtField={ofQ.mayBe || ofId.mayBe} />}
    </section>
  )
}

/**
 * The fault of one filter alone, when the list was refused. `mayBe`: it has one, or the broker has not said yet, so
 * that a fault is never shown at the list first and at its field a moment later.
 */
function useFilterProblem(
  client: ConsoleClient,
  live: LiveRows | undefined,
  tenant: string,
  servicePath: string,
  filter: Readonly<Record<string, string>>,
) {
  const refusal = useValue(live?.rows.problem ?? noProblem)
  const isAsked = refusal?.status === 400 && Object.values(filter).some(value => value !== '')
  const query = { ...filter, limit: '1' }
  const { json, problem } = useReading(
    client,
    isAsked ? { method: 'GET', path: 'v2/entities', query, tenant, servicePath } : undefined,
  )
  return { mayBe: isAsked && json === undefined, problem: isAsked ? problem : undefined }
}

const noProblem = new Observable<RequestProblem | undefined>(undefined)

function Table({
  client,
  bar,
  live,
  isAtField,
}: ConsoleParts & { readonly live: LiveRows; readonly isAtField: boolean }) {
  const { rows, feed } = live
  const { tenant, path, type } = rows.selection
  const total = useValue(rows.total)
  const problem = useValue(rows.problem)
  const [dialog, setDialog] = useState<'none' | 'create' | 'delete'>('none')
  const allowed = useAllowances(client, { tenant, servicePath: path })
  const { parameters } = useValue(bar.address)
  const active = Math.max(0, Number(parameters.row ?? 0) || 0)
  const row = rows.row(active)
  const linkOf = (of: EntityRow): string => bar.link('entity', { id: of.id, type: of.type, at: of.path })
  const request = rows.pageRequest(0)
  return (
    <>
      {!isAtField && <Problem problem={problem} />}
      <div class="buttons">
        <WindowNote rows={rows} total={problem ? 0 : total} />
        <FeedNote feed={useValue(feed)} />
        {allowed.has('create') && (
          <button type="button" onClick={() => setDialog('create')}>
            Create…
          </button>
        )}
        {row && (
          <>
            <CopyButton name="Copy as JSON" text={JSON.stringify(jsonOf(row))} />
            {allowed.has('delete') && (
              <button type="button" onClick={() => setDialog('delete')}>
                Delete <bdi>{row.id}</bdi>…
              </button>
            )}
          </>
        )}
      </div>
      <EntityGrid
        rows={rows}
        linkOf={linkOf}
        onOpen={of => {
          location.hash = linkOf(of)
        }}
        active={active}
        onActive={index => bar.change({ row: index === 0 ? '' : String(index) })}
        onOrder={orderBy => bar.change({ orderBy })}
      />
      <CurlNote client={client} request={request} />
      {dialog === 'create' && (
        <CreateEntity
          client={client}
          tenant={tenant}
          servicePath={path}
          type={type.includes(',') ? '' : type}
          onClose={() => setDialog('none')}
        />
      )}
      {dialog === 'delete' && row && (
        <DeleteEntity
          client={client}
          name={{ tenant, path: row.path, id: row.id, type: row.type }}
          onDeleted={() => {
            setDialog('none')
            rows.refreshSoon()
          }}
          onClose={() => setDialog('none')}
        />
      )}
    </>
  )
}

function WindowNote({ rows, total }: { readonly rows: EntityRows; readonly total: number | undefined }) {
  const [first, last] = useValue(rows.window)
  const text =
    total === undefined
      ? 'reading…'
      : total === 0
        ? 'no entities'
        : `${number(first + 1)} to ${number(last + 1)} of ${number(total)} entities`
  return <span class="quiet">{text}</span>
}

const jsonOf = ({ id, type, values }: EntityRow): JsonObject => ({ ...values, id, type })
