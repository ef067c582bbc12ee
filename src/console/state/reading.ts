// The answers that a view has read from the broker. The latest good answer stays while a new one is read, and when that
// fails.

import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import type { Json } from '../../domain/json.js'
import type { ConsoleClient, RequestProblem } from '../interface/console-client.js'
import type { ConsoleRequest } from '../interface/console-request.js'
import { useValue } from './observable.js'

export interface ViewReading<Shape> {
  /** undefined: nothing was read yet. */
  readonly json: Shape | undefined
  /** The same as it came. */
  readonly text: string | undefined
  readonly total: number | undefined
  readonly problem: RequestProblem | undefined
  /** Reads again. */
  readonly again: () => void
}

interface Got<Shape> {
  /** The request that has been answered, as a text. */
  readonly about: string
  readonly json: Shape | undefined
  readonly text: string | undefined
  readonly total: number | undefined
  readonly problem: RequestProblem | undefined
}

const nothing: Got<never> = { about: '', json: undefined, text: undefined, total: undefined, problem: undefined }

/** Reads when the request changes, when the broker has come back, and on `again`. undefined: nothing to read. */
export function useReading<Shape = Json>(
  client: ConsoleClient,
  request: ConsoleRequest | undefined,
): ViewReading<Shape> {
  const returns = useValue(client.returns)
  const [times, setTimes] = useState(0)
  const [got, setGot] = useState<Got<Shape>>(nothing)
  const about = request ? JSON.stringify(request) : ''
  const latest = useRef(request)
  latest.current = request
  // The text stands for the request, the numbers for a new try.
  useEffect(() => {
    const { current: wanted } = latest
    if (!wanted) return
    const ending = new AbortController()
    void client.ask<Shape>(wanted, ending.signal).then(answer => {
      if (ending.signal.aborted) return
      if (answer.ok) {
        const { json, text, total } = answer
        setGot({ about, json, text, total, problem: undefined })
        // The bar says that the broker is gone.
      } else if (answer.problem.status !== undefined)
        setGot(before => ({ ...(before.about === about ? before : nothing), about, problem: answer.problem }))
    })
    return () => ending.abort()
  }, [client, about, returns, times])
  const again = useCallback(() => setTimes(count => count + 1), [])
  const { json, text, total, problem } = got.about === about ? got : nothing
  return { json, text, total, problem, again }
}
