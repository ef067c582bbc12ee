// A dialog with a form that becomes one request. The text in its fields stays until the broker has accepted the request, also when the
// key or token of the person has ended meanwhile: another one is asked for over the dialog.

import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { ConsoleClient, RequestProblem } from '../interface/console-client.js'
import type { ConsoleRequest } from '../interface/console-request.js'
import { Dialog } from './dialog.js'
import { CurlNote, Problem } from './notes.js'

export function FormDialog({
  client,
  title,
  verb,
  request,
  fault,
  onDone,
  onClose,
  children,
}: {
  readonly client: ConsoleClient
  readonly title: string
  /** The text of the button that sends the request. */
  readonly verb: string
  readonly request: ConsoleRequest
  /** Why the fields make no request yet, as a sentence; undefined: they do. */
  readonly fault?: string | undefined
  readonly onDone: () => void
  readonly onClose: () => void
  readonly children: ComponentChildren
}) {
  const [problem, setProblem] = useState<RequestProblem | undefined>(undefined)
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault()
    if (fault !== undefined) return
    const answer = await client.ask(request)
    if (answer.ok) return onDone()
    setProblem(answer.problem)
    if (answer.problem.status === 401) client.askForProof()
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={submit}>
        {children}
        {fault !== undefined && (
          <p class="field-problem" role="alert">
            {fault}
          </p>
        )}
        <Problem problem={problem} />
        <div class="buttons">
          <button type="submit" class="main" disabled={fault !== undefined}>
            {verb}
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
