// The dialog that creates an entity.

import { useState } from 'preact/hooks'
import type { Json } from '../../domain/json.js'
import type { ConsoleClient } from '../interface/console-client.js'
import type { ConsoleRequest } from '../interface/console-request.js'
import { AttributeFields, attributeJson, noAttribute } from '../parts/attribute-fields.js'
import { FormDialog } from '../parts/form-dialog.js'

export function CreateEntity({
  client,
  tenant,
  servicePath,
  type: typeBefore,
  onClose,
}: {
  readonly client: ConsoleClient
  readonly tenant: string
  readonly servicePath: string
  readonly type: string
  readonly onClose: () => void
}) {
  const [id, setId] = useState('')
  const [type, setType] = useState(typeBefore)
  const [path, setPath] = useState(servicePath.replace(/\/?#$/, ''))
  const [attributes, setAttributes] = useState([noAttribute])
  const named = attributes.filter(({ name }) => name !== '')
  const body: Json = {
    ...Object.fromEntries(named.map(text => [text.name, attributeJson(text)])),
    id,
    ...(type !== '' && { type }),
  }
  const request: ConsoleRequest = { method: 'POST', path: 'v2/entities', body, tenant, servicePath: path }
  return (
    <FormDialog
      client={client}
      title="Create an entity"
      verb="Create"
      request={request}
      onDone={onClose}
      onClose={onClose}
    >
      <div class="fields">
        <label>
          Id
          <input required value={id} onInput={({ currentTarget }) => setId(currentTarget.value)} />
        </label>
        <label>
          Type
          <input value={type} onInput={({ currentTarget }) => setType(currentTarget.value)} />
        </label>
        <label>
          Service path
          <input value={path} placeholder="/" onInput={({ currentTarget }) => setPath(currentTarget.value)} />
        </label>
      </div>
      {attributes.map((text, at) => (
        <AttributeFields
          key={at}
          text={text}
          hasName={true}
          onChange={changed => setAttributes(attributes.map((one, index) => (index === at ? changed : one)))}
        />
      ))}
      <button type="button" onClick={() => setAttributes([...attributes, noAttribute])}>
        Another attribute
      </button>
    </FormDialog>
  )
}
