// An IoT agent for a test: agent-main in a process of its own. A test provisions it over HTTP at its north side, as an
// operator would, and sends orders for its devices.
//
// The calls of the library are kept in order. They come over another channel than the broker's answers, so `callsOf`
// waits until that channel is empty.

import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { freePort, plainly } from '../support/broker-process.js'
import { type Answer, HttpClient } from '../support/http-client.js'

export interface Attribute {
  readonly name: string
  readonly type: string
  readonly value: unknown
}

/** A configuration group: devices of one key in one scope. */
export interface Group {
  readonly apikey: string
  readonly service: string
  readonly subservice: string
}

/** An action of a device. Several lists of attributes are several measures at once. */
export type Deed =
  | { readonly kind: 'measure'; readonly attributes: readonly Attribute[] | readonly (readonly Attribute[])[] }
  | { readonly kind: 'read'; readonly names: readonly string[] }
  | { readonly kind: 'report'; readonly command: string; readonly result: string }
  | { readonly kind: 'nothing' }

export type Order = Deed & { readonly number: number; readonly group: Group; readonly device: string }

interface Called {
  readonly id: string
  readonly type: string
  readonly service: string
  readonly subservice: string
}

/** A call of the library. */
export type Call =
  | (Called & { readonly kind: 'query'; readonly names: readonly string[] })
  | (Called & { readonly kind: 'update' | 'command' | 'notification'; readonly attributes: readonly Attribute[] })

export type AgentMessage =
  | Call
  | { readonly kind: 'ready' }
  | { readonly kind: 'done'; readonly number: number; readonly answer?: unknown; readonly error?: string }

export class IotAgent {
  readonly #told: Call[] = []
  readonly #waiting = new Map<number, (message: AgentMessage & { kind: 'done' }) => void>()
  readonly #north: HttpClient
  #orders = 0

  constructor(
    private readonly child: ChildProcess,
    readonly url: string,
  ) {
    this.#north = new HttpClient(url)
    child.on('message', (message: AgentMessage) => {
      if (message.kind === 'done') this.#waiting.get(message.number)?.(message)
      else if (message.kind !== 'ready') this.#told.push(message)
    })
  }

  /** A request to the north side, in the scope of a group. */
  north(method: string, path: string, { service, subservice }: Group, body?: unknown): Promise<Answer> {
    return this.#north.send(method, path, body, { 'fiware-service': service, 'fiware-servicepath': subservice })
  }

  /** Has a device do something. The answer is that of the library; its complaint becomes the error. */
  async order(group: Group, device: string, deed: Deed): Promise<unknown> {
    const number = this.#orders++
    const done = new Promise<AgentMessage & { kind: 'done' }>(resolve => this.#waiting.set(number, resolve))
    this.child.send({ ...deed, number, group, device })
    const { answer, error } = await done
    if (error !== undefined) throw new Error(error)
    return answer
  }

  /** The calls of the library so far, in the tenant of a group. */
  async callsOf(group: Group): Promise<readonly Call[]> {
    await this.order(group, '', { kind: 'nothing' })
    return this.#told.filter(({ service }) => service === group.service)
  }

  close(): void {
    this.#north.close()
    this.child.kill('SIGKILL')
  }
}

/** Starts an agent for the broker at `brokerUrl`; it ends with the test. `settings`: further ones of the library. */
export async function startIotAgent(t: Test, brokerUrl: string, settings: object = {}): Promise<IotAgent> {
  const port = await freePort()
  const program = fileURLToPath(new URL('agent-main.js', import.meta.url))
  const command = plainly([process.execPath, program, String(port), brokerUrl, JSON.stringify(settings)])
  const child = spawn(...command, { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
  let complaints = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    complaints += text
  })
  const agent = new IotAgent(child, `http://127.0.0.1:${port}`)
  t.teardown(() => agent.close())
  await new Promise<void>((resolve, reject) => {
    child.once('message', () => resolve())
    child.once('exit', () => reject(new Error(`the agent ended before it was ready\n${complaints}`)))
  })
  return agent
}
