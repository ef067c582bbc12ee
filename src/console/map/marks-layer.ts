// Draws marks and the shapes of entities on a canvas over the map, and knows which mark is at a point.
//
// Elements of the page instead would cost far more while thousands of entities move.

import type { Map as LeafletMap } from 'leaflet'
import type { MapMark } from './map-marks.js'
import type { MapPlace } from './map-places.js'

/** Positions of lines and rings that are drawn at a time. */
const positionsMax = 50_000
const rim = '#ffffff'
const entityRadius = 6
/** How far from a mark a pointer still means it. */
const reachPixels = 4

interface DrawnMark {
  readonly mark: MapMark
  readonly x: number
  readonly y: number
  readonly radius: number
}

export interface MarkPicture {
  readonly marks: readonly MapMark[]
  /** The entities whose lines are drawn, with their colours. */
  readonly shapes: readonly { readonly place: MapPlace; readonly colour: string }[]
}

export class MarksLayer {
  private readonly canvas = document.createElement('canvas')
  private drawn: readonly DrawnMark[] = []
  private picture: MarkPicture = { marks: [], shapes: [] }

  constructor(private readonly map: LeafletMap) {
    this.canvas.className = 'map-marks'
    map.getContainer().append(this.canvas)
    map.on('move zoom resize viewreset', () => this.draw())
  }

  show(picture: MarkPicture): void {
    this.picture = picture
    this.draw()
  }

  /** The mark at a point of the map's box; the one that was drawn last if there are several. */
  markAt(x: number, y: number): MapMark | undefined {
    return this.drawn.findLast(one => Math.hypot(one.x - x, one.y - y) <= one.radius + reachPixels)?.mark
  }

  /** The marks that are in the box. */
  get inView(): readonly MapMark[] {
    return this.drawn.map(({ mark }) => mark)
  }

  private draw(): void {
    const { x: width, y: height } = this.map.getSize()
    const scale = devicePixelRatio
    const pixels = [Math.round(width * scale), Math.round(height * scale)] as const
    if (this.canvas.width !== pixels[0] || this.canvas.height !== pixels[1])
      [this.canvas.width, this.canvas.height] = pixels
    const context = this.canvas.getContext('2d')
    if (!context) return
    context.setTransform(scale, 0, 0, scale, 0, 0)
    context.clearRect(0, 0, width, height)
    this.drawShapes(context)
    this.drawn = this.picture.marks.flatMap(mark => {
      const { x, y } = this.map.latLngToContainerPoint([mark.latitude, mark.longitude])
      const radius = radiusOf(mark)
      const isOutside = x < -radius || y < -radius || x > width + radius || y > height + radius
      return isOutside ? [] : [{ mark, x, y, radius }]
    })
    context.font = '600 12px system-ui, sans-serif'
    context.textAlign = 'center'
    context.textBaseline = 'middle'
    for (const one of this.drawn) drawMark(context, one)
  }

  private drawShapes(context: CanvasRenderingContext2D): void {
    let positions = 0
    context.lineWidth = 2
    for (const { place, colour } of this.picture.shapes) {
      context.beginPath()
      for (const line of place.shape.lines) {
        positions += line.length
        if (positions > positionsMax) return
        for (const [at, [longitude, latitude]] of line.entries()) {
          const { x, y } = this.map.latLngToContainerPoint([latitude, longitude])
          if (at === 0) context.moveTo(x, y)
          else context.lineTo(x, y)
        }
      }
      context.strokeStyle = colour
      context.stroke()
      if (!place.shape.isFilled) continue
      context.globalAlpha = 0.15
      context.fillStyle = colour
      context.fill('evenodd')
      context.globalAlpha = 1
    }
  }
}

const radiusOf = ({ of }: MapMark): number =>
  of.kind === 'entity' ? entityRadius : Math.min(24, 11 + 2.6 * Math.log10(of.count) ** 1.4)

function drawMark(context: CanvasRenderingContext2D, { mark: { of, colour }, x, y, radius }: DrawnMark): void {
  context.beginPath()
  context.arc(x, y, radius, 0, 2 * Math.PI)
  context.fillStyle = colour
  context.fill()
  context.lineWidth = 1.5
  context.strokeStyle = rim
  context.stroke()
  if (of.kind === 'entity') return
  context.fillStyle = rim
  context.fillText(shortNumber(of.count), x, y)
}

const shortNumber = (count: number): string =>
  count < 1_000 ? String(count) : count < 10_000 ? `${(count / 1_000).toFixed(1)}k` : `${Math.round(count / 1_000)}k`
