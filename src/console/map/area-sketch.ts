// A circle or a polygon that a person draws on the map: with a pointer, or with the keyboard, where Enter takes the
// middle of the map.

import {
  circle,
  type LatLng,
  type LayerGroup,
  type Map as LeafletMap,
  type LeafletMouseEvent,
  layerGroup,
  polygon,
  polyline,
  svg,
} from 'leaflet'
import type { DrawnShape, MapPoint } from './map-area.js'

export type SketchKind = DrawnShape['kind']

/** Corners of a polygon that a person draws. */
const cornersMax = 100
/** How near to the first corner a click ends a polygon. */
const closePixels = 10

/** The look of what is drawn. */
const line = { color: '#d4006a', weight: 2, fillOpacity: 0.08, interactive: false } as const

export class AreaSketch {
  private readonly group: LayerGroup
  private readonly renderer = svg()
  private readonly corners: LatLng[] = []
  private readonly ending = new AbortController()

  /** `onEnd` gets the shape; undefined: the person does not want it. */
  constructor(
    private readonly map: LeafletMap,
    private readonly kind: SketchKind,
    private readonly onEnd: (shape: DrawnShape | undefined) => void,
  ) {
    this.group = layerGroup().addTo(map)
    const box = map.getContainer()
    box.classList.add('map-sketching')
    map.doubleClickZoom.disable()
    map.on('click', this.onClick)
    map.on('mousemove', this.onMove)
    box.addEventListener('keydown', event => this.onKey(event), { signal: this.ending.signal })
  }

  close(): void {
    this.ending.abort()
    this.map.off('click', this.onClick)
    this.map.off('mousemove', this.onMove)
    this.map.doubleClickZoom.enable()
    this.map.getContainer().classList.remove('map-sketching')
    this.group.remove()
  }

  /** Ends a polygon with the corners that it has. */
  finish(): void {
    if (this.kind === 'polygon')
      this.end(this.corners.length > 2 ? { kind: 'polygon', corners: this.corners.map(pointOf) } : undefined)
  }

  private readonly onClick = ({ latlng }: LeafletMouseEvent): void => this.add(latlng)

  private readonly onMove = ({ latlng }: LeafletMouseEvent): void => this.preview(latlng)

  private onKey(event: KeyboardEvent): void {
    if (event.key === 'Escape') this.end(undefined)
    if (event.key !== 'Enter') return
    event.preventDefault()
    this.add(this.map.getCenter())
  }

  private add(at: LatLng): void {
    const [first] = this.corners
    if (this.kind === 'circle' && first)
      return this.end({ kind: 'circle', centre: pointOf(first), radiusM: this.map.distance(first, at) })
    if (first && this.corners.length > 2 && this.isNear(first, at)) return this.finish()
    // A double click is two.
    const last = this.corners.at(-1)
    if (last?.equals(at)) return this.finish()
    this.corners.push(at)
    if (this.corners.length >= cornersMax) return this.finish()
    this.preview(at)
  }

  private isNear(one: LatLng, other: LatLng): boolean {
    return this.map.latLngToContainerPoint(one).distanceTo(this.map.latLngToContainerPoint(other)) <= closePixels
  }

  private preview(at: LatLng): void {
    const [first] = this.corners
    const { group, renderer, kind } = this
    group.clearLayers()
    if (!first) return
    if (kind === 'circle') circle(first, { radius: this.map.distance(first, at), renderer, ...line }).addTo(group)
    else polyline([...this.corners, at], { renderer, ...line }).addTo(group)
  }

  private end(shape: DrawnShape | undefined): void {
    this.close()
    this.onEnd(shape)
  }
}

/** Shows a shape that was drawn. */
export function showShape(map: LeafletMap, shape: DrawnShape): LayerGroup {
  const renderer = svg()
  const layer =
    shape.kind === 'circle'
      ? circle([...shape.centre], { radius: shape.radiusM, renderer, ...line })
      : polygon(
          shape.corners.map(([latitude, longitude]) => [latitude, longitude]),
          { renderer, ...line },
        )
  return layerGroup([layer]).addTo(map)
}

const pointOf = ({ lat, lng }: LatLng): MapPoint => [lat, lng]
