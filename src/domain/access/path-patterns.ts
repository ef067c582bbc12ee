// Sets of service paths as patterns: `/a` is one path, `/a/#` is `/a` and all below (docs/interface/access.md#paths).

import { coveringPaths, coversPath } from '../scope.js'

const isOpen = (pattern: string): boolean => pattern.endsWith('/#')
const baseOf = (pattern: string): string => pattern.slice(0, -2)

/** The path that a pattern is about, without those below. */
export const withoutBelow = (pattern: string): string => (isOpen(pattern) ? baseOf(pattern) || '/' : pattern)

/** Whether the first pattern covers every path of the second. */
export const coversPattern = (outer: string, inner: string): boolean =>
  isOpen(inner) ? isOpen(outer) && coversPath(outer, baseOf(inner)) : coversPath(outer, inner)

/** The pattern of the paths that both cover; undefined: there is none. */
export function meetingPath(a: string, b: string): string | undefined {
  if (coversPattern(a, b)) return b
  return coversPattern(b, a) ? a : undefined
}

/** The patterns without those that another one covers, each once. */
export function withoutCovered(patterns: Iterable<string>): readonly string[] {
  const all = new Set(patterns)
  return [...all].filter(pattern => !covering(pattern).some(outer => outer !== pattern && all.has(outer)))
}

/** The patterns that cover all of this one. */
const covering = (pattern: string): readonly string[] =>
  isOpen(pattern) ? coveringPaths(baseOf(pattern)).filter(isOpen) : coveringPaths(pattern)

/** The patterns of the paths that are in both lists. */
export const meetingPaths = (a: readonly string[], b: readonly string[]): readonly string[] =>
  withoutCovered(a.flatMap(one => b.flatMap(other => meetingPath(one, other) ?? [])))
