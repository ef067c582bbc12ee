// The dialog that changes one attribute: only this attribute is sent, and its metadata only if they were changed.

import { useState } from 'preact/hooks'
import type { Json, JsonObject } from '../../domain/json.js'
import type { ConsoleClient } from '../interface/console-client.js'
import type { ConsoleRequest } from '../interface/console-request.js'
import { AttributeFields, attributeJson, textOfValue } from '../parts/attribute-fields.js'
import { FormDialog } from '../parts/form-dialog.js'
import { type EntityName, entityPath } from './delete-entity.js'

interface ShownMetadata {
  readonly type: string
  readonly value: Json
}

/** An attribute as the interface shows it. */
export interface AttributeShape {
  readonly type: string
  readonly value: Json
  readonly metadata: Readonly<Record<string, ShownMetadata>>
}

export interface ShownAttribute extends AttributeShape {
  readonly name: string
}

export function EditAttribute({
  client,
  entity,
  before,
  onDone,
  onClose,
}: {
  readonly client: ConsoleClient
  readonly entity: EntityName
  readonly before: ShownAttribute
  readonly onDone: () => void
  readonly onClose: () => void
}) {
  const { dateCreated: _created, dateModified: _modified, ...metadataBefore } = before.metadata
  const metadataText = JSON.stringify(metadataBefore)
  const [text, setText] = useState({ name: before.name, type: before.type, value: textOfValue(before.value) })
  const [metadata, setMetadata] = useState(metadataText)
  const { tenant, path: servicePath, type } = entity
  const changesMetadata = metadata !== metadataText
  const parsed = changesMetadata ? objectOf(metadata) : undefined
  const fault = changesMetadata && parsed === undefined ? 'Metadata must be a JSON object.' : undefined
  const request: ConsoleRequest = {
    method: 'PATCH',
    path: `${entityPath(entity)}/attrs`,
    query: { type, options: changesMetadata ? 'overrideMetadata' : '' },
    body: { [before.name]: { ...attributeJson(text), ...(parsed && { metadata: parsed }) } },
    tenant,
    servicePath,
  }
  return (
    <FormDialog
      client={client}
      title={`Edit ${before.name}`}
      verb="Save"
      request={request}
      fault={fault}
      onDone={onDone}
      onClose={onClose}
    >
      <AttributeFields text={text} hasName={false} onChange={setText} />
      <div class="fields">
        <label class="wide">
          Metadata (JSON)
          <textarea
            rows={2}
            value={metadata}
            aria-invalid={fault !== undefined}
            onInput={({ currentTarget }) => setMetadata(currentTarget.value)}
          />
        </label>
      </div>
    </FormDialog>
  )
}

function objectOf(text: string): JsonObject | undefined {
  try {
    const json = JSON.parse(text) as Json
    return typeof json === 'object' && json !== null && !Array.isArray(json) ? (json as JsonObject) : undefined
  } catch {
    return undefined
  }
}
