// Removes everything from brokers that act as one, through their interface, so that the next case finds them as if new.
//
// It wipes the default tenant alone: cases that share brokers give them no start options, and without `-multiservice`
// there is no other. It ends when each broker lists nothing; it does not wait for notifications that are still in
// flight.

import { setTimeout as pause } from 'node:timers/promises'
import type { HttpClient } from '../support/http-client.js'

/** Longest time of a wipe; after that, the brokers must not be used again. The runner waits for 5 s. */
const wipeMsMax = 4_500
/** Longest time from the start until all brokers accept writes. */
const warmUpMsMax = 30_000
/** Between two checks. */
const lookMs = 5
/** Most entries that one request lists. */
const pageLength = 1000

const documents = ['/v2/subscriptions', '/v2/registrations'] as const

/** Throws when a broker is still not empty after `wipeMsMax`. */
export async function wipe(brokers: readonly HttpClient[]): Promise<void> {
  const untilMs = performance.now() + wipeMsMax
  for (const broker of brokers)
    while (await wipeOnce(broker)) {
      if (performance.now() > untilMs) throw new Error(`${broker.baseUrl} is not empty after ${wipeMsMax} ms`)
      await pause(lookMs)
    }
}

/**
 * Has each broker create one of each kind, and wipes it. The first time takes longer, because a broker then loads its
 * clients of receivers.
 */
export async function warmUp(brokers: readonly HttpClient[]): Promise<void> {
  const untilMs = performance.now() + warmUpMsMax
  const subscriptionWith = (notification: object) => ({ subject: { entities: [{ id: 'none' }] }, notification })
  for (const broker of brokers)
    for (const [path, body] of [
      ['/v2/entities?options=upsert', { id: 'warm' }],
      ['/v2/subscriptions', subscriptionWith({ http: { url: 'http://none' } })],
      ['/v2/subscriptions', subscriptionWith({ mqtt: { url: 'mqtt://none', topic: 'none' } })],
    ] as const)
      for (;;) {
        const { status, text } = await broker.send('POST', path, body)
        if (status < 300) break
        if (performance.now() > untilMs) throw new Error(`${broker.baseUrl}${path}: ${status} ${text}`)
        await pause(lookMs)
      }
  await wipe(brokers)
}

/** Deletes all that a broker lists. Returns false if the lists were empty. */
async function wipeOnce(broker: HttpClient): Promise<boolean> {
  let found = false
  for (const path of documents)
    for (const { id } of await listed<{ id: string }>(broker, path)) {
      found = true
      await broker.send('DELETE', `${path}/${id}`)
    }
  const byPath = new Map<string, { id: string; type: string }[]>()
  for (const { id, type, servicePath } of await listed<Row>(
    broker,
    '/v2/entities',
    'attrs=servicePath&options=keyValues',
  )) {
    found = true
    const same = byPath.get(servicePath)
    if (same) same.push({ id, type })
    else byPath.set(servicePath, [{ id, type }])
  }
  for (const [path, entities] of byPath)
    await broker.send('POST', '/v2/op/update', { actionType: 'delete', entities }, { 'Ctx-ServicePath': path })
  return found
}

interface Row {
  readonly id: string
  readonly type: string
  readonly servicePath: string
}

async function listed<T>(broker: HttpClient, path: string, more = 'options=skipForwarding'): Promise<readonly T[]> {
  const { status, json, text } = await broker.get(`${path}?limit=${pageLength}&${more}`)
  if (status !== 200) throw new Error(`${broker.baseUrl}${path}: ${status} ${text}`)
  return json as readonly T[]
}
