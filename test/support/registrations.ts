// Registrations for tests: made of the bodies that clients send, and drawn at random.

import type { Registration } from '../../src/domain/providers/registration.js'
import { parseRegistration, patchRegistration } from '../../src/domain/providers/registration-parser.js'
import { type Result, refusalText } from '../../src/domain/refusal.js'
import { parseJson } from '../../src/http/body.js'
import fc from './properties.js'

const registrationId = '65f0c2a1b4d3e2f1a0c9b8d7'

/** The result of a POST of the body, in a path of the default tenant. */
export function registered(body: string, servicePath = '/'): Result<Registration> {
  const payload = parseJson(Buffer.from(body))
  return payload.ok ? parseRegistration(payload.value, { id: registrationId, tenant: '', servicePath }) : payload
}

/** The registration after a PATCH of the body. */
export function repatched(existing: Registration, body: string): Result<Registration> {
  const payload = parseJson(Buffer.from(body))
  return payload.ok ? patchRegistration(existing, payload.value) : payload
}

/** The registration of a valid body. */
export function registration(body: string, servicePath?: string): Registration {
  const result = registered(body, servicePath)
  if (result.ok) return result.value
  throw new Error(refusalText(result.refusal))
}

/** A registration of entities at a provider, the n-th one to be created. */
export const provided = (
  n: number,
  entities: Registration['dataProvided']['entities'],
  attrs: readonly string[],
  url: string,
  more: Partial<Registration> & { readonly mode?: Registration['provider']['supportedForwardingMode'] } = {},
): Registration => {
  const { mode = 'all', ...rest } = more
  return {
    id: n.toString(16).padStart(24, '0'),
    tenant: '',
    servicePath: '/',
    description: '',
    expiresMs: undefined,
    dataProvided: { entities, attrs },
    provider: { url, supportedForwardingMode: mode, legacyForwarding: false },
    status: 'active',
    ...rest,
  }
}

const names = fc.uniqueArray(fc.constantFrom('a', 'b', '__proto__', 'constructor', '1'), { maxLength: 3 })

/** A record whose prototype is that of parsed JSON. */
const plain = <T extends object>(members: { [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<T> =>
  fc.record<T>(members, { noNullPrototype: true })

const entities = fc.oneof(
  plain({ id: fc.constantFrom('E1', 'E2', '__proto__') }),
  plain({ id: fc.constantFrom('E1', 'E2'), type: fc.constantFrom('T', 'U') }),
  plain({ idPattern: fc.constant('.*' as const), type: fc.constantFrom('T', 'U') }),
  plain({ idPattern: fc.constant('.*' as const) }),
)

/** Any registration. */
export const registrations: fc.Arbitrary<Registration> = plain({
  id: fc.nat(0xffff).map(n => n.toString(16).padStart(24, '0')),
  tenant: fc.constantFrom('', 't'),
  servicePath: fc.constantFrom('/', '/a', '/a/b'),
  description: fc.string(),
  expiresMs: fc.option(fc.integer(), { nil: undefined }),
  dataProvided: plain({ entities: fc.array(entities, { maxLength: 3 }), attrs: names }),
  provider: plain({
    url: fc.constantFrom('http://h', 'https://h:8080/v2', 'http://[::1]:1026/'),
    supportedForwardingMode: fc.constantFrom('all', 'none', 'query', 'update'),
    legacyForwarding: fc.boolean(),
  }),
  status: fc.constantFrom('active', 'inactive'),
})
