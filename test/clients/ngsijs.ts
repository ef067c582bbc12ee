// The part of ngsijs that is used here: all of its NGSIv2 interface.

import { load } from './workspace.js'

export type Entity = Readonly<Record<string, unknown>>
type Options = Readonly<Record<string, unknown>>
type Done = Promise<{ readonly correlator: string }>

export interface List {
  readonly results: readonly Entity[]
  readonly count?: number
  readonly limit: number
  readonly offset: number
  readonly correlator: string
}

export interface V2 {
  createEntity(entity: Entity, options?: Options): Promise<{ location: string; correlator: string }>
  getEntity(wanted: string | Options): Promise<{ entity: Entity; correlator: string }>
  getEntityAttributes(wanted: string | Options): Promise<{ attributes: Entity }>
  getEntityAttribute(wanted: Options): Promise<{ attribute: Entity }>
  getEntityAttributeValue(wanted: Options): Promise<{ value: unknown }>
  appendEntityAttributes(changes: Entity, options?: Options): Done
  updateEntityAttributes(changes: Entity, options?: Options): Done
  replaceEntityAttributes(entity: Entity, options?: Options): Done
  replaceEntityAttribute(changes: Entity, options?: Options): Done
  replaceEntityAttributeValue(changes: Options): Done
  deleteEntity(wanted: string | Options): Done
  deleteEntityAttribute(wanted: Options): Done
  listEntities(options?: Options): Promise<List>
  batchQuery(query?: Entity, options?: Options): Promise<List>
  batchUpdate(changes: Entity, options?: Options): Done
  listTypes(options?: Options): Promise<List>
  getType(type: string | Options): Promise<{ type: Entity }>
  createSubscription(
    subscription: Entity,
    options?: Options,
  ): Promise<{ subscription: { id: string }; location: string }>
  getSubscription(wanted: string | Options): Promise<{ subscription: Entity }>
  listSubscriptions(options?: Options): Promise<List>
  updateSubscription(changes: Entity, options?: Options): Done
  deleteSubscription(wanted: string | Options): Done
  createRegistration(
    registration: Entity,
    options?: Options,
  ): Promise<{ registration: { id: string }; location: string }>
  getRegistration(wanted: string | Options): Promise<{ registration: Entity }>
  listRegistrations(options?: Options): Promise<List>
  updateRegistration(changes: Entity, options?: Options): Done
  deleteRegistration(wanted: string | Options): Done
}

export interface Connection {
  readonly v2: V2
  getServerDetails(options?: Options): Promise<{ details: Entity; correlator: string | null }>
}

interface Library {
  readonly Connection: {
    new (url: string, options?: Options): Connection
    readonly V2: { readonly prototype: object }
  }
}

/** A connection; with `service`, every request over it carries that tenant, and each of them has the `headers`. */
export function open(baseUrl: string, service?: string, headers: Readonly<Record<string, string>> = {}): Connection {
  const { Connection } = load('ngsijs') as Library
  return new Connection(baseUrl, { headers: { ...headers }, ...(service !== undefined && { service }) })
}

/** The NGSIv2 interface of a connection. */
export const connect = (baseUrl: string, service?: string): V2 => open(baseUrl, service).v2

/** The names of all methods of the NGSIv2 interface, as the library has them. */
export function methods(): readonly string[] {
  const { Connection } = load('ngsijs') as Library
  return Object.keys(Connection.V2.prototype)
}

/** The ids of a list, in its order. */
export const idsOf = (results: readonly Entity[]): string => results.map(({ id }) => id).join(' ')
