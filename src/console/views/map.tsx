// Loads the map when it is opened: its code, its background and its styles are not a part of the first view.

import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { ConsoleParts } from '../state/console-parts.js'

type LoadedMap =
  | { readonly kind: 'loading' }
  | { readonly kind: 'loaded'; readonly View: ComponentType<ConsoleParts> }
  | { readonly kind: 'failed'; readonly reason: string }

const styles = ['vendor/leaflet.css', 'map.css'] as const

export function MapView(parts: ConsoleParts) {
  const [map, setMap] = useState<LoadedMap>({ kind: 'loading' })
  useEffect(() => {
    Promise.all([import('../map/world-map.js'), ...styles.map(styleSheet)]).then(
      ([{ WorldMap: View }]) => setMap({ kind: 'loaded', View }),
      (error: unknown) => setMap({ kind: 'failed', reason: String(error) }),
    )
  }, [])
  if (map.kind === 'loaded') return <map.View {...parts} />
  return (
    <section aria-labelledby="view-title">
      <h1 id="view-title">Map</h1>
      {map.kind === 'loading' ? (
        <p class="quiet">reading…</p>
      ) : (
        <p class="problem" role="alert">
          The map could not be loaded: {map.reason}
        </p>
      )}
    </section>
  )
}

/** Adds a style sheet of the console to the page, once. */
function styleSheet(path: string): Promise<void> {
  const { href } = new URL(`../${path}`, import.meta.url)
  const links = [...document.querySelectorAll<HTMLLinkElement>('link[rel=stylesheet]')]
  if (links.some(link => link.href === href)) return Promise.resolve()
  return new Promise((resolve, reject) => {
    const link = document.createElement('link')
    link.rel = 'stylesheet'
    link.onload = () => resolve()
    link.onerror = () => {
      link.remove()
      reject(new Error(`${path} is missing`))
    }
    link.href = href
    document.head.append(link)
  })
}
