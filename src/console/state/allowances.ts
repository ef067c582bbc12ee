// The actions that are offered in a tenant and service path: those that rules allow to the key or token of the person,
// or to a person without one (docs/interface/access.md#what-a-client-may-do).
//
// Without access control everything is offered. Views of operators then name the port that has them, if they have one of
// their own.

import { useEffect, useState } from 'preact/hooks'
import type { ConsoleClient } from '../interface/console-client.js'
import { useValue } from './observable.js'
import type { ConsoleScope } from './scope.js'

const actions = ['create', 'update', 'delete', 'subscribe', 'register', 'metrics', 'admin'] as const

export type OfferedAction = (typeof actions)[number]

export type Allowances = ReadonlySet<OfferedAction>

/** The answer of `GET /v2/access`. */
interface OwnAccess {
  readonly principal?: unknown
  readonly allowed: readonly string[]
  readonly narrowed: readonly string[]
}

const everything: Allowances = new Set(actions)
const nothing: Allowances = new Set()

/** Until the answer is there, nothing is offered to a key, and everything without one. */
export function useAllowances(client: ConsoleClient, { tenant, servicePath }: ConsoleScope): Allowances {
  const proof = useValue(client.proof)
  const about = JSON.stringify([proof, tenant, servicePath])
  const [known, setKnown] = useState({ about: '', allowed: nothing })
  useEffect(() => {
    let isOver = false
    void ask(client, { tenant, servicePath }, proof !== '').then(allowed => {
      if (!isOver) setKnown({ about, allowed })
    })
    return () => {
      isOver = true
    }
  }, [client, proof, about, tenant, servicePath])
  if (known.about === about) return known.allowed
  return proof === '' ? everything : nothing
}

async function ask(client: ConsoleClient, scope: ConsoleScope, hasProof: boolean): Promise<Allowances> {
  const answer = await client.ask<OwnAccess>({ method: 'GET', path: 'v2/access', ...scope })
  // A person who shows nothing is asked for a key beside what is refused.
  if (!answer.ok) return hasProof && answer.problem.status === 401 ? nothing : everything
  const { principal, allowed, narrowed } = answer.json
  if (!principal) return everything
  // An operator has `admin` for the whole broker, at this port.
  return new Set(actions.filter(one => allowed.includes(one) && (one !== 'admin' || !narrowed.includes(one))))
}
