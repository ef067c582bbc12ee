// The entities of the part of the world that the map shows, as long as it shows it.

import { useEffect, useRef, useState } from 'preact/hooks'
import type { ConsoleClient } from '../interface/console-client.js'
import { type Observable, useValue } from '../state/observable.js'
import { MapPlaces, type PlaceSelection } from './map-places.js'

/** Least time between two readings of the names of attributes. */
const againMs = 5_000

/** The places of an earlier selection stay until those of this one are read. undefined: there are none yet. */
export function useLivePlaces(
  client: ConsoleClient,
  selection: PlaceSelection | undefined,
  onUnknown: () => void,
): MapPlaces | undefined {
  const proof = useValue(client.proof)
  const about = selection ? JSON.stringify([selection, proof]) : ''
  const [live, setLive] = useState<MapPlaces | undefined>(undefined)
  const unknownMs = useRef(Number.NEGATIVE_INFINITY)
  // The text stands for the selection and the proof.
  useEffect(() => {
    if (!selection) return
    const unknown = (): void => {
      if (performance.now() - unknownMs.current < againMs) return
      unknownMs.current = performance.now()
      onUnknown()
    }
    const places = new MapPlaces(client, selection, unknown)
    const unfollow = places.isRead.follow(() => setLive(places))
    setLive(before => before ?? places)
    return () => {
      unfollow()
      places.close()
    }
  }, [client, about])
  return live
}

/** The value of an observable; the component is drawn again when it changes, but at most once in `ms`. */
export function useSlowly<T>(observable: Observable<T>, ms: number): T {
  const [, draw] = useState(0)
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    let drawnMs = Number.NEGATIVE_INFINITY
    const again = (): void => {
      timer = undefined
      drawnMs = performance.now()
      draw(count => count + 1)
    }
    draw(count => count + 1)
    const unfollow = observable.follow(() => {
      timer ??= setTimeout(again, Math.max(0, ms - (performance.now() - drawnMs)))
    })
    return () => {
      unfollow()
      clearTimeout(timer)
    }
  }, [observable, ms])
  return observable.value
}
