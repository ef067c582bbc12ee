// The data that no other tenant may see: a tenant with secrets in every possible place, and its owner.
//
// Paths of URLs are no secrets: alarms name them (docs/interface/administration.md#alarms). All secrets hold one
// marker, so that one search finds any of them. The owner continues to read and change the entities, so that secrets
// are in every buffer and cache while hostile requests come.
//
// Not here: the searches for the marker (judge, receiver, campaign).

import type { HttpClient } from '../support/http-client.js'
import type { Random } from '../support/random.js'
import { vaultTenant } from './mutations.js'
import { PatientClient } from './patient-client.js'

/** The one entity whose id hostile requests know. */
const knownId = 'known'

export class Vault {
  /** Every secret contains it. */
  readonly marker: string
  /** The id of the subscription, which hostile requests know. */
  subscriptionId = ''
  private written = 0
  private readonly headers: Readonly<Record<string, string>>

  constructor(random: Random) {
    const digits = Array.from({ length: 20 }, () => random.between(0, 15).toString(16)).join('')
    this.marker = `zq${digits}`
    this.headers = { 'Ctx-Service': vaultTenant, 'Ctx-ServicePath': '/deep/down' }
  }

  /** Stores entities, a subscription and a registration with secrets. `receiverPort` gets the owner's notifications. */
  async plant(baseUrl: string, receiverPort: number): Promise<void> {
    const client = new PatientClient(baseUrl)
    const { marker, headers } = this
    const entity = (id: string, type: string) => ({
      id,
      type,
      note: { value: this.note, type: `Type-${marker}`, metadata: { [`meta-${marker}`]: { value: marker } } },
      [`attr-${marker}`]: { value: { [marker]: [marker] } },
    })
    for (const [id, type] of [
      [knownId, 'Known'],
      [`id-${marker}`, `type-${marker}`],
    ] as const)
      await sent(client, 'POST', '/v2/entities', entity(id, type), headers, 201)
    const location = await sent(client, 'POST', '/v2/subscriptions', this.subscription(receiverPort), headers, 201)
    this.subscriptionId = location.split('/')[3] ?? ''
    const registration = {
      description: `registration ${marker}`,
      dataProvided: { entities: [{ id: `provided-${marker}`, type: 'Known' }], attrs: ['note'] },
      provider: { http: { url: `http://127.0.0.1:${receiverPort}/provider` } },
    }
    await sent(client, 'POST', '/v2/registrations', registration, headers, 201)
    client.close()
  }

  /** The owner changes a secret, which sends a notification with secret headers. */
  async change(client: HttpClient): Promise<void> {
    this.written++
    const body = { note: { value: this.note, type: `Type-${this.marker}` } }
    await sent(client, 'PATCH', `/v2/entities/${knownId}/attrs`, body, this.headers, 204)
  }

  /** The difference between the stored data, as the owner sees it, and the planted data; undefined if none. */
  async problem(client: HttpClient): Promise<string | undefined> {
    const { marker } = this
    const entities = await client.get('/v2/entities?options=keyValues&limit=100', { 'Ctx-Service': vaultTenant })
    const list = entities.json as Record<string, unknown>[]
    const ids = Array.isArray(list) ? list.map(({ id }) => id).join() : entities.text
    if (ids !== `${knownId},id-${marker}`) return `the vault holds entities ${ids.slice(0, 300)}`
    if (list[0]!.note !== this.note) return `the vault's note is ${String(list[0]!.note).slice(0, 100)}`
    for (const documents of ['subscriptions', 'registrations']) {
      const { json } = await client.get(`/v2/${documents}`, { 'Ctx-Service': vaultTenant })
      const count = (json as unknown[]).length
      if (count !== 1) return `the vault holds ${count} ${documents}`
    }
    return undefined
  }

  private get note(): string {
    return `note ${this.written} ${this.marker}`
  }

  private subscription(receiverPort: number): unknown {
    const { marker } = this
    const headers = { Authorization: `Bearer ${marker}`, 'X-Secret': marker }
    return {
      description: `subscription ${marker}`,
      subject: { entities: [{ idPattern: '.*' }], condition: { attrs: ['note'] } },
      notification: {
        httpCustom: { url: `http://127.0.0.1:${receiverPort}/vault`, headers, qs: { token: marker } },
      },
    }
  }
}

async function sent(
  client: HttpClient,
  method: string,
  path: string,
  body: unknown,
  headers: Readonly<Record<string, string>>,
  status: number,
): Promise<string> {
  const answer = await client.send(method, path, body, headers)
  if (answer.status !== status) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`)
  return answer.headers.location ?? ''
}
