// A provider of one entity, in a tenant of its own: it answers with everything that it has, whatever it is asked for.
//
// What it answers goes through the grant of who asked (docs/interface/access.md#registrations). The entity is not
// stored, so an answer has nothing but the provider's part.

import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Teardown } from '../support/broker-process.js'
import type { HttpClient } from '../support/http-client.js'
import type { Attribute, Entity } from '../support/reference-entities.js'
import { shownEntity } from '../support/reference-query.js'
import type { Markers } from './random-access-request.js'

export const providedTenant = 'provided'
export const providedTarget = { path: '/', id: 'P1', type: 'Lamp' } as const

const names = ['a', 'b', 'c', 'd'] as const

export class AccessProvider {
  readonly entity: Entity
  readonly #server: Server

  constructor(t: Teardown, markers: Markers) {
    const attributes = names.map(name => [name, attributeOf(markers.next())] as const)
    this.entity = { ...providedTarget, createdMs: 0, modifiedMs: 0, attributes: new Map(attributes) }
    const body = `[${shownEntity(this.entity, { mode: 'normalized' })}]`
    this.#server = createServer((request, response) => {
      request.resume()
      request.on('end', () => {
        response.setHeader('Content-Type', 'application/json')
        response.setHeader('Fiware-Total-Count', '1')
        response.setHeader('Ctx-Total-Count', '1')
        response.end(body)
      })
    })
    t.teardown(() => this.#server.closeAllConnections())
    t.teardown(() => this.#server.close())
  }

  /** Listens, and registers itself with this proof. */
  async register(client: HttpClient, proof: Readonly<Record<string, string>>): Promise<void> {
    await new Promise<void>(resolve => this.#server.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
    const { id, type } = providedTarget
    const registration = {
      dataProvided: { entities: [{ id, type }] },
      provider: { http: { url }, supportedForwardingMode: 'query' },
    }
    const headers = { ...proof, 'Ctx-Service': providedTenant }
    const { status, text } = await client.send('POST', '/v2/registrations', registration, headers)
    if (status !== 201) throw new Error(`the provider was not registered: ${status} ${text}`)
  }
}

const attributeOf = (value: string): Attribute => ({
  type: 'Text',
  value,
  metadata: new Map(),
  createdMs: 0,
  modifiedMs: 0,
})
