// The actions that rules allow to the key or token in a tenant and service path, so that a view offers nothing else.
//
// The interface has no question for that, so the console asks for something that cannot succeed or changes nothing, such
// as the creation of an entity without an id: rules are asked before a body is read. A 403 means that no rule allows
// the action here. Without a key nothing is asked, and everything is offered.

import { useEffect, useState } from 'preact/hooks'
import type { ConsoleClient } from '../interface/console-client.js'
import type { ConsoleRequest } from '../interface/console-request.js'
import { useValue } from './observable.js'
import type { ConsoleScope } from './scope.js'

const actions = ['create', 'update', 'delete', 'subscribe', 'register', 'metrics', 'admin'] as const

export type OfferedAction = (typeof actions)[number]

export type Allowances = ReadonlySet<OfferedAction>

const everything: Allowances = new Set(actions)
const nothing: Allowances = new Set()

/** An id that no entity has. */
const noEntity = (): string => crypto.getRandomValues(new Uint32Array(4)).join('-')

const questions: Readonly<Record<OfferedAction, () => ConsoleRequest>> = {
  create: () => ({ method: 'POST', path: 'v2/entities', body: {} }),
  update: () => ({ method: 'PATCH', path: `v2/entities/${noEntity()}/attrs`, body: {} }),
  delete: () => ({ method: 'DELETE', path: `v2/entities/${noEntity()}` }),
  subscribe: () => ({ method: 'GET', path: 'v2/subscriptions', query: { limit: '1' } }),
  register: () => ({ method: 'GET', path: 'v2/registrations', query: { limit: '1' } }),
  metrics: () => ({ method: 'GET', path: 'metrics' }),
  admin: () => ({ method: 'GET', path: 'admin/sem' }),
}

/** The answers that refuse an action. Where operators have a port of their own, their paths are unknown at this one. */
const refusing = (action: OfferedAction): readonly number[] => (action === 'admin' ? [401, 403, 404] : [401, 403])

const isWrite = (action: OfferedAction): boolean => action === 'create' || action === 'update' || action === 'delete'

/** Until the answers are there, nothing is offered. */
export function useAllowances(client: ConsoleClient, { tenant, servicePath }: ConsoleScope): Allowances {
  const proof = useValue(client.proof)
  const about = JSON.stringify([proof, tenant, servicePath])
  const [known, setKnown] = useState({ about: '', allowed: nothing })
  useEffect(() => {
    if (proof === '') return
    let isOver = false
    void askAll(client, { tenant, servicePath }).then(allowed => {
      if (!isOver) setKnown({ about, allowed })
    })
    return () => {
      isOver = true
    }
  }, [client, proof, about, tenant, servicePath])
  if (proof === '') return everything
  return known.about === about ? known.allowed : nothing
}

async function askAll(client: ConsoleClient, { tenant, servicePath }: ConsoleScope): Promise<Allowances> {
  const asked = actions.map(async action => {
    // A write is in one path.
    const path = isWrite(action) ? servicePath.replace(/\/?#$/, '') : servicePath
    const answer = await client.ask({ ...questions[action](), tenant, servicePath: path })
    return answer.ok || !refusing(action).some(status => status === answer.problem.status)
  })
  const allowed = await Promise.all(asked)
  return new Set(actions.filter((_action, at) => allowed[at]))
}
