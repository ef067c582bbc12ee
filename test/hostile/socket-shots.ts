// The generator of the campaign against WebSockets: what a stranger could send to `/v2/stream`, drawn from one Random,
// so that a seed gives the same shots.
//
//   messages    valid ones of each kind, most with a mutation, in frames that are whole, in fragments, or cut
//   floods      more watches, updates, pings and errors than a connection may have
//   frames      broken by every rule of RFC 6455, 5
//   handshakes  broken ones, and ones with frames behind them
//   leaving     half a message, and then silence, an end, or nothing more that is read
//
// Written from docs/interface/live.md#websocket; it shares no code with the broker.

import { type FrameForm, frame, handshake, opcodes } from '../http/frames.js'
import { one } from '../support/mutator.js'
import type { Random } from '../support/random.js'
import { oddNames, oddValue, RawJson, writeJson } from './words.js'

export interface SocketShot {
  readonly kind: string
  /** The client yields between two of them. */
  readonly pieces: readonly Uint8Array[]
  /**
   * goes on: what follows is answered as well. ends: the server ends the connection. any: both are right, and silence.
   * handshake: the bytes of a new connection, whatever the answer. leave, fin, half: the client closes the connection,
   * ends its side, or leaves it as it is and reads nothing.
   */
  readonly then: 'goes on' | 'ends' | 'any' | 'handshake' | 'leave' | 'fin' | 'half'
  /** The references of updates that must be answered, as JSON. */
  readonly refs: readonly string[]
}

type Message = Record<string, unknown>

/** Few names, so that the messages concern the same entities, watches and tenants. */
const ids = ['E1', 'E2', 'E3', 'E4', 'E5', 'E6'] as const
const types = ['T', 'Room', 'Thing'] as const
const watches = ['w1', 'w2', 'w3', '', 'x'.repeat(256), ...oddNames] as const
const tenants = ['alpha', 'beta', '__proto__', 'constructor'] as const
const paths = ['/', '/a', '/a/b', '/#', '/a/#'] as const
const optionWords = [
  'normalized',
  'keyValues',
  'onlyChangedAttrs',
  'sysAttrs',
  'snapshot',
  'leave',
  'fast',
  '',
] as const
const actions = ['append', 'appendStrict', 'update', 'replace', 'delete', 'fly'] as const
const filters: readonly Message[] = [
  { q: 'a>1' },
  { q: 'a~=(a+)+$' },
  { mq: 'a.m==1' },
  { georel: 'near;maxDistance:10', geometry: 'point', coords: '1,1' },
  { expression: { q: 'a==1;b!=2' } },
  { entities: [{ idPattern: '.*', type: 'T' }] },
  { alterationTypes: ['entityCreate', 'entityDelete'] },
  { conditionAttrs: ['a', 'b'] },
  { minInterval: 50 },
  { gather: 50 },
  { from: '1.abc.def' },
]
/** Attributes that may be wrong, in messages that can be parsed. */
const plainValues: readonly unknown[] = [
  null,
  1,
  'text',
  [],
  {},
  { value: null },
  { value: { $inc: 'x' } },
  { type: 7 },
]
/** The largest message of the broker. */
const messageBytesMax = 1024 * 1024

export class SocketShots {
  private numbers = 0

  constructor(private readonly random: Random) {}

  next(): SocketShot {
    const share = this.random.between(0, 99)
    if (share < 15) return this.brokenFrame()
    if (share < 21) return this.handshake()
    if (share < 27) return this.leaving()
    if (share < 30) return this.flood()
    return this.messages()
  }

  // Messages

  private messages(): SocketShot {
    const { random } = this
    const refs: string[] = []
    const texts: string[] = []
    for (let left = random.between(1, 4); left > 0; left--) texts.push(this.text(refs))
    const bytes = texts.map(text => this.framed(Buffer.from(text)))
    return this.shot('messages', this.cut(Buffer.concat(bytes)), 'goes on', refs)
  }

  /** The text of a message; if it is an update that must be answered, its reference is added. */
  private text(refs: string[]): string {
    const { random } = this
    const message = this.valid()
    const ref = message.op === 'update' ? JSON.stringify(message.ref) : undefined
    const isMutated = random.between(0, 9) < 7
    if (isMutated) return this.mutated(message)
    if (ref !== undefined) refs.push(ref)
    return writeJson(message)
  }

  private valid(): Message {
    const { random } = this
    switch (random.between(0, 9)) {
      case 0:
        return { op: 'ping' }
      case 1:
        return { op: 'token', token: one(random, ['', 'secret', 'x'.repeat(16 * 1024)]) }
      case 2:
      case 3:
        return { op: 'unwatch', id: one(random, watches) }
      case 4:
      case 5:
      case 6:
        return this.watch()
      default:
        return this.update()
    }
  }

  private watch(): Message {
    const { random } = this
    const message: Message = { op: 'watch', id: one(random, watches) }
    for (let left = random.between(0, 2); left > 0; left--) Object.assign(message, one(random, filters))
    if (random.between(0, 1) === 0) message.type = one(random, types)
    if (random.between(0, 2) === 0) message.options = [one(random, optionWords), one(random, optionWords)]
    if (random.between(0, 3) === 0) message.attrs = one(random, ['a', 'a,b', 'dateCreated', '__proto__'])
    return this.scoped(message)
  }

  private update(): Message {
    const { random } = this
    const entities = Array.from({ length: random.between(0, 4) }, () => ({
      id: one(random, ids),
      type: one(random, types),
      a: { value: random.between(0, 9), type: 'Number' },
      ...(random.between(0, 3) === 0 && { [one(random, oddNames)]: one(random, plainValues) }),
    }))
    const ref = random.between(0, 1) === 0 ? this.numbers++ : `r"${this.numbers++}`
    const message: Message = { op: 'update', ref, body: { actionType: one(random, actions), entities } }
    if (random.between(0, 3) === 0) message.options = one(random, ['keyValues', 'forcedUpdate', ['keyValues'], 'fast'])
    return this.scoped(message)
  }

  private scoped(message: Message): Message {
    const { random } = this
    if (random.between(0, 2) === 0) message.tenant = one(random, tenants)
    if (random.between(0, 2) === 0) message.path = one(random, paths)
    return message
  }

  /** Every result is a text, so the connection has to go on. */
  private mutated(message: Message): string {
    const { random } = this
    const names = Object.keys(message)
    const name = one(random, names)
    switch (random.between(0, 9)) {
      case 0:
        delete message[name]
        break
      case 1:
        message[one(random, oddNames)] = oddValue(random)
        break
      case 2:
        return writeJson(message).slice(0, random.between(0, 200))
      case 3:
        return writeJson(oddValue(random))
      case 4:
        return `${writeJson(message).slice(0, -1)},${JSON.stringify(name)}:${writeJson(oddValue(random))}}`
      case 5:
        message[name] = new RawJson(`${'['.repeat(random.between(1, 5_000))}`)
        break
      case 6:
        message[name] = Array.from({ length: random.between(1, 2_000) }, () => one(random, oddNames))
        break
      case 7:
        message.op = one(random, [...oddNames, 'WATCH', 'watch ', '', 'x'.repeat(100_000), null, 1, ['watch']])
        break
      default:
        message[name] = oddValue(random)
    }
    return writeJson(message)
  }

  // Frames

  private frame(form: FrameForm): Buffer {
    const { random } = this
    return frame({ ...form, mask: Buffer.from(Array.from({ length: 4 }, () => random.between(0, 255))) })
  }

  /** A text in one frame, or in fragments with pings in between. */
  private framed(text: Buffer): Buffer {
    const { random } = this
    if (random.between(0, 3) > 0) return this.frame({ opcode: opcodes.text, payload: text })
    const frames: Buffer[] = []
    const count = random.between(2, 5)
    let at = 0
    for (let n = 0; n < count; n++) {
      const isLast = n === count - 1
      const until = isLast ? text.length : random.between(at, text.length)
      const opcode = n === 0 ? opcodes.text : opcodes.continuation
      frames.push(this.frame({ opcode, isLast, payload: text.subarray(at, until) }))
      if (!isLast && random.between(0, 2) === 0) frames.push(this.frame({ opcode: opcodes.ping, payload: 'p' }))
      at = until
    }
    return Buffer.concat(frames)
  }

  /** Some bytes come in several pieces. */
  private cut(bytes: Buffer): Buffer[] {
    const { random } = this
    if (random.between(0, 4) > 0) return [bytes]
    const places = Array.from({ length: random.between(1, 4) }, () => random.between(0, bytes.length))
    const sorted = [0, ...places.sort((a, b) => a - b), bytes.length]
    return sorted.slice(1).map((place, index) => bytes.subarray(sorted[index], place))
  }

  private brokenFrame(): SocketShot {
    const { random } = this
    const { text, ping, binary, continuation, close } = opcodes
    const payload = one(random, ['', '{"op":"ping"}', 'x'.repeat(200), 'x'.repeat(70_000)])
    const whole = (kind: string, then: SocketShot['then'], ...forms: FrameForm[]): SocketShot =>
      this.shot(kind, this.cut(Buffer.concat(forms.map(form => this.frame(form)))), then)
    switch (random.between(0, 13)) {
      case 0:
        return whole('reserved bits', 'any', { opcode: text, payload, reserved: random.between(1, 7) })
      case 1:
        return whole('reserved opcode', 'any', { opcode: one(random, [3, 4, 5, 6, 7, 11, 12, 13, 14, 15]), payload })
      case 2:
        return whole('no mask', 'any', { opcode: text, payload, isMasked: false })
      case 3:
        return whole('binary', 'ends', { opcode: binary, payload })
      case 4:
        return whole('not UTF-8', 'ends', {
          opcode: text,
          payload: Buffer.from(one(random, ['\xff', '{"op":"\xc3"}', '\xed\xa0\x80', '\xc0\x80']), 'latin1'),
        })
      case 5:
        return whole('wrong length', 'any', { opcode: text, payload, length: random.between(0, 300_000) })
      case 6:
        return whole('length beyond all', 'ends', { opcode: text, payload, length: 2 ** random.between(31, 52) })
      case 7:
        return whole('long control', 'any', {
          opcode: one(random, [close, ping, opcodes.pong]),
          payload: 'x'.repeat(random.between(126, 2_000)),
        })
      case 8:
        return whole('control in fragments', 'any', { opcode: ping, payload: '', isLast: false })
      case 9:
        return whole('continuation of nothing', 'any', { opcode: continuation, payload })
      case 10:
        return whole('text in a text', 'any', { opcode: text, payload, isLast: false }, { opcode: text, payload })
      case 11:
        return whole('close', 'any', {
          opcode: close,
          payload: Buffer.from(
            one(random, ['', '\x03', '\x03\xe8', '\x00\x00', '\xff\xff', '\x03\xed', '\x03\xe8\xff']),
            'latin1',
          ),
        })
      case 12: {
        const isRare = random.between(0, 9) > 0
        return isRare
          ? this.noise()
          : whole('too large', 'ends', { opcode: text, payload: 'x'.repeat(messageBytesMax + 1) })
      }
      default:
        return this.noise()
    }
  }

  private noise(): SocketShot {
    const { random } = this
    const bytes = Array.from({ length: random.between(1, 300) }, () => random.between(0, 255))
    return this.shot('noise', this.cut(Buffer.from(bytes)), 'any')
  }

  // Connections

  private handshake(): SocketShot {
    const { random } = this
    const head = [...handshake, `Host: ${one(random, ['test', '', 'a b'])}`]
    const added = one(random, [
      ['Sec-WebSocket-Protocol: ngsi-v2.stream'],
      [`Sec-WebSocket-Protocol: ${'x,'.repeat(random.between(1, 4_000))}`],
      [`Sec-WebSocket-Extensions: ${one(random, ['permessage-deflate', 'permessage-deflate; a=b', ';;', ','])}`],
      ['Sec-WebSocket-Version: 8'],
      ['Sec-WebSocket-Key: x'],
      ['Origin: http://other.example'],
      ['Fiware-Service: a-b'],
      ['Content-Length: 5'],
      ['Transfer-Encoding: chunked'],
      ['Upgrade: h2c'],
      [],
    ])
    for (const header of added) head.splice(random.between(0, head.length), 0, header)
    if (random.between(0, 2) === 0) head.splice(random.between(0, head.length - 1), 1)
    const query = one(random, [
      '',
      '?type=T',
      '?q=%00',
      '?tenant=__proto__&path=/%23',
      '?from=x',
      '?%ff',
      '?options=snapshot',
    ])
    const line = `${one(random, ['GET', 'GET', 'GET', 'POST', 'OPTIONS'])} /v2/stream${query} HTTP/1.1`
    const early = random.between(0, 2) === 0 ? this.framed(Buffer.from(this.mutated(this.valid()))) : Buffer.alloc(0)
    const bytes = Buffer.from(`${[line, ...head].join('\r\n')}\r\n\r\n`, 'latin1')
    return this.shot('handshake', this.cut(Buffer.concat([bytes, early])), 'handshake')
  }

  private leaving(): SocketShot {
    const { random } = this
    const whole = Buffer.concat(
      Array.from({ length: random.between(1, 5) }, () => this.framed(Buffer.from(this.text([])))),
    )
    const isWhole = random.between(0, 1) === 0
    const bytes = isWhole ? whole : whole.subarray(0, random.between(0, whole.length))
    return this.shot('leaving', this.cut(bytes), one(random, ['leave', 'fin', 'half'] as const))
  }

  private flood(): SocketShot {
    const { random } = this
    const refs: string[] = []
    const many = (count: number, text: (n: number) => string): Buffer =>
      Buffer.concat(Array.from({ length: count }, (_, n) => this.frame({ opcode: opcodes.text, payload: text(n) })))
    switch (random.between(0, 4)) {
      case 0: {
        const ping = this.frame({ opcode: opcodes.ping, payload: 'x'.repeat(random.between(0, 125)) })
        return this.shot('pings', [Buffer.concat(Array(90).fill(ping))], 'goes on')
      }
      case 1:
        return this.shot('watches', [many(150, n => writeJson({ ...this.watch(), id: `f${n}` }))], 'goes on')
      case 2:
        return this.shot('errors', [many(1_000, () => one(random, ['{}', '{', '{"op":"fly"}', '[]', '0']))], 'goes on')
      case 3: {
        const update = (): string => {
          const message = this.update()
          refs.push(JSON.stringify(message.ref))
          return writeJson(message)
        }
        return this.shot('updates', [many(400, update)], 'goes on', refs)
      }
      default: {
        const [entities, ref] = [this.manyEntities(), this.numbers++]
        const text = writeJson({ op: 'update', ref, tenant: 'large', body: { actionType: 'append', entities } })
        return this.shot('large update', [many(3, () => text)], 'goes on', Array(3).fill(String(ref)))
      }
    }
  }

  private manyEntities(): Message[] {
    const value = 'x'.repeat(this.random.between(1, 800))
    return Array.from({ length: 500 }, (_, n) => ({ id: `M${n}`, type: 'Many', a: { type: 'Text', value } }))
  }

  private shot(
    kind: string,
    pieces: readonly Uint8Array[],
    then: SocketShot['then'],
    refs: readonly string[] = [],
  ): SocketShot {
    return { kind, pieces, then, refs }
  }
}
