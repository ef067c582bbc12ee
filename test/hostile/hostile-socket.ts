// A client of bytes that speaks WebSocket with a broker, sends shots, and judges what comes back.
//
// After a shot with which the connection goes on, it sends a message of its own. Its answer shows that the broker has
// read the shot to its end, and that it still answers.

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { frame, framesOf, handshake, opcodes, type ReadFrame } from '../http/frames.js'
import type { SocketShot } from './socket-shots.js'

const strictWaitMs = 30_000
/** For an answer to bytes that are not a frame; silence is allowed. */
const mildWaitMs = 20

const answers: ReadonlySet<string> = new Set(['watching', 'unwatched', 'ok', 'done', 'pong', 'error', 'event'])

/** A documented 500: an update with an operator that does not fit the stored value. */
const ofOperators = /^Database Error \S/

export class HostileSocket {
  isOver = false
  /** The first fault in the received bytes. */
  problem: string | undefined
  private bytes: Buffer = Buffer.alloc(0)
  /** Behind the answer to the handshake. */
  private speaksFrames = false
  private status: number | undefined
  private marks = 0
  /** The marks that were answered, and the references of the updates that were. */
  private readonly answered = new Set<string>()
  private readonly doneTimes = new Map<string, number>()
  private closeCode: number | undefined
  private wake: () => void = () => {}

  private constructor(readonly socket: Socket) {
    socket.on('error', () => {})
    socket.on('close', () => {
      this.isOver = true
      this.wake()
    })
    socket.on('data', chunk => this.read(chunk))
  }

  /** Rejects if the connection fails: that is a failure of the campaign. */
  static async to(port: number): Promise<HostileSocket> {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    await once(socket, 'connect')
    return new HostileSocket(socket)
  }

  /** A connection that has shaken hands. */
  static async open(port: number): Promise<HostileSocket> {
    const opened = await HostileSocket.to(port)
    const head = ['GET /v2/stream HTTP/1.1', 'Host: test', ...handshake].join('\r\n')
    opened.socket.write(`${head}\r\n\r\n`)
    await opened.until(() => opened.status !== undefined, strictWaitMs)
    if (opened.status !== 101) throw new Error(`the handshake was answered ${opened.status}`)
    return opened
  }

  /** Sends a shot. Returns what is wrong; undefined: nothing. */
  async fire({ pieces, then, refs }: SocketShot): Promise<string | undefined> {
    const before = new Map(refs.map(ref => [ref, this.doneTimes.get(ref) ?? 0]))
    if (then === 'half') this.socket.pause()
    for (const [index, piece] of pieces.entries()) {
      if (index > 0) await turn()
      if (!this.isOver && piece.length > 0) this.socket.write(piece)
    }
    if (then === 'leave') this.leave()
    else if (then === 'fin') this.socket.end()
    else if (then === 'any' || then === 'handshake') await this.until(() => this.isOver, mildWaitMs)
    else if (then === 'ends') {
      if (!(await this.until(() => this.isOver || this.closeCode !== undefined, strictWaitMs)))
        return 'the connection was not ended'
    } else if (then === 'goes on') return this.problem ?? (await this.stillAnswers(refs, before))
    return this.problem
  }

  leave(): void {
    this.socket.destroy()
  }

  private async stillAnswers(
    refs: readonly string[],
    before: ReadonlyMap<string, number>,
  ): Promise<string | undefined> {
    const mark = `mark ${this.marks++}`
    if (!this.isOver) this.socket.write(frame({ opcode: opcodes.text, payload: JSON.stringify({ op: mark }) }))
    const wanted = new Map<string, number>()
    for (const ref of refs) wanted.set(ref, (wanted.get(ref) ?? before.get(ref) ?? 0) + 1)
    const isDone = (): boolean => [...wanted].every(([ref, times]) => (this.doneTimes.get(ref) ?? 0) >= times)
    const isAnswered = (): boolean => this.answered.has(mark) && isDone()
    await this.until(() => this.isOver || isAnswered(), strictWaitMs)
    if (this.isOver) return `the connection was ended (${this.closeCode ?? 'without a close frame'})`
    if (!this.answered.has(mark)) return 'it does not answer any more'
    const missing = [...wanted].filter(([ref, times]) => (this.doneTimes.get(ref) ?? 0) < times)
    if (missing.length > 0) return `${missing.length} updates were not answered, the first one is ${missing[0]![0]}`
    for (const [ref, times] of wanted) if (this.doneTimes.get(ref) !== times) return `update ${ref} was answered twice`
    return this.problem
  }

  /** Whether it became so in time. */
  private async until(isSo: () => boolean, waitMs: number): Promise<boolean> {
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      this.wake()
    }, waitMs)
    while (!isSo() && !isLate)
      await new Promise<void>(resolve => {
        this.wake = resolve
      })
    clearTimeout(timer)
    return isSo()
  }

  private read(chunk: Buffer): void {
    this.bytes = this.bytes.length === 0 ? chunk : Buffer.concat([this.bytes, chunk])
    if (!this.speaksFrames) this.readHead()
    if (this.speaksFrames) this.readFrames()
    this.wake()
  }

  private readHead(): void {
    const end = this.bytes.indexOf('\r\n\r\n')
    if (end < 0) return
    const head = this.bytes.toString('latin1', 0, end)
    const [, status] = /^HTTP\/1\.1 (\d{3}) /.exec(head) ?? []
    if (status === undefined) this.wrong(`the answer to a handshake is ${head.slice(0, 200)}`)
    this.status = Number(status)
    if (this.status === 500) this.wrong(`a handshake was answered ${this.bytes.toString('latin1').slice(0, 1_000)}`)
    if (this.status !== 101) return
    this.speaksFrames = true
    this.bytes = this.bytes.subarray(end + 4)
  }

  private readFrames(): void {
    const frames = framesOf(this.bytes)
    const last = frames.at(-1)
    if (!last) return
    for (const one of frames) this.readFrame(one)
    const taken = last.payload.byteOffset + last.payload.length - this.bytes.byteOffset
    this.bytes = this.bytes.subarray(taken)
  }

  private readFrame({ opcode, isLast, payload }: ReadFrame): void {
    if (!isLast) this.wrong('a fragment came')
    if (opcode === opcodes.close) this.closeCode = payload.length < 2 ? 1005 : payload.readUInt16BE(0)
    else if (opcode === opcodes.text) this.readMessage(payload.toString())
    else if (opcode !== opcodes.pong && opcode !== opcodes.ping) this.wrong(`a frame with the opcode ${opcode} came`)
  }

  private readMessage(text: string): void {
    let message: Record<string, unknown>
    try {
      message = JSON.parse(text)
    } catch {
      return this.wrong(`a message is not JSON: ${text.slice(0, 500)}`)
    }
    const { op, error, description, ref, status } = message
    if (!answers.has(String(op))) return this.wrong(`an unknown answer: ${text.slice(0, 500)}`)
    if (op === 'error' && (typeof error !== 'string' || typeof description !== 'string'))
      return this.wrong(`an error without a text: ${text.slice(0, 500)}`)
    const isFailure = error === 'InternalServerError' || status === 500
    if (isFailure && !ofOperators.test(String(description))) return this.wrong(`a failure: ${text.slice(0, 1_000)}`)
    const [, mark] = op === 'error' ? (/^unknown op: (mark \d+)$/.exec(String(description)) ?? []) : []
    if (mark !== undefined) this.answered.add(mark)
    if (op === 'done') {
      const key = JSON.stringify(ref)
      this.doneTimes.set(key, (this.doneTimes.get(key) ?? 0) + 1)
    }
  }

  private wrong(problem: string): void {
    this.problem ??= problem
  }
}
