// The background of the map: land and borders of countries, from a file of the console. It needs no tile server.

import { canvas, type GeoJSON, geoJSON, type Map as LeafletMap } from 'leaflet'
import { feature, mesh } from 'topojson-client'
import type { GeometryCollection, Topology } from 'topojson-specification'

type Countries = Topology<{ readonly countries: GeometryCollection; readonly land: GeometryCollection }>

/** Space around the box that is drawn as well, as a part of its size. */
const drawing = { padding: 0.3 } as const

/** Draws it in the colours of the page, now and when they change. `ending` stops that. */
export async function showLand(map: LeafletMap, ending: AbortSignal): Promise<void> {
  const response = await fetch(new URL('../vendor/countries.json', import.meta.url), { signal: ending })
  const countries = (await response.json()) as Countries
  if (ending.aborted) return
  const renderer = canvas(drawing)
  const { land, countries: each } = countries.objects
  const still = { renderer, interactive: false } as const
  const layers = [
    geoJSON(feature(countries, land), { ...still, style: landStyle }),
    geoJSON(
      mesh(countries, each, (one, other) => one !== other),
      { ...still, style: borderStyle },
    ),
  ] as const
  for (const layer of layers) layer.addTo(map)
  followColours(layers, ending)
}

function followColours([land, borders]: readonly [GeoJSON, GeoJSON], ending: AbortSignal): void {
  const recolour = (): void => {
    land.setStyle(landStyle())
    borders.setStyle(borderStyle())
  }
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', recolour, { signal: ending })
}

const colourNamed = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim()

const landStyle = () =>
  ({
    stroke: true,
    weight: 0.6,
    color: colourNamed('--map-border'),
    fillColor: colourNamed('--map-land'),
    fillOpacity: 1,
  }) as const

const borderStyle = () => ({ weight: 0.6, color: colourNamed('--map-border'), fill: false }) as const
