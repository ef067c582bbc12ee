// The lists of a running broker, page by page: entities, registrations and subscriptions.
//
// A page that is larger than the client accepts, or the broker sends, is requested again in smaller pages, and so are
// all later ones.
//
// A list of documents does not show their service paths, but it can be requested for one path. So paths are found by a
// request for each path seen so far, with and without all paths below it. The remaining documents watch everything.

import { isArray, isObject, type Json } from '../domain/json.js'
import { registrationsMax, subscriptionsMax } from '../domain/limits.js'
import { parseJson } from '../http/body.js'
import { AnswerTooLarge, type BrokerClient, type BrokerRequest } from './broker-client.js'
import { MoveError } from './moved.js'

export const listNames = ['entities', 'registrations', 'subscriptions'] as const
export type ListName = (typeof listNames)[number]
export type DocumentListName = Exclude<ListName, 'entities'>

/** Without a path all documents are listed. */
export interface ListedScope {
  readonly tenant: string
  readonly path: string | undefined
}

/** The maximal limit of a page in the interface. */
export const pageLimitMax = 1000

/** Paths of a tenant that are requested one by one. Documents of other paths count as those of all paths. */
export const pathsMax = 1000

/**
 * Documents of a list that is read as a whole. It also ends the reading of a broker that returns the same page again
 * and again.
 */
const documentsMax = Math.max(subscriptionsMax, registrationsMax)

export class BrokerLists {
  private limit = pageLimitMax

  constructor(private readonly client: BrokerClient) {}

  /** A page of a list; a smaller one when it would be too large; empty behind the end. */
  async page(list: ListName, scope: ListedScope, offset: number, parameters = ''): Promise<readonly Json[]> {
    for (;;) {
      const what = `${list} from ${offset + 1} on of ${nameOf(scope)}`
      const path = `/${list}?limit=${this.limit}&offset=${offset}${parameters}`
      try {
        const payload = parseJson((await this.client.expect(getOf(path, scope, what), 200)).body)
        if (payload.ok && isArray(payload.value.value)) return payload.value.value
        throw new MoveError(`${this.client.name}, ${what}: the answer is no list`)
      } catch (error) {
        if (!(error instanceof AnswerTooLarge)) throw error
        if (this.limit === 1) throw new MoveError(`${this.client.name}, ${what}: the answer is too large`)
        this.limit = Math.ceil(this.limit / 2)
      }
    }
  }

  /** All pages of a list of documents. */
  async *pages(list: DocumentListName, scope: ListedScope): AsyncIterable<readonly Json[]> {
    for (let offset = 0; ; ) {
      const page = await this.page(list, scope, offset)
      if (page.length > 0) yield page
      if (page.length < this.limit) return
      offset += page.length
      if (offset > documentsMax)
        throw new MoveError(`${this.client.name} has more than ${documentsMax} ${list} of ${nameOf(scope)}`)
    }
  }

  /** The ids of the documents of exactly one path. */
  async idsAt(list: DocumentListName, scope: ListedScope): Promise<Set<string>> {
    const ids = new Set<string>()
    for await (const page of this.pages(list, scope))
      for (const json of page) if (isObject(json)) ids.add(String(json.id))
    return ids
  }
}

export const getOf = (path: string, scope: ListedScope, what: string): BrokerRequest => ({
  method: 'GET',
  path,
  tenant: scope.tenant,
  servicePath: scope.path,
  isRepeatable: true,
  what,
})

/** A scope, for sentences. */
export const nameOf = ({ tenant, path = '/#' }: ListedScope): string =>
  `tenant "${tenant}"${path === '/#' ? '' : `, path ${path}`}`

/** Paths that a document may have: those seen so far and those above them. A document at none of them has `/#`. */
export function candidatePaths(list: DocumentListName, seen: Iterable<string>): string[] {
  const paths = new Set<string>(['/'])
  let count = 0
  for (const path of seen) {
    if (++count > pathsMax) break
    for (let end = path.length; end > 0; end = path.lastIndexOf('/', end - 1)) paths.add(path.slice(0, end))
  }
  const bare = [...paths]
  return list === 'registrations' ? bare : [...bare, ...bare.filter(path => path !== '/').map(path => `${path}/#`)]
}
