// Operations on a single attribute (entities.md §12): one method each, in the words of NGSI. Reading one is reading its entity.

import type { WantedAttribute } from '../domain/entity.js'
import type { Json } from '../domain/json.js'
import type { UpdateOptions } from '../domain/update.js'
import type { Origin, Target } from '../messages.js'
import type { OnResult } from './replies.js'
import type { ShardClient } from './shard-client.js'

export class AttributeOperations {
  private readonly shards: ShardClient

  constructor(shards: ShardClient) {
    this.shards = shards
  }

  /** `PUT .../attrs/{name}`. */
  update(
    target: Target,
    name: string,
    attribute: WantedAttribute,
    options: UpdateOptions,
    origin: Origin,
    onResult: OnResult<undefined>,
  ): void {
    this.shards.write({ kind: 'updateAttribute', target, name, attribute, options, origin }, onResult)
  }

  /** `PUT .../attrs/{name}/value`. */
  updateValue(
    target: Target,
    name: string,
    value: Json,
    forcedUpdate: boolean,
    origin: Origin,
    onResult: OnResult<undefined>,
  ): void {
    this.shards.write({ kind: 'updateValue', target, name, value, forcedUpdate, origin }, onResult)
  }

  /** `DELETE .../attrs/{name}`. */
  remove(target: Target, name: string, origin: Origin, onResult: OnResult<undefined>): void {
    this.shards.write({ kind: 'deleteAttribute', target, name, origin }, onResult)
  }
}
