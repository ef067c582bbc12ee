// A provider in a tenant of its own, where no entity is stored. It has one entity, and answers with everything that it
// has, whatever it is asked for. It accepts updates of every entity, and changes nothing.
//
// What it answers goes through the grant of who asked (docs/interface/access.md#registrations). The entity is not
// stored, so an answer has nothing but the provider's part, and every update that may go there does.

import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Teardown } from '../support/broker-process.js'
import type { HttpClient } from '../support/http-client.js'
import type { Attribute, Entity, Json } from '../support/reference-entities.js'
import { shownEntity } from '../support/reference-query.js'
import type { Markers } from './random-access-request.js'

export const providedTenant = 'provided'
export const providedTarget = { path: '/', id: 'P1', type: 'Lamp' } as const

/** The ids of updates. */
export const providedIds = [providedTarget.id, 'P2'] as const

const names = ['a', 'b', 'c', 'd'] as const

/** An entity in an update for the provider. */
export interface ProvidedUpdate {
  readonly id: string
  readonly type: string | undefined
  /** By attribute. */
  readonly values: Readonly<Record<string, Json>>
}

export class AccessProvider {
  readonly entity: Entity
  #updates: ProvidedUpdate[] = []
  readonly #server: Server

  constructor(t: Teardown, markers: Markers) {
    const attributes = names.map(name => [name, attributeOf(markers.next())] as const)
    this.entity = { ...providedTarget, createdMs: 0, modifiedMs: 0, attributes: new Map(attributes) }
    const body = `[${shownEntity(this.entity, { mode: 'normalized' })}]`
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        if (request.url?.endsWith('/op/update')) {
          this.#updates.push(...updatesIn(Buffer.concat(chunks).toString()))
          return void response.writeHead(204).end()
        }
        response.setHeader('Content-Type', 'application/json')
        response.setHeader('Fiware-Total-Count', '1')
        response.setHeader('Ctx-Total-Count', '1')
        response.end(body)
      })
    })
    t.teardown(() => this.#server.closeAllConnections())
    t.teardown(() => this.#server.close())
  }

  /** The updates that have come since the last call. */
  takeUpdates(): readonly ProvidedUpdate[] {
    const taken = this.#updates
    this.#updates = []
    return taken
  }

  /** Listens, and registers itself with this proof. */
  async register(client: HttpClient, proof: Readonly<Record<string, string>>): Promise<void> {
    await new Promise<void>(resolve => this.#server.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
    const { id, type } = providedTarget
    const headers = { ...proof, 'Ctx-Service': providedTenant }
    for (const [entity, supportedForwardingMode] of [
      [{ id, type }, 'query'],
      [{ idPattern: '.*' }, 'update'],
    ] as const) {
      const registration = {
        dataProvided: { entities: [entity] },
        provider: { http: { url }, supportedForwardingMode },
      }
      const { status, text } = await client.send('POST', '/v2/registrations', registration, headers)
      if (status !== 201) throw new Error(`the provider was not registered: ${status} ${text}`)
    }
  }
}

const attributeOf = (value: string): Attribute => ({
  type: 'Text',
  value,
  metadata: new Map(),
  createdMs: 0,
  modifiedMs: 0,
})

function updatesIn(body: string): readonly ProvidedUpdate[] {
  const { entities } = JSON.parse(body) as { readonly entities: readonly Record<string, Json>[] }
  return entities.map(({ id, type, ...attributes }) => ({
    id: id as string,
    type: type as string | undefined,
    values: Object.fromEntries(
      Object.entries(attributes).map(([name, attribute]) => [name, (attribute as { readonly value: Json }).value]),
    ),
  }))
}
