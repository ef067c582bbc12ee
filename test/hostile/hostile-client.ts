// A client made of sockets that sends any bytes, and reads all bytes that come back.
//
// Strict shots share a connection as long as the broker keeps it. Mild ones have one each, which the client leaves
// after a short wait: by rule some of them get no answer. Shots that expect none leave their connection half-used,
// until there are enough others.
//
// Not here: whether an answer is right (judge).

import { connect, type Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import type { Shot } from './draft.js'

export interface ObservedAnswer {
  readonly status: number
  /** By lower-case name; if a name comes twice, the last value. */
  readonly headers: ReadonlyMap<string, string>
  readonly text: string
}

export interface Observed {
  readonly answers: readonly ObservedAnswer[]
  /** A fault in the way the answers came. */
  readonly problem?: string
  /** All bytes that came. */
  readonly raw: string
}

const strictWaitMs = 15_000
/** For an answer to bytes that are not a request; silence is allowed. */
const mildWaitMs = 40
const halvesMax = 30

export class HostileClient {
  private line: Line | undefined
  private readonly halves: Socket[] = []
  private readonly port: number

  constructor(port: number) {
    this.port = port
  }

  async fire(shot: Shot): Promise<Observed> {
    if (shot.expects === 'strict') return this.strictly(shot)
    const line = await Line.to(this.port)
    await line.send(shot.pieces)
    if (shot.expects === 'none') {
      this.halves.push(line.socket)
      if (this.halves.length > halvesMax) this.halves.shift()!.destroy()
      return { answers: [], raw: '' }
    }
    const answers: ObservedAnswer[] = []
    while (answers.length < shot.answersMax) {
      const answer = await line.answer(shot.isHead, mildWaitMs)
      if (!answer) break
      answers.push(answer)
    }
    line.socket.destroy()
    return { answers, raw: line.raw }
  }

  close(): void {
    this.line?.socket.destroy()
    for (const socket of this.halves) socket.destroy()
    this.halves.length = 0
  }

  private async strictly(shot: Shot): Promise<Observed> {
    const isReused = this.line !== undefined
    const line = this.line ?? (await Line.to(this.port))
    this.line = line
    line.forget()
    await line.send(shot.pieces)
    const answer = await line.answer(shot.isHead, strictWaitMs)
    if (!answer) {
      this.line = undefined
      line.socket.destroy()
      // A server may close an idle connection at the moment of its next use.
      if (isReused && line.isOver && line.raw === '') return this.strictly(shot)
      const how = line.isOver ? 'the connection was closed without an answer' : `no answer in ${strictWaitMs} ms`
      return { answers: [], problem: how, raw: line.raw }
    }
    const rest = line.rest
    if (rest !== '' || line.isOver || answer.headers.get('connection')?.toLowerCase() === 'close') {
      this.line = undefined
      line.socket.destroy()
    }
    const problem = rest === '' ? undefined : `something came behind the answer: ${rest.slice(0, 200)}`
    return { answers: [answer], raw: line.raw, ...(problem === undefined ? {} : { problem }) }
  }
}

class Line {
  isOver = false
  private bytes = Buffer.alloc(0)
  private all: Buffer[] = []
  private wake: () => void = () => {}
  readonly socket: Socket

  private constructor(socket: Socket) {
    this.socket = socket
    socket.on('error', () => {})
    socket.on('close', () => {
      this.isOver = true
      this.wake()
    })
    socket.on('data', chunk => {
      this.bytes = this.bytes.length === 0 ? chunk : Buffer.concat([this.bytes, chunk])
      this.all.push(chunk)
      this.wake()
    })
  }

  /** Rejects if the connection fails: that is a failure of the campaign. */
  static to(port: number): Promise<Line> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host: '127.0.0.1', noDelay: true })
      const onError = (error: Error): void => reject(new Error(`no connection: ${error.message}`))
      socket.once('error', onError)
      socket.once('connect', () => {
        socket.off('error', onError)
        resolve(new Line(socket))
      })
    })
  }

  get raw(): string {
    return Buffer.concat(this.all).toString('utf8')
  }

  get rest(): string {
    return this.bytes.toString('latin1')
  }

  forget(): void {
    this.all = []
  }

  async send(pieces: readonly Uint8Array[]): Promise<void> {
    for (const [index, piece] of pieces.entries()) {
      if (index > 0) await turn()
      if (!this.isOver && piece.length > 0) this.socket.write(piece)
    }
  }

  async answer(isHead: boolean, waitMs: number): Promise<ObservedAnswer | undefined> {
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      this.wake()
    }, waitMs)
    try {
      for (;;) {
        const answer = this.take(isHead)
        if (answer) return answer
        if (this.isOver || isLate) return undefined
        await new Promise<void>(resolve => {
          this.wake = resolve
        })
      }
    } finally {
      clearTimeout(timer)
    }
  }

  /** The next answer, if it has arrived completely. */
  private take(isHead: boolean): ObservedAnswer | undefined {
    // Line ends before an answer are not part of it.
    while (this.bytes[0] === 13 || this.bytes[0] === 10) this.bytes = this.bytes.subarray(1)
    const headEnd = this.bytes.indexOf('\r\n\r\n')
    if (headEnd < 0) return undefined
    const [first = '', ...lines] = this.bytes.toString('latin1', 0, headEnd).split('\r\n')
    const status = Number(/^HTTP\/1\.[01] (\d{3})(?: |$)/.exec(first)?.[1] ?? 0)
    if (status === 100) {
      this.bytes = this.bytes.subarray(headEnd + 4)
      return this.take(isHead)
    }
    const headers = new Map<string, string>()
    for (const line of lines) {
      const colon = line.indexOf(':')
      headers.set(line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim())
    }
    const hasBody = !isHead && status !== 204 && status !== 304
    const from = headEnd + 4
    if (hasBody && headers.get('transfer-encoding') === 'chunked') {
      const body = chunksOf(this.bytes.subarray(from))
      if (!body) return undefined
      this.bytes = this.bytes.subarray(from + body.taken)
      return { status, headers, text: body.text }
    }
    const length = hasBody ? Number(headers.get('content-length') ?? 0) : 0
    if (this.bytes.length < from + length) return undefined
    const text = this.bytes.toString('utf8', from, from + length)
    this.bytes = this.bytes.subarray(from + length)
    return { status, headers, text }
  }
}

function chunksOf(bytes: Buffer): { readonly text: string; readonly taken: number } | undefined {
  const chunks: Buffer[] = []
  for (let at = 0; ; ) {
    const lineEnd = bytes.indexOf('\r\n', at)
    if (lineEnd < 0) return undefined
    const length = Number.parseInt(bytes.toString('latin1', at, lineEnd), 16)
    const end = lineEnd + 2 + length
    if (!(length >= 0) || bytes.length < end + 2) return undefined
    if (length === 0) return { text: Buffer.concat(chunks).toString('utf8'), taken: end + 2 }
    chunks.push(bytes.subarray(lineEnd + 2, end))
    at = end + 2
  }
}
