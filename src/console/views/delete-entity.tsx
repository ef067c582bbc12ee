// The question before an entity is deleted.

import { useState } from 'preact/hooks'
import type { ConsoleClient, RequestProblem } from '../interface/console-client.js'
import type { ConsoleRequest } from '../interface/console-request.js'
import { Question } from '../parts/dialog.js'
import { CurlNote, Problem } from '../parts/notes.js'

/** One entity, wherever it is. */
export interface EntityName {
  readonly tenant: string
  readonly path: string
  readonly id: string
  readonly type: string
}

export const entityPath = ({ id }: EntityName): string => `v2/entities/${encodeURIComponent(id)}`

export function DeleteEntity({
  client,
  name,
  onDeleted,
  onClose,
}: {
  readonly client: ConsoleClient
  readonly name: EntityName
  readonly onDeleted: () => void
  readonly onClose: () => void
}) {
  const [problem, setProblem] = useState<RequestProblem | undefined>(undefined)
  const { tenant, path: servicePath, id, type } = name
  const request: ConsoleRequest = { method: 'DELETE', path: entityPath(name), query: { type }, tenant, servicePath }
  const remove = async (): Promise<void> => {
    const answer = await client.ask(request)
    if (answer.ok) onDeleted()
    else setProblem(answer.problem)
  }
  return (
    <Question
      title="Delete this entity?"
      text={`${id} of type ${type}, in ${servicePath}. This cannot be undone.`}
      verb="Delete"
      onYes={remove}
      onNo={onClose}
    >
      <Problem problem={problem} />
      <CurlNote client={client} request={request} />
    </Question>
  )
}
