// Draws an area, and shows the query for the entities in it.

import { useEffect, useState } from 'preact/hooks'
import type { ConsoleClient } from '../interface/console-client.js'
import type { ConsoleRequest } from '../interface/console-request.js'
import { CurlNote, Problem } from '../parts/notes.js'
import { number } from '../parts/value-text.js'
import type { AddressBar } from '../state/address.js'
import { useValue } from '../state/observable.js'
import { useReading } from '../state/reading.js'
import { scopeOf } from '../state/scope.js'
import type { SketchKind } from './area-sketch.js'
import { areaOf, type MapArea, noArea } from './map-area.js'
import type { MapBoard } from './map-board.js'

const advice = {
  circle: 'Choose the middle, then a point of the rim: click, or move the map with the arrows and press Enter.',
  polygon:
    'Choose the corners, and at last the first one again: click, or move the map with the arrows and press Enter.',
} as const satisfies Record<SketchKind, string>

export function AreaPanel({
  client,
  bar,
  board,
  area,
  filters,
  onArea,
}: {
  readonly client: ConsoleClient
  readonly bar: AddressBar
  readonly board: MapBoard
  readonly area: MapArea
  readonly filters: { readonly type: string; readonly q: string }
  readonly onArea: (area: MapArea) => void
}) {
  const [sketch, setSketch] = useState<SketchKind | undefined>(undefined)
  const draw = (kind: SketchKind): void => {
    setSketch(kind)
    board.beginSketch(kind, shape => {
      setSketch(undefined)
      if (shape) onArea(areaOf(shape))
    })
  }
  const cancel = (): void => {
    board.endSketch()
    setSketch(undefined)
  }
  useEffect(() => () => board.endSketch(), [board])
  return (
    <section aria-labelledby="map-area">
      <h2 id="map-area">Area</h2>
      {sketch ? (
        <>
          <p role="status">{advice[sketch]}</p>
          <div class="buttons">
            {sketch === 'polygon' && (
              <button type="button" onClick={() => board.finishSketch()}>
                Finish
              </button>
            )}
            <button type="button" onClick={cancel}>
              Cancel
            </button>
          </div>
        </>
      ) : (
        <div class="buttons">
          <button type="button" onClick={() => draw('circle')}>
            Draw a circle
          </button>
          <button type="button" onClick={() => draw('polygon')}>
            Draw a polygon
          </button>
          {area.georel !== '' && (
            <button type="button" onClick={() => onArea(noArea)}>
              Remove the area
            </button>
          )}
        </div>
      )}
      {area.georel !== '' && <AreaQuery client={client} bar={bar} area={area} filters={filters} />}
    </section>
  )
}

function AreaQuery({
  client,
  bar,
  area,
  filters,
}: {
  readonly client: ConsoleClient
  readonly bar: AddressBar
  readonly area: MapArea
  readonly filters: { readonly type: string; readonly q: string }
}) {
  const scope = scopeOf(useValue(bar.address))
  const query = { ...filters, ...area, limit: '1', options: 'count' }
  const request: ConsoleRequest = { method: 'GET', path: 'v2/entities', query, ...scope }
  const { total, problem } = useReading(client, request)
  const { limit: _limit, options: _options, ...shown } = query
  return (
    <>
      <code class="wrap map-query">
        georel={area.georel}&geometry={area.geometry}&coords={area.coords}
      </code>
      <Problem problem={problem} />
      <p>
        {total === undefined ? '' : `${number(total)} entities. `}
        <a href={bar.link('entities', { ...filters, ...area })}>Open as table</a>
      </p>
      <CurlNote client={client} request={{ ...request, query: shown }} />
    </>
  )
}
