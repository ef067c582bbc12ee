// Values as texts for a person.

import type { Json } from '../../domain/json.js'

/** Characters of a value in a cell. */
const cellLengthMax = 200

/** The text of a value. A string is itself, everything else JSON. */
export const valueText = (value: Json | undefined): string =>
  value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value)

/** The beginning of it, for a cell of a table. */
export function cellText(value: Json | undefined): string {
  const text = valueText(value)
  return text.length > cellLengthMax ? `${text.slice(0, cellLengthMax)}…` : text
}

/** A local time. */
export const localTime = (text: string): string => {
  const date = new Date(text)
  return Number.isNaN(date.getTime()) ? text : date.toLocaleString()
}

export const number = (value: number, digits = 0): string =>
  value.toLocaleString(undefined, { maximumFractionDigits: digits })

export function bytesText(bytes: number): string {
  const units = ['bytes', 'KB', 'MB', 'GB', 'TB']
  let value = bytes
  let at = 0
  while (value >= 1024 && at < units.length - 1) {
    value /= 1024
    at++
  }
  return `${number(value, at > 1 ? 1 : 0)} ${units[at]}`
}

export function secondsText(seconds: number): string {
  if (seconds < 0.001) return `${number(seconds * 1e6)} µs`
  return seconds < 1 ? `${number(seconds * 1000, 1)} ms` : `${number(seconds, 2)} s`
}
