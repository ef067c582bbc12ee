// The map itself: moves, zooms, draws, and reports what a person does there. Only the files of this folder know Leaflet.
//
// Drawing takes at most a tenth of the time, whatever there is to draw: after a drawing that took long, the next one
// waits longer.
//
// Not here: which entities there are (map-places.ts), what is beside the map (map-view.tsx).

import {
  map as createMap,
  type LatLngBoundsExpression,
  type LayerGroup,
  type Map as LeafletMap,
  type LeafletMouseEvent,
} from 'leaflet'
import type { ConsoleClient } from '../interface/console-client.js'
import { Observable } from '../state/observable.js'
import { AreaSketch, type SketchKind, showShape } from './area-sketch.js'
import { showLand } from './land.js'
import type { DrawnShape, MapPoint } from './map-area.js'
import { type ColourRule, colourFacts, colourOf } from './map-colours.js'
import { type MapMark, marksOf } from './map-marks.js'
import type { MapPlace } from './map-places.js'
import { streetsOf } from './map-tiles.js'
import { MarksLayer } from './marks-layer.js'

export interface MapWindow {
  readonly centre: MapPoint
  readonly zoom: number
  readonly southWest: MapPoint
  readonly northEast: MapPoint
}

export interface BoardListener {
  onWindow(window: MapWindow): void
  onMark(mark: MapMark): void
}

/** What the map draws. */
export interface BoardContent {
  readonly places: () => Iterable<MapPlace>
  readonly rule: () => ColourRule
}

const world: LatLngBoundsExpression = [
  [-60, -170],
  [78, 170],
]
const zoomMin = 1
/** The land has no more details, but entities have places. */
const zoomMax = 19
/** The part of the time that drawing may take. */
const drawShare = 0.1
/** Five times a second: entities move smoothly enough, and a person sees no more of their values. */
const drawMs = 200

export class MapBoard {
  /** The marks that are in view. */
  readonly marks = new Observable<readonly MapMark[]>([])
  /** Where the streets are from, and why there are none. */
  readonly note = new Observable('')
  private readonly map: LeafletMap
  private readonly layer: MarksLayer
  private readonly hint = document.createElement('div')
  private readonly ending = new AbortController()
  private content: BoardContent | undefined
  private drawing: ReturnType<typeof setTimeout> | undefined
  private waitMs = drawMs
  private sketch: AreaSketch | undefined
  private area: LayerGroup | undefined

  constructor(box: HTMLElement, client: ConsoleClient, listener: BoardListener) {
    this.map = createMap(box, {
      zoomAnimation: false,
      fadeAnimation: false,
      inertia: false,
      attributionControl: false,
      minZoom: zoomMin,
      maxZoom: zoomMax,
      maxBounds: [
        [-90, -200],
        [90, 200],
      ],
    })
    this.moveToWorld()
    this.layer = new MarksLayer(this.map)
    this.hint.className = 'map-hint'
    this.hint.hidden = true
    box.append(this.hint)
    this.map.on('moveend', () => {
      listener.onWindow(this.window)
      this.drawNow()
    })
    this.map.on('click', event => {
      const mark = this.markAt(event)
      if (mark && !this.sketch) listener.onMark(mark)
    })
    this.map.on('mousemove', event => this.showHint(event))
    this.map.on('mouseout', () => {
      this.hint.hidden = true
    })
    const observer = new ResizeObserver(() => this.resize())
    observer.observe(box)
    this.ending.signal.addEventListener('abort', () => observer.disconnect())
    void this.showBackground(client)
  }

  close(): void {
    this.ending.abort()
    clearTimeout(this.drawing)
    this.sketch?.close()
    this.map.remove()
  }

  get window(): MapWindow {
    const bounds = this.map.getBounds()
    const { lat, lng } = this.map.getCenter()
    return {
      centre: [lat, lng],
      zoom: this.map.getZoom(),
      southWest: [bounds.getSouth(), bounds.getWest()],
      northEast: [bounds.getNorth(), bounds.getEast()],
    }
  }

  moveToWorld(): void {
    this.map.fitBounds(world)
  }

  moveTo([latitude, longitude]: MapPoint, zoom: number): void {
    this.map.setView([latitude, longitude], zoom)
  }

  /** Moves so that all these entities are in view, and nearer than before. */
  moveToAll(places: readonly MapPlace[], zoomAtLeast: number): void {
    const points = places.map(({ shape: { middle } }): [number, number] => [middle[1], middle[0]])
    if (points.length === 0) return
    this.map.fitBounds(points, { padding: [40, 40], maxZoom: Math.max(zoomAtLeast, 14) })
    if (this.map.getZoom() < zoomAtLeast) this.map.setZoom(Math.min(zoomAtLeast, zoomMax))
  }

  /** Whether it can show no more of what is at one place. */
  get isNearest(): boolean {
    return this.map.getZoom() >= this.map.getMaxZoom()
  }

  show(content: BoardContent): void {
    this.content = content
    this.drawNow()
  }

  /** Draws soon: entities have changed. */
  drawSoon(): void {
    this.drawing ??= setTimeout(() => this.drawNow(), this.waitMs)
  }

  showArea(shape: DrawnShape | undefined): void {
    this.area?.remove()
    this.area = shape && showShape(this.map, shape)
  }

  beginSketch(kind: SketchKind, onEnd: (shape: DrawnShape | undefined) => void): void {
    this.sketch?.close()
    this.sketch = new AreaSketch(this.map, kind, shape => {
      // The click that ends a shape opens nothing.
      setTimeout(() => {
        this.sketch = undefined
      })
      onEnd(shape)
    })
    this.map.getContainer().focus()
  }

  finishSketch(): void {
    this.sketch?.finish()
  }

  endSketch(): void {
    this.sketch?.close()
    this.sketch = undefined
  }

  /** The middle stays: without that it would drift by a part of a pixel each time. */
  private resize(): void {
    const centre = this.map.getCenter()
    this.map.invalidateSize({ pan: false })
    this.map.setView(centre, this.map.getZoom())
  }

  private drawNow(): void {
    clearTimeout(this.drawing)
    this.drawing = undefined
    if (!this.content || this.ending.signal.aborted) return
    const beganMs = performance.now()
    const rule = this.content.rule()
    const marks = marksOf(this.content.places(), this.map.getZoom(), rule)
    const shapes = []
    for (const place of this.content.places())
      if (place.shape.lines.length > 0) shapes.push({ place, colour: colourOf(rule, colourFacts(place)) })
    this.layer.show({ marks, shapes })
    this.marks.set(this.layer.inView)
    this.waitMs = Math.max(drawMs, (performance.now() - beganMs) / drawShare)
  }

  private async showBackground(client: ConsoleClient): Promise<void> {
    const { signal } = this.ending
    const { streets, problem = '' } = await streetsOf(client, signal)
    if (signal.aborted) return
    if (streets) {
      this.map.setMaxZoom(streets.zoomMax)
      streets.layer.addTo(this.map)
      return this.note.set(streets.credit)
    }
    this.note.set(problem)
    try {
      await showLand(this.map, signal)
    } catch (error) {
      if (!signal.aborted) this.note.set(`The background could not be read: ${String(error)}`)
    }
  }

  private markAt({ containerPoint: { x, y } }: LeafletMouseEvent): MapMark | undefined {
    return this.layer.markAt(x, y)
  }

  private showHint(event: LeafletMouseEvent): void {
    const mark = this.sketch ? undefined : this.markAt(event)
    this.map.getContainer().classList.toggle('map-over-mark', mark !== undefined)
    this.hint.hidden = mark === undefined
    if (!mark) return
    this.hint.textContent = markText(mark)
    this.hint.style.left = `${event.containerPoint.x + 12}px`
    this.hint.style.top = `${event.containerPoint.y + 12}px`
  }
}

/** A mark in words. */
export const markText = ({ of }: MapMark): string =>
  of.kind === 'entity' ? `${of.place.id} (${of.place.type})` : `${of.count.toLocaleString()} entities`
