// Handlers of /v2/types and /v2/types/{type} (docs/interface/types.md). A type may have more attributes than can be
// rendered in one turn of the event loop.

import type { TypeOperations } from '../broker/entities.js'
import { checkIdentifier, hasIdentifierCharacters } from '../domain/entities/entity.js'
import { Pace, sorted, type Ticks } from '../domain/pace.js'
import { refusals } from '../domain/refusal.js'
import type { TypeSummary } from '../messages/messages.js'
import { readScope } from './entity-rights.js'
import { type ListItems, replyWithList } from './list-body.js'
import type { Reply } from './reply.js'
import type { Request } from './request.js'

export class TypeHandlers {
  constructor(
    private readonly types: TypeOperations,
    private readonly ticks: Ticks,
  ) {}

  list(request: Request, reply: Reply): void {
    const scope = readScope(request)
    if (!scope.ok) return reply.refuse(scope.refusal)
    const { options, offset, limit } = request.parameters
    this.types.list(scope.value, result => {
      if (!result.ok) return reply.refuse(result.refusal)
      const page = result.value.slice(offset, offset + limit)
      const detail = !options.has('noAttrDetail')
      const total = options.has('count') ? result.value.length : undefined
      if (options.has('values'))
        return replyWithList(reply, listOf(page.map(({ type }) => JSON.stringify(type))), total)
      typesJson(page, detail, new Pace(this.ticks)).then(
        types => replyWithList(reply, listOf(types), total),
        (error: Error) => reply.refuse(refusals.failure(error.message)),
      )
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
      if (!result.ok) return reply.refuse(result.refusal)
      membersOf(result.value, detail, new Pace(this.ticks)).then(
        members => reply.json(`{${members}}`),
        (error: Error) => reply.refuse(refusals.failure(error.message)),
      )
    })
  }
}

const listOf = (texts: readonly string[]): ListItems => ({ length: texts.length, render: index => texts[index]! })

async function typesJson(page: readonly TypeSummary[], detail: boolean, pace: Pace): Promise<string[]> {
  const types: string[] = []
  for (const summary of page)
    types.push(`{"type":${JSON.stringify(summary.type)},${await membersOf(summary, detail, pace)}}`)
  return types
}

/** Attributes between two checks of the time. */
const attributesPerLook = 256

/** `"attrs":{..},"count":n`: names and types ascending, each once. Without detail the types are left out. */
async function membersOf({ attributes, count }: TypeSummary, detail: boolean, pace: Pace): Promise<string> {
  const types = new Map<string, Set<string>>()
  let looks = 0
  const isOver = (): boolean => ++looks % attributesPerLook === 0 && pace.isOver
  for (const [name, type] of attributes) {
    const known = types.get(name)
    if (known) known.add(type)
    else types.set(name, new Set([type]))
    if (isOver()) await pace.breathe()
  }
  const attrs: string[] = []
  for (const name of await sorted([...types.keys()], (a, b) => (a < b ? -1 : 1), pace)) {
    const shown = detail ? [...types.get(name)!].sort() : []
    attrs.push(`${JSON.stringify(name)}:{"types":${JSON.stringify(shown)}}`)
    if (isOver()) await pace.breathe()
  }
  return `"attrs":{${attrs.join(',')}},"count":${count}`
}
