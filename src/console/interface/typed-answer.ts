// The answer to a request that a person has typed: as much of it as a page can show.
//
// A live feed has no end, so the page reads for a while and then ends it.

/** Bytes of a body that are read. */
const shownBytesMax = 256 * 1024
/** How long a body may take after the headers. */
const readMsMax = 5_000

export interface TypedAnswer {
  readonly status: number
  readonly statusText: string
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly text: string
  /** Whether the body goes on after this text. */
  readonly isCut: boolean
  /** From the request to the end of what was read. */
  readonly tookMs: number
}

export async function readAnswer(response: Response, sinceMs: number): Promise<TypedAnswer> {
  const { text, isCut } = await readStart(response)
  const { status, statusText, headers } = response
  return { status, statusText, headers: [...headers], text, isCut, tookMs: performance.now() - sinceMs }
}

async function readStart({ body }: Response): Promise<Pick<TypedAnswer, 'text' | 'isCut'>> {
  if (!body) return { text: '', isCut: false }
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    void reader.cancel()
  }, readMsMax)
  let text = ''
  let bytes = 0
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return { text: text + decoder.decode(), isCut: isLate }
      text += decoder.decode(value.subarray(0, shownBytesMax - bytes), { stream: true })
      bytes += value.length
      if (bytes <= shownBytesMax) continue
      void reader.cancel()
      return { text, isCut: true }
    }
  } finally {
    clearTimeout(timer)
  }
}
