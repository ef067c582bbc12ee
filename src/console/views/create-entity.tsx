// The dialog that creates an entity. What was typed stays until the broker has taken it.

import { useState } from 'preact/hooks'
import type { Json } from '../../domain/json.js'
import type { ConsoleClient, RequestProblem } from '../interface/console-client.js'
import type { ConsoleRequest } from '../interface/console-request.js'
import { AttributeFields, attributeJson, noAttribute } from '../parts/attribute-fields.js'
import { Dialog } from '../parts/dialog.js'
import { CurlNote, Problem } from '../parts/notes.js'

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
  const [problem, setProblem] = useState<RequestProblem | undefined>(undefined)
  const named = attributes.filter(({ name }) => name !== '')
  const body: Json = {
    ...Object.fromEntries(named.map(text => [text.name, attributeJson(text)])),
    id,
    ...(type !== '' && { type }),
  }
  const request: ConsoleRequest = { method: 'POST', path: 'v2/entities', body, tenant, servicePath: path }
  const create = async (event: Event): Promise<void> => {
    event.preventDefault()
    const answer = await client.ask(request)
    if (answer.ok) onClose()
    else setProblem(answer.problem)
  }
  return (
    <Dialog title="Create an entity" onClose={onClose}>
      <form onSubmit={create}>
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
        <Problem problem={problem} />
        <div class="buttons">
          <button type="submit" class="main">
            Create
          </button>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
        </div>
      </form>
      <CurlNote client={client} request={request} />
    </Dialog>
  )
}
