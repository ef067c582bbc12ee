// Updates that providers may execute in part (docs/interface/registrations.md#updates-to-providers): attributes that
// are not stored here are sent to their provider.
//
// The local part is executed first, durably, in one turn that reports the missing attributes. So an update that finds
// everything here costs nothing extra. Only a replacement has to be split before, since it would add the missing
// attributes here. The local part stays, even if every provider fails. A local part that is refused for another reason
// than missing names decides alone.
//
// With access control, entities of types that the rules do not cover do not exist for a write without a type. A provider
// cannot know that, so such a write goes to it only if the rules cover every type of its id.

import { mayGoToProvider } from '../domain/access/writing.js'
import { defaultType, type WantedAttribute } from '../domain/entities/entity.js'
import { forwardedOutcome, type Undone, updateRequests } from '../domain/providers/forwarded-update.js'
import type { ProviderIndex } from '../domain/providers/provider-index.js'
import { done, type Refusal, refusals, refused } from '../domain/refusal.js'
import type { Scope } from '../domain/scope.js'
import { decodeEntity, encodedType } from '../encoded-entity.js'
import type {
  AttributeRequest,
  Attributes,
  AttributesRequest,
  EntityTarget,
  FoundEntity,
  ValueRequest,
} from '../messages/messages.js'
import type { Forwarding, Outward } from './forwarding.js'
import type { OnResult } from './replies.js'
import type { ShardClient } from './shard-client.js'

export type ForwardableRequest = AttributesRequest | AttributeRequest | ValueRequest

/** The place of a batch. `limits`: for its items without a type. */
export type BatchScope = Scope & Pick<EntityTarget, 'limits'>

export interface LocalPart {
  readonly isAnyDone: boolean
  /** The refusal of the request if the remaining attributes have no provider. */
  readonly refusal: Refusal
}

export class ForwardedUpdates {
  constructor(
    private readonly shards: ShardClient,
    private readonly forwarding: Forwarding,
  ) {}

  /** The registrations that an update may be forwarded to; undefined: none. */
  indexOf(tenant: string): ProviderIndex | undefined {
    return this.forwarding.of(tenant)
  }

  /** Writes, and forwards the attributes that are not stored here. */
  write(request: ForwardableRequest, outward: () => Outward, onResult: OnResult<undefined>): void {
    const { target } = request
    const index = mayGoToProvider(target.limits, target.path, target) ? this.forwarding.of(target.tenant) : undefined
    if (!index) return this.shards.write(request, onResult)
    if (request.kind === 'replace') return this.replace(index, request, outward, onResult)
    this.shards.write(request, result => {
      if (result.ok) return onResult(result)
      const { refusal } = result
      const missing = missingOf(refusal, wantedOf(request))
      if (!missing) return onResult(result)
      const { id, type } = target
      const undone = [{ id, type, attributes: missing }]
      this.finish(index, target, undone, { isAnyDone: isPartly(refusal), refusal }, outward, onResult)
    })
  }

  private replace(
    index: ProviderIndex,
    request: AttributesRequest,
    outward: () => Outward,
    onResult: OnResult<undefined>,
  ): void {
    this.split(index, request.target, request.attributes, ({ local, undone }) => {
      if (!undone) return this.shards.write(request, onResult)
      const finish = (isAnyDone: boolean): void => {
        const local = { isAnyDone, refusal: refusals.entityNotFound }
        this.finish(index, request.target, [undone], local, outward, onResult)
      }
      if (local.size === 0) return finish(false)
      this.shards.write({ ...request, attributes: local }, result => {
        if (result.ok) finish(true)
        else onResult(result)
      })
    })
  }

  /** Splits a replacement into a local part and the part of providers. Without `undone` everything is written here. */
  split(
    index: ProviderIndex,
    target: EntityTarget,
    attributes: Attributes,
    onSplit: (split: { readonly local: Attributes; readonly undone: Undone | undefined }) => void,
  ): void {
    const whole = { local: attributes, undone: undefined }
    if (!mayGoToProvider(target.limits, target.path, target) || !index.mayProvide(target.id)) return onSplit(whole)
    this.stored(target, result => {
      if (!result.ok || result.value.length > 1) return onSplit(whole)
      const entity = result.value[0] && decodeEntity(result.value[0].encoded)
      const absent = new Map([...attributes].filter(([name]) => !entity?.attributes.has(name)))
      const wanted = { id: target.id, type: target.type ?? entity?.type, attributes: absent }
      const provided = new Set(
        updateRequests(index, target.path, [wanted], this.forwarding.nowMs()).flatMap(
          ({ parts }) => parts.get(0) ?? [],
        ),
      )
      if (provided.size === 0) return onSplit(whole)
      // If the entity is not stored here, attributes without a provider are not updated either.
      const isUndone = (name: string): boolean => (entity ? provided.has(name) : true)
      const local = new Map([...attributes].filter(([name]) => !isUndone(name)))
      onSplit({ local, undone: { ...wanted, attributes: new Map([...absent].filter(([name]) => isUndone(name))) } })
    })
  }

  private stored({ tenant, path, id, type }: EntityTarget, onResult: OnResult<readonly FoundEntity[]>): void {
    this.shards.find({ kind: 'find', tenant, paths: [path], id, type }, onResult)
  }

  /**
   * Forwards the remaining attributes, and reports the result of the whole update
   * (docs/interface/registrations.md#updates-to-providers).
   */
  finish(
    index: ProviderIndex,
    scope: BatchScope,
    given: readonly Undone[],
    local: LocalPart,
    outward: () => Outward,
    onResult: OnResult<undefined>,
  ): void {
    const mayGo = (one: Undone): boolean => mayGoToProvider(scope.limits, scope.path, one)
    const kept = given.filter(one => !mayGo(one))
    this.typed(index, scope, kept.length === 0 ? given : given.filter(mayGo), undone => {
      const requests = updateRequests(index, scope.path, undone, this.forwarding.nowMs())
      if (requests.length === 0) return onResult(refused(local.refusal))
      this.forwarding.update(undone, requests, outward, (updated, refusedBy) => {
        const left = [...undone, ...kept].map(({ id, type, attributes }, at) => ({
          id,
          type,
          names: [...attributes.keys()].filter(name => !updated.get(at)?.has(name)),
        }))
        const refusal = forwardedOutcome(local.isAnyDone || updated.size > 0, left, refusedBy)
        onResult(refusal ? refused(refusal) : done)
      })
    })
  }

  /**
   * Looks up the stored type of entities whose request names no type: it finds their providers
   * (docs/interface/registrations.md#which-provider-is-asked).
   */
  private typed(
    index: ProviderIndex,
    { tenant, path }: Scope,
    undone: readonly Undone[],
    onTyped: (undone: readonly Undone[]) => void,
  ): void {
    const all = [...undone]
    let missing = 1
    const arrive = (): void => {
      if (--missing === 0) onTyped(all)
    }
    for (const [at, one] of undone.entries()) {
      const { id, type } = one
      if (type !== undefined || !index.mayProvide(id)) continue
      missing++
      this.stored({ tenant, path, id, type }, result => {
        const [only, another] = result.ok ? result.value : []
        if (only && !another) all[at] = { ...one, type: encodedType(only.encoded) }
        arrive()
      })
    }
    arrive()
  }
}

/**
 * The attributes, among those wanted, that a refusal reports as missing; undefined: it was refused for another reason.
 */
export function missingOf(refusal: Refusal, wanted: Attributes): Attributes | undefined {
  switch (refusal.code) {
    case 'entityNotFound':
    case 'attributeNotFound':
      return wanted
    case 'attributesMissing':
      return new Map([...wanted].filter(([name]) => refusal.missing.includes(name)))
    default:
      return undefined
  }
}

/** Whether a refusal reports that a part was executed. */
export const isPartly = ({ kind }: Refusal): boolean => kind === 'PartialUpdate'

function wantedOf(request: ForwardableRequest): Attributes {
  switch (request.kind) {
    case 'updateAttribute':
      return new Map([[request.name, request.attribute]])
    case 'updateValue': {
      const { name, value } = request
      const attribute: WantedAttribute = { type: defaultType(value), value, metadata: undefined }
      return new Map([[name, attribute]])
    }
    default:
      return request.attributes
  }
}
