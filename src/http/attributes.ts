// Handlers of /v2/entities/{id}/attrs/{name} and its /value (docs/interface/updates.md#single-attributes).
//
// A value is answered as JSON or as plain text: a scalar as text, an object or an array as JSON, unless the client
// prefers text.

import type { Entities } from '../broker/entities.js'
import {
  type Attribute,
  checkIdentifier,
  hasIdentifierCharacters,
  isDateType,
  parseSingleAttribute,
  parseTextValue,
  parseValue,
} from '../domain/entities/entity.js'
import { renderAttribute, renderedValue } from '../domain/entities/representation.js'
import { type Json, renderJson } from '../domain/json.js'
import { accepted, type Result, refusals, refused } from '../domain/refusal.js'
import { noteOldLocations } from './call.js'
import { pathId, updateOptions, writeTarget } from './entities.js'
import { readScope } from './entity-rights.js'
import { entityOf } from './list-body.js'
import type { Reply } from './reply.js'
import type { Accept, Request } from './request.js'
import { elsewhereOf, jsonPayload, originOf, outwardOf, parsedJson } from './request.js'
import { listParameter } from './url.js'

export class AttributeHandlers {
  constructor(private readonly entities: Entities) {}

  retrieve(request: Request, reply: Reply): void {
    this.read(request, reply, (attribute, name) => {
      const metadata = listParameter(request.parameters, 'metadata')
      if (!request.parameters.options.has('keyValues')) return reply.json(renderAttribute(attribute, metadata))
      reply.json(`{${JSON.stringify(name)}:${renderJson(renderedValue(attribute))}}`)
    })
  }

  retrieveValue(request: Request, reply: Reply): void {
    this.read(request, reply, attribute => replyValue(attribute, request.accept, reply))
  }

  update(request: Request, reply: Reply, body: Uint8Array): void {
    const name = request.components[4] as string
    const refusal = checkIdentifier('attribute name', name)
    if (refusal) return reply.refuse(refusal)
    const id = pathId(request)
    if (!id.ok) return reply.refuse(id.refusal)
    const payload = jsonPayload(request, body)
    if (!payload.ok) return reply.refuse(payload.refusal)
    const attribute = parseSingleAttribute(name, payload.value)
    if (!attribute.ok) return reply.refuse(attribute.refusal)
    const target = writeTarget(request, id.value, 'update', [name])
    if (!target.ok) return reply.refuse(target.refusal)
    const options = updateOptions(request)
    noteOldLocations([[name, attribute.value]], reply.call)
    const origin = originOf(request, reply)
    const onResult = (result: Result<undefined>): void => reply.conclude(result)
    this.entities.updateAttribute(
      target.value,
      name,
      attribute.value,
      options,
      origin,
      onResult,
      outwardOf(request, reply),
    )
  }

  updateValue(request: Request, reply: Reply, body: Uint8Array): void {
    const place = pathPlace(request)
    if (!place.ok) return reply.refuse(place.refusal)
    const value = request.contentType === 'text/plain' ? textValue(body) : jsonValue(request, body)
    if (!value.ok) return reply.refuse(value.refusal)
    const { id, name } = place.value
    const target = writeTarget(request, id, 'update', [name])
    if (!target.ok) return reply.refuse(target.refusal)
    const forced = request.parameters.options.has('forcedUpdate')
    const origin = originOf(request, reply)
    const onResult = (result: Result<undefined>): void => reply.conclude(result)
    this.entities.updateValue(target.value, name, value.value, forced, origin, onResult, outwardOf(request, reply))
  }

  remove(request: Request, reply: Reply): void {
    const place = pathPlace(request)
    if (!place.ok) return reply.refuse(place.refusal)
    const { id, name } = place.value
    const target = writeTarget(request, id, 'deleteAttributes', [name])
    if (!target.ok) return reply.refuse(target.refusal)
    this.entities.removeAttribute(target.value, name, originOf(request, reply), result => reply.conclude(result))
  }

  /** Reads the one attribute that the path names, here or at a provider. */
  private read(request: Request, reply: Reply, onAttribute: (attribute: Attribute, name: string) => void): void {
    const place = pathPlace(request)
    if (!place.ok) return reply.refuse(place.refusal)
    const scope = readScope(request)
    if (!scope.ok) return reply.refuse(scope.refusal)
    const { id, name } = place.value
    const target = { ...scope.value, id, type: request.parameters.values.get('type') }
    this.entities.retrieveEverywhere(target, elsewhereOf(request, reply, [name]), result => {
      if (!result.ok) return reply.refuse(result.refusal)
      const attribute = entityOf(result.value).attributes.get(name)
      if (attribute) onAttribute(attribute, name)
      else reply.refuse(refusals.attributeNotFound)
    })
  }
}

/** The id and attribute name of the path (docs/interface/requests.md#paths). */
function pathPlace(request: Request): Result<{ readonly id: string; readonly name: string }> {
  const id = pathId(request)
  if (!id.ok) return id
  const name = request.components[4] as string
  if (name !== '' && !hasIdentifierCharacters(name)) return refused(refusals.charactersInPath)
  const refusal = checkIdentifier('attribute name', name)
  return refusal ? refused(refusal) : accepted({ id: id.value, name })
}

function jsonValue(request: Request, body: Uint8Array): Result<Json> {
  const payload = parsedJson(request, body)
  return payload.ok ? parseValue(payload.value) : payload
}

const strictUtf8 = new TextDecoder('utf-8', { fatal: true })

function textValue(body: Uint8Array): Result<Json> {
  let text: string
  try {
    text = strictUtf8.decode(body)
  } catch {
    return refused(refusals.textUnknown)
  }
  return parseTextValue(text)
}

/** Replies with the value alone, in the form that the client accepts (docs/interface/updates.md#plain-values). */
function replyValue(attribute: Attribute, accept: Accept, reply: Reply): void {
  const value = renderedValue(attribute)
  if (typeof value === 'object' && value !== null) {
    return accept.prefersText || !accept.json ? reply.text(renderJson(value)) : reply.json(renderJson(value))
  }
  if (!accept.text) return reply.refuse(refusals.acceptTextForScalar)
  reply.text(typeof value === 'string' && isDateType(attribute.type) ? value : renderJson(value))
}
