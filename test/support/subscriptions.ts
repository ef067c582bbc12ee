// Subscriptions for tests, made of the bodies that clients send.

import { type Result, refusalText } from '../../src/domain/refusal.js'
import type { Subscription } from '../../src/domain/subscriptions/subscription.js'
import { parseSubscription, patchSubscription } from '../../src/domain/subscriptions/subscription-parser.js'
import { parseJson } from '../../src/http/body.js'

export const subscriptionId = '65f0c2a1b4d3e2f1a0c9b8d7'

/** The result of a POST of the body, in a path of the default tenant. */
export function posted(body: string, servicePath = '/#'): Result<Subscription> {
  const payload = parseJson(Buffer.from(body))
  return payload.ok ? parseSubscription(payload.value, { id: subscriptionId, tenant: '', servicePath }) : payload
}

/** The subscription after a PATCH of the body. */
export function patched(existing: Subscription, body: string, servicePath = '/#'): Result<Subscription> {
  const payload = parseJson(Buffer.from(body))
  return payload.ok ? patchSubscription(existing, payload.value, servicePath) : payload
}

/** The subscription of a valid body. */
export const subscription = (body: string, servicePath?: string): Subscription => demand(posted(body, servicePath))

export const afterPatch = (existing: Subscription, body: string, servicePath?: string): Subscription =>
  demand(patched(existing, body, servicePath))

function demand<T>(result: Result<T>): T {
  if (result.ok) return result.value
  throw new Error(refusalText(result.refusal))
}
