// The map: entities with a location, live; filters, colours, and areas that a person draws.
//
// The state is in the address: the middle and the zoom, the filters, the colour, and the area. Without a middle the map
// first shows all entities that there are.

import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { FeedNote } from '../parts/feed-note.js'
import { FilterField } from '../parts/filter-field.js'
import { CountNote, CurlNote, Problem } from '../parts/notes.js'
import { number } from '../parts/value-text.js'
import type { ViewAddress } from '../state/address.js'
import type { ConsoleParts } from '../state/console-parts.js'
import { useValue } from '../state/observable.js'
import { scopeOf } from '../state/scope.js'
import { AreaPanel } from './area-panel.js'
import { useLivePlaces, useSlowly } from './live-places.js'
import { areaOfBox, drawnShape, type MapArea, type MapPoint } from './map-area.js'
import { MapBoard, type MapWindow } from './map-board.js'
import { type ColourRule, legendOf, numberRule } from './map-colours.js'
import type { MapMark } from './map-marks.js'
import { useMapNames } from './map-names.js'
import { type MapPlace, type MapPlaces, placesMax } from './map-places.js'
import { MarksList, PlacesList } from './marks-list.js'

/** A part of the world is asked for when the map has been still for so long. */
const stillMs = 250
/** How often texts beside the map change. */
const textMs = 1_000

export function WorldMap({ client, bar }: ConsoleParts) {
  const address = useValue(bar.address)
  const scope = scopeOf(address)
  const { type = '', q = '', colour = '' } = address.parameters
  const { georel = '', geometry = '', coords = '' } = address.parameters
  const area: MapArea = { georel, geometry, coords }
  const { names, again } = useMapNames(client, scope)
  const [box, setBox] = useState<HTMLElement | null>(null)
  const [board, setBoard] = useState<MapBoard | undefined>(undefined)
  const [mapWindow, setWindow] = useState<MapWindow | undefined>(undefined)
  const [picked, setPicked] = useState<readonly MapPlace[] | undefined>(undefined)
  const linkOf = ({ id, type, path }: MapPlace): string => bar.link('entity', { id, type, at: path })
  const onMark = useRef<(mark: MapMark) => void>(() => {})
  onMark.current = ({ of }) => {
    if (of.kind === 'entity') {
      location.hash = linkOf(of.place)
      return
    }
    const members = of.members()
    if (!board || board.isNearest || areAtOnePlace(members)) setPicked(members)
    else board.moveToAll(members, board.window.zoom + 1)
  }
  const selection = names &&
    mapWindow && {
      tenant: scope.tenant,
      path: scope.servicePath,
      type,
      q,
      area: areaOfBox(mapWindow.southWest, mapWindow.northEast),
      locations: names.locations,
      colour,
    }
  const places = useLivePlaces(client, selection, again)

  // The board lives as long as its box.
  const written = useRef('')
  useEffect(() => {
    if (!box) return
    let still: ReturnType<typeof setTimeout> | undefined
    const onWindow = (next: MapWindow): void => {
      clearTimeout(still)
      still = setTimeout(() => setWindow(next), stillMs)
      setPicked(undefined)
      if (written.current === '' || bar.address.value.view !== 'map') return
      written.current = windowText(next)
      const [centre = '', zoom = ''] = written.current.split(' ')
      bar.change({ centre, zoom })
    }
    const created = new MapBoard(box, client, { onWindow, onMark: mark => onMark.current(mark) })
    // A link or the way back leads to another part of the world: at once, or the present one would be written over it.
    const follow = ({ view, parameters: { centre = '', zoom = '' } }: ViewAddress): void => {
      const wanted = windowOf(centre, zoom)
      const text = `${centre} ${zoom}`
      // Another tenant, or a new beginning: the map moves to what there is.
      if (view === 'map' && centre === '' && written.current !== '') {
        written.current = ''
        created.moveToWorld()
        setWindow(created.window)
      }
      if (view !== 'map' || !wanted || written.current === text) return
      written.current = text
      created.moveTo(...wanted)
    }
    follow(bar.address.value)
    const unfollow = bar.address.follow(follow)
    setWindow(created.window)
    setBoard(created)
    return () => {
      unfollow()
      clearTimeout(still)
      created.close()
    }
  }, [box, client])

  // Without one the map moves to what there is, once.
  useEffect(() => {
    if (!board || !places) return
    const begin = (): void => {
      if (written.current !== '' || !places.isRead.value) return
      written.current = 'all'
      board.moveToAll([...places.places()], 0)
    }
    begin()
    return places.isRead.follow(begin)
  }, [board, places])

  const rule = useRef<() => ColourRule>(() => noRule)
  rule.current = useRule(places, colour, names?.types ?? [])
  useEffect(() => {
    if (!board || !places) return
    board.show({ places: () => places.places(), rule: () => rule.current() })
    return places.version.follow(() => board.drawSoon())
  }, [board, places, colour, names])

  useEffect(() => board?.showArea(drawnShape({ georel, geometry, coords })), [board, georel, geometry, coords])

  const filter = (name: string) => (value: string) => bar.change({ [name]: value })
  return (
    <section class="fill map-view" aria-labelledby="view-title">
      <h1 id="view-title">Map</h1>
      <search class="filters">
        <FilterField
          label="Type"
          value={type}
          onChange={filter('type')}
          suggestions={names?.types ?? []}
          isFirst={true}
        />
        <FilterField label="Query (q)" value={q} onChange={filter('q')} />
        <ColourField colour={colour} names={names?.numbers ?? []} onChange={filter('colour')} />
      </search>
      {places && <PlacesNote places={places} />}
      <div class="map-layout">
        <div
          ref={setBox}
          class="map-box"
          role="group"
          aria-label="Map: arrows move, plus and minus zoom"
          tabIndex={0}
        />
        <aside class="map-side" aria-label="What the map shows">
          {board && <Legend board={board} rule={() => rule.current()} />}
          {board && (
            <AreaPanel
              client={client}
              bar={bar}
              board={board}
              area={area}
              filters={{ type, q }}
              onArea={({ georel, geometry, coords }) => bar.change({ georel, geometry, coords })}
            />
          )}
          {picked ? (
            <PlacesList places={picked} linkOf={linkOf} onClose={() => setPicked(undefined)} />
          ) : (
            board && <MarksList marks={board.marks} linkOf={linkOf} onMark={mark => onMark.current(mark)} />
          )}
        </aside>
      </div>
      {places && <CurlNote client={client} request={places.pageRequest(0)} />}
    </section>
  )
}

const noRule: ColourRule = { kind: 'type', types: [] }

/** The rule of colours now. That of a number only becomes wider while the same entities are shown. */
function useRule(places: MapPlaces | undefined, colour: string, types: readonly string[]): () => ColourRule {
  const widest = useRef({ about: '', least: Number.POSITIVE_INFINITY, most: Number.NEGATIVE_INFINITY })
  if (colour === '' || !places) return () => ({ kind: 'type', types })
  return () => {
    const about = JSON.stringify(places.selection)
    const found = numberRule(places.places())
    const { current: before } = widest
    const isSame = before.about === about
    const least = isSame ? Math.min(before.least, found.least) : found.least
    const most = isSame ? Math.max(before.most, found.most) : found.most
    widest.current = { about, least, most }
    return { kind: 'number', least, most }
  }
}

function PlacesNote({ places }: { readonly places: MapPlaces }) {
  useSlowly(places.version, textMs)
  const total = useSlowly(places.total, textMs)
  const problem = useValue(places.problem)
  const feed = useValue(places.feed)
  return (
    <>
      <Problem problem={problem} />
      <div class="buttons">
        <CountNote shown={places.shown} total={problem ? 0 : total} what="entities in this part of the world" />
        <FeedNote feed={feed} />
        {total !== undefined && total > placesMax && (
          <span>The map shows at most {number(placesMax)}: zoom in, or filter, to see the others.</span>
        )}
      </div>
    </>
  )
}

function ColourField({
  colour,
  names,
  onChange,
}: {
  readonly colour: string
  readonly names: readonly string[]
  readonly onChange: (name: string) => void
}) {
  const id = useId()
  const offered = colour === '' || names.includes(colour) ? names : [colour, ...names]
  return (
    <div class="field">
      <label for={id}>Colour by</label>
      <select id={id} value={colour} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
        <option value="">type</option>
        {offered.map(name => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </div>
  )
}

function Legend({ board, rule }: { readonly board: MapBoard; readonly rule: () => ColourRule }) {
  useSlowly(board.marks, textMs)
  const note = useValue(board.note)
  return (
    <>
      <ul class="map-legend" aria-label="Colours">
        {legendOf(rule()).map(({ colour, text }) => (
          <li key={`${colour} ${text}`}>
            <span class="map-swatch" style={{ background: colour }} />
            {text}
          </li>
        ))}
      </ul>
      {note !== '' && <p class="quiet wrap">{note}</p>}
    </>
  )
}

const areAtOnePlace = (places: readonly MapPlace[]): boolean => {
  const [first] = places
  return places.every(({ shape: { middle } }) => `${middle}` === `${first?.shape.middle}`)
}

const windowText = ({ centre: [latitude, longitude], zoom }: MapWindow): string =>
  `${latitude.toFixed(5)},${longitude.toFixed(5)} ${zoom}`

function windowOf(centre: string, zoom: string): [MapPoint, number] | undefined {
  const [latitude = Number.NaN, longitude = Number.NaN] = centre.split(',').map(Number)
  if (centre === '' || zoom === '') return undefined
  if (!(Math.abs(latitude) <= 90 && Math.abs(longitude) <= 180 && Number(zoom) >= 0)) return undefined
  return [[latitude, longitude], Number(zoom)]
}
