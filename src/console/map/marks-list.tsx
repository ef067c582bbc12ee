// What is in view, as a list: the same as on the map, for the keyboard and for screen readers.

import { CountNote } from '../parts/notes.js'
import { cellText, number } from '../parts/value-text.js'
import type { Observable } from '../state/observable.js'
import { useSlowly } from './live-places.js'
import type { MapMark, MarkSubject } from './map-marks.js'
import type { MapPlace } from './map-places.js'

/** Marks and entities that a list beside the map has. */
const marksMax = 50
const listMs = 1_000

export function MarksList({
  marks,
  linkOf,
  onMark,
}: {
  readonly marks: Observable<readonly MapMark[]>
  readonly linkOf: (place: MapPlace) => string
  readonly onMark: (mark: MapMark) => void
}) {
  const all = useSlowly(marks, listMs)
  const shown = [...all].sort(byWeight).slice(0, marksMax)
  return (
    <section aria-labelledby="map-list">
      <h2 id="map-list">In view</h2>
      <CountNote shown={shown.length} total={all.length} what="marks" />
      <ul class="map-list" aria-label="In view">
        {shown.map(mark => (
          <li key={mark.key}>
            <span class="map-swatch" style={{ background: mark.colour }} />
            {mark.of.kind === 'entity' ? (
              <EntityLink place={mark.of.place} linkOf={linkOf} />
            ) : (
              <button type="button" onClick={() => onMark(mark)}>
                {number(mark.of.count)} entities near {number(mark.latitude, 3)}, {number(mark.longitude, 3)}
              </button>
            )}
          </li>
        ))}
      </ul>
    </section>
  )
}

/** Entities that no zoom divides. */
export function PlacesList({
  places,
  linkOf,
  onClose,
}: {
  readonly places: readonly MapPlace[]
  readonly linkOf: (place: MapPlace) => string
  readonly onClose: () => void
}) {
  const shown = places.slice(0, marksMax)
  return (
    <section aria-labelledby="map-list">
      <h2 id="map-list">At this place</h2>
      <div class="buttons">
        <CountNote shown={shown.length} total={places.length} what="entities" />
        <button type="button" onClick={onClose}>
          Back to what is in view
        </button>
      </div>
      <ul class="map-list" aria-label="At this place">
        {shown.map(place => (
          <li key={`${place.path} ${place.type} ${place.id}`}>
            <EntityLink place={place} linkOf={linkOf} />
          </li>
        ))}
      </ul>
    </section>
  )
}

function EntityLink({ place, linkOf }: { readonly place: MapPlace; readonly linkOf: (place: MapPlace) => string }) {
  return (
    <span class="wrap">
      <a href={linkOf(place)}>{cellText(place.id)}</a> <span class="quiet">{cellText(place.type)}</span>
    </span>
  )
}

/** The largest groups first, then entities by id. */
function byWeight({ of: one }: MapMark, { of: other }: MapMark): number {
  if (one.kind === 'entity' && other.kind === 'entity') return one.place.id < other.place.id ? -1 : 1
  return countOf(other) - countOf(one)
}

const countOf = (of: MarkSubject): number => (of.kind === 'entity' ? 1 : of.count)
