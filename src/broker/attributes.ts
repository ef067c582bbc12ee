// Operations on a single attribute (entities.md §12): one method each, in the words of NGSI. Reading one is reading its entity.

import type { WantedAttribute } from '../domain/entities/entity.js'
import type { UpdateOptions } from '../domain/entities/update.js'
import type { Json } from '../domain/json.js'
import type { AttributeRequest, Origin, Target, ValueRequest } from '../messages/messages.js'
import type { ForwardedUpdates } from './forwarded-updates.js'
import type { Outward } from './forwarding.js'
import type { OnResult } from './replies.js'
import type { ShardClient } from './shard-client.js'

export class AttributeOperations {
  private readonly shards: ShardClient
  private readonly updates: ForwardedUpdates | undefined

  /** `updates`: with what providers have; undefined: nothing is forwarded. */
  constructor(shards: ShardClient, updates?: ForwardedUpdates) {
    this.shards = shards
    this.updates = updates
  }

  /** `PUT .../attrs/{name}`. Without `outward` nothing is forwarded. */
  update(
    target: Target,
    name: string,
    attribute: WantedAttribute,
    options: UpdateOptions,
    origin: Origin,
    onResult: OnResult<undefined>,
    outward?: () => Outward,
  ): void {
    this.write({ kind: 'updateAttribute', target, name, attribute, options, origin }, onResult, outward)
  }

  /** `PUT .../attrs/{name}/value`. Without `outward` nothing is forwarded. */
  updateValue(
    target: Target,
    name: string,
    value: Json,
    forcedUpdate: boolean,
    origin: Origin,
    onResult: OnResult<undefined>,
    outward?: () => Outward,
  ): void {
    this.write({ kind: 'updateValue', target, name, value, forcedUpdate, origin }, onResult, outward)
  }

  private write(
    request: AttributeRequest | ValueRequest,
    onResult: OnResult<undefined>,
    outward: (() => Outward) | undefined,
  ): void {
    if (this.updates && outward) this.updates.write(request, outward, onResult)
    else this.shards.write(request, onResult)
  }

  /** `DELETE .../attrs/{name}`. */
  remove(target: Target, name: string, origin: Origin, onResult: OnResult<undefined>): void {
    this.shards.write({ kind: 'deleteAttribute', target, name, origin }, onResult)
  }
}
