// Reads again some time after each answer, for views of what changes without a feed. A page that nobody looks at does
// not ask, and neither does one whose request was refused: the next one would be as well.

import { useEffect } from 'preact/hooks'
import type { ViewReading } from './reading.js'

const againMs = 5_000

export function useAgainLater<Shape>({ json, text, problem, again }: ViewReading<Shape>): void {
  // Each answer is another object.
  useEffect(() => {
    if (problem?.status !== undefined && problem.status < 500) return
    let hasAsked = false
    const timer = setInterval(() => {
      if (hasAsked || document.visibilityState !== 'visible') return
      hasAsked = true
      again()
    }, againMs)
    return () => clearInterval(timer)
  }, [json, text, problem, again])
}
