// The colours of marks: by type, or by the number of an attribute in five steps.
//
// They are the same in light and dark. White text has the contrast of WCAG 2.1 AA on each of them, and each mark has a
// white rim.

import { number } from '../parts/value-text.js'
import type { MapPlace } from './map-places.js'

export type ColourRule =
  | { readonly kind: 'type'; readonly types: readonly string[] }
  | { readonly kind: 'number'; readonly least: number; readonly most: number }

export type NumberRule = Extract<ColourRule, { kind: 'number' }>

export interface LegendEntry {
  readonly colour: string
  readonly text: string
}

const typeColours = ['#1f66ad', '#a8500a', '#1b7837', '#8c3a96', '#b2182b', '#01665e', '#7a5c00', '#5b4fb0'] as const
const stepColours = ['#4a2377', '#37588c', '#1f7a7d', '#9a5a00', '#b3261e'] as const
/** Types beyond those with a colour, groups of several types, and entities without the number. */
export const otherColour = '#566575'

/** What a mark needs to know of its entities. `type` is undefined if they have several. */
export interface ColourFacts {
  readonly type: string | undefined
  readonly sum: number
  readonly numbers: number
}

export const colourFacts = ({ type, value }: MapPlace): ColourFacts => ({
  type,
  sum: value ?? 0,
  numbers: value === undefined ? 0 : 1,
})

export const togetherOf = (one: ColourFacts, other: ColourFacts): ColourFacts => ({
  type: one.type === other.type ? one.type : undefined,
  sum: one.sum + other.sum,
  numbers: one.numbers + other.numbers,
})

/** The colour of a mark; a group has that of the mean of its numbers. */
export function colourOf(rule: ColourRule, { type, sum, numbers }: ColourFacts): string {
  if (rule.kind === 'type')
    return type === undefined ? otherColour : (typeColours[rule.types.indexOf(type)] ?? otherColour)
  if (numbers === 0) return otherColour
  return stepColours[stepOf(rule.least, rule.most, sum / numbers)] ?? otherColour
}

function stepOf(least: number, most: number, value: number): number {
  if (most <= least) return 0
  const step = Math.floor(((value - least) / (most - least)) * stepColours.length)
  return Math.max(0, Math.min(stepColours.length - 1, step))
}

/** The rule for the numbers of these entities. */
export function numberRule(places: Iterable<MapPlace>): NumberRule {
  let least = Number.POSITIVE_INFINITY
  let most = Number.NEGATIVE_INFINITY
  for (const { value } of places) {
    if (value === undefined) continue
    least = Math.min(least, value)
    most = Math.max(most, value)
  }
  return { kind: 'number', least, most }
}

export function legendOf(rule: ColourRule): readonly LegendEntry[] {
  if (rule.kind === 'type') {
    const own = rule.types.slice(0, typeColours.length).map(type => {
      return { colour: colourOf(rule, { type, sum: 0, numbers: 0 }), text: type === '' ? '(none)' : type }
    })
    return rule.types.length > 1 ? [...own, { colour: otherColour, text: 'several, or another type' }] : own
  }
  const { least, most } = rule
  const none = { colour: otherColour, text: 'no number' }
  if (!Number.isFinite(least)) return [none]
  if (most <= least) return [{ colour: stepColours[0], text: number(least, 3) }, none]
  const width = (most - least) / stepColours.length
  const steps = stepColours.map((colour, at) => {
    return { colour, text: `${number(least + at * width, 2)} to ${number(least + (at + 1) * width, 2)}` }
  })
  return [...steps, none]
}
