// One entity: its attributes with types, metadata and times, live; edits one attribute; the subscriptions and
// registrations that concern it.

import { useEffect, useRef, useState } from 'preact/hooks'
import type { Json } from '../../domain/json.js'
import { ChangeFeed, gatherMs } from '../interface/change-feed.js'
import type { ConsoleClient } from '../interface/console-client.js'
import type { ConsoleRequest } from '../interface/console-request.js'
import type { ChartPoint } from '../parts/chart.js'
import { LiveChart } from '../parts/live-chart.js'
import { CopyButton, CurlNote, Moment, Problem } from '../parts/notes.js'
import { number, valueText } from '../parts/value-text.js'
import { useAllowances } from '../state/allowances.js'
import type { ConsoleParts } from '../state/console-parts.js'
import { type NumberHistory, withNumbers } from '../state/number-history.js'
import { useValue } from '../state/observable.js'
import { useReading } from '../state/reading.js'
import { scopeOf } from '../state/scope.js'
import { DeleteEntity, type EntityName, entityPath } from './delete-entity.js'
import { type AttributeShape, EditAttribute, type ShownAttribute } from './edit-attribute.js'
import { EntityRegistrations } from './entity-registrations.js'
import { EntitySubscriptions } from './entity-subscriptions.js'

/** An entity as the interface shows it. */
type EntityShape = Readonly<Record<string, AttributeShape | string>>

const noEntity: EntityShape = {}

/** Attributes that are drawn at first. */
const attributesMax = 200
/** Characters of a value that are drawn at first. */
const valueLengthMax = 2_000
/** Least time between two readings of an entity that changes. */
const againMs = 500
/** Charts are drawn up to now so often. */
const chartMs = 2_000

export function EntityView({ client, bar }: ConsoleParts) {
  const address = useValue(bar.address)
  const { id = '', type = '', at = '/' } = address.parameters
  const { tenant } = scopeOf(address)
  return (
    <OneEntity
      key={JSON.stringify([tenant, at, type, id])}
      name={{ tenant, path: at, id, type }}
      client={client}
      bar={bar}
    />
  )
}

function OneEntity({ name, client, bar }: Pick<ConsoleParts, 'client' | 'bar'> & { readonly name: EntityName }) {
  const { tenant, path: servicePath, id, type } = name
  const query = { type, attrs: '*,dateCreated,dateModified,dateExpires', metadata: '*,dateCreated,dateModified' }
  const request: ConsoleRequest = { method: 'GET', path: entityPath(name), query, tenant, servicePath }
  const { json, problem, again } = useReading<EntityShape>(client, request)
  useChanges(client, name, again)
  const allowed = useAllowances(client, { tenant, servicePath })
  const [edited, setEdited] = useState<ShownAttribute | undefined>(undefined)
  const [deletes, setDeletes] = useState(false)
  const [all, setAll] = useState(false)
  const { dateCreated, dateModified, ...rest } = json ?? noEntity
  // Its id and its type are texts.
  const attributes = Object.entries(rest).flatMap(([key, shown]) =>
    typeof shown === 'string' ? [] : [[key, shown] as const],
  )
  const numbers = useNumbers(json)
  const nowMs = useNow(numbers.size > 0)
  const drawn = all ? attributes : attributes.slice(0, attributesMax)
  return (
    <section aria-labelledby="view-title">
      <h1 id="view-title" class="wrap">
        {id}
      </h1>
      <p class="quiet">
        <bdi>{type}</bdi> in <bdi>{servicePath}</bdi>; created <Moment time={timeOf(dateCreated)} />, changed{' '}
        <Moment time={timeOf(dateModified)} />
      </p>
      <Problem problem={problem} />
      <div class="buttons">
        <a href={bar.link('entities', { type })}>Entities of this type</a>
        <CopyButton name="Copy as JSON" text={JSON.stringify(json)} />
        {allowed.has('delete') && json !== undefined && !problem && (
          <button type="button" onClick={() => setDeletes(true)}>
            Delete…
          </button>
        )}
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-label="Attributes of the entity">
        <table>
          <thead>
            <tr>
              <th scope="col">Attribute</th>
              <th scope="col">Type</th>
              <th scope="col">Value</th>
              <th scope="col">Metadata</th>
              <th scope="col">Changed</th>
              {allowed.has('update') && <th scope="col">Edit</th>}
            </tr>
          </thead>
          <tbody>
            {drawn.map(([attribute, shown]) => (
              <AttributeRow
                key={attribute}
                name={attribute}
                shown={shown}
                points={numbers.get(attribute)}
                nowMs={nowMs}
                onEdit={allowed.has('update') ? () => setEdited({ ...shown, name: attribute }) : undefined}
              />
            ))}
          </tbody>
        </table>
      </div>
      <div class="buttons">
        <span role="status" class="quiet">
          {number(drawn.length)} of {number(attributes.length)} attributes shown
        </span>
        {drawn.length < attributes.length && (
          <button type="button" onClick={() => setAll(true)}>
            Show all
          </button>
        )}
      </div>
      <CurlNote client={client} request={request} />
      {allowed.has('subscribe') && <EntitySubscriptions client={client} bar={bar} name={name} />}
      {allowed.has('register') && <EntityRegistrations client={client} name={name} />}
      {edited && (
        <EditAttribute
          client={client}
          entity={name}
          before={edited}
          onDone={() => {
            setEdited(undefined)
            again()
          }}
          onClose={() => setEdited(undefined)}
        />
      )}
      {deletes && (
        <DeleteEntity
          client={client}
          name={name}
          onDeleted={() => bar.open('entities', { type })}
          onClose={() => setDeletes(false)}
        />
      )}
    </section>
  )
}

/** The numbers of the attributes since the view was opened. */
function useNumbers(json: EntityShape | undefined): NumberHistory {
  const history = useRef<{ of: EntityShape | undefined; numbers: NumberHistory }>({ of: undefined, numbers: new Map() })
  if (json && history.current.of !== json) {
    const values = Object.entries(json).map(([name, shown]) => {
      return [name, typeof shown === 'string' ? undefined : shown.value] as const
    })
    history.current = { of: json, numbers: withNumbers(history.current.numbers, values, Date.now()) }
  }
  return history.current.numbers
}

/** The time, which goes on while there is something to draw up to it. */
function useNow(isNeeded: boolean): number {
  const [, draw] = useState(0)
  useEffect(() => {
    if (!isNeeded) return
    const timer = setInterval(() => draw(count => count + 1), chartMs)
    return () => clearInterval(timer)
  }, [isNeeded])
  return Date.now()
}

/** Reads the entity again when it has changed. */
function useChanges(
  client: ConsoleClient,
  { tenant, path: servicePath, id, type }: EntityName,
  again: () => void,
): void {
  const proof = useValue(client.proof)
  // Another proof needs another feed.
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    const soon = (): void => {
      timer ??= setTimeout(() => {
        timer = undefined
        again()
      }, againMs)
    }
    const query = { id, type, attrs: 'id', options: 'keyValues', gather: String(gatherMs) }
    const feed = new ChangeFeed(client, { method: 'GET', path: 'v2/stream', query, tenant, servicePath }, soon, soon)
    return () => {
      feed.close()
      clearTimeout(timer)
    }
  }, [client, proof, tenant, servicePath, id, type, again])
}

function timeOf(timed: { readonly value: Json } | string | undefined): string | undefined {
  return typeof timed === 'object' && typeof timed.value === 'string' ? timed.value : undefined
}

function AttributeRow({
  name,
  shown,
  points,
  nowMs,
  onEdit,
}: {
  readonly name: string
  readonly shown: AttributeShape
  /** Its numbers since the view was opened; undefined: it is no number. */
  readonly points: readonly ChartPoint[] | undefined
  readonly nowMs: number
  /** undefined: it may not be edited. */
  readonly onEdit: (() => void) | undefined
}) {
  const [all, setAll] = useState(false)
  const text = valueText(shown.value)
  const isLong = text.length > valueLengthMax && !all
  const { dateCreated: _created, dateModified, ...metadata } = shown.metadata
  return (
    <tr>
      <th scope="row" class="wrap">
        {name}
      </th>
      <td>{shown.type}</td>
      <td class="wrap value">
        {isLong ? text.slice(0, valueLengthMax) : text}
        {isLong && (
          <>
            {'… '}
            <button type="button" onClick={() => setAll(true)}>
              Show all {number(text.length)} characters
            </button>
          </>
        )}
        {points && <LiveChart name={name} points={points} nowMs={nowMs} />}
      </td>
      <td class="wrap">
        {Object.entries(metadata).map(([key, { type, value }]) => (
          <div key={key}>
            <bdi>{key}</bdi> (<bdi>{type}</bdi>): <bdi>{valueText(value)}</bdi>
          </div>
        ))}
      </td>
      <td>
        <Moment time={timeOf(dateModified)} />
      </td>
      {onEdit && (
        <td>
          <button type="button" aria-label={`Edit ${name}`} onClick={onEdit}>
            Edit
          </button>
        </td>
      )}
    </tr>
  )
}
