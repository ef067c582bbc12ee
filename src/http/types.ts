// Handlers of /v2/types and /v2/types/{type} (entities.md §18).

import type { TypeOperations } from '../broker/types.js'
import { checkIdentifier, hasIdentifierCharacters } from '../domain/identifier.js'
import { refusals } from '../domain/refusal.js'
import type { TypeSummary } from '../messages.js'
import { replyWithList } from './list-body.js'
import type { Reply } from './reply.js'
import { type Request, readScope } from './request.js'

export class TypeHandlers {
  private readonly types: TypeOperations

  constructor(types: TypeOperations) {
    this.types = types
  }

  list(request: Request, reply: Reply): void {
    const scope = readScope(request)
    if (!scope.ok) return reply.refuse(scope.refusal)
    const { options, offset, limit } = request.parameters
    this.types.list(scope.value, result => {
      if (!result.ok) return reply.refuse(result.refusal)
      const page = result.value.slice(offset, offset + limit)
      const detail = !options.has('noAttrDetail')
      const isBare = options.has('values')
      const render = (index: number): string => {
        const summary = page[index]!
        const type = JSON.stringify(summary.type)
        return isBare ? type : `{"type":${type},${membersOf(summary, detail)}}`
      }
      replyWithList(reply, { length: page.length, render }, options.has('count') ? result.value.length : undefined)
    })
  }

  retrieve(request: Request, reply: Reply): void {
    const type = request.components[2] as string
    if (type !== '' && !hasIdentifierCharacters(type)) return reply.refuse(refusals.charactersInPath)
    const refusal = checkIdentifier('entity type', type)
    if (refusal) return reply.refuse(refusal)
    const scope = readScope(request)
    if (!scope.ok) return reply.refuse(scope.refusal)
    const detail = !request.parameters.options.has('noAttrDetail')
    this.types.retrieve(scope.value, type, result => {
      if (result.ok) reply.json(`{${membersOf(result.value, detail)}}`)
      else reply.refuse(result.refusal)
    })
  }
}

/** `"attrs":{..},"count":n`: names and types ascending, each once; without detail the types are left out. */
function membersOf({ attributes, count }: TypeSummary, detail: boolean): string {
  const types = new Map<string, Set<string>>()
  for (const [name, type] of attributes) types.set(name, (types.get(name) ?? new Set()).add(type))
  const attrs = [...types]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, known]) => `${JSON.stringify(name)}:{"types":${JSON.stringify(detail ? [...known].sort() : [])}}`)
  return `"attrs":{${attrs.join(',')}},"count":${count}`
}
