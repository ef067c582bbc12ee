// The list of registrations: what is provided by whom, and how forwarding to it went; creates and deletes them.

import { useState } from 'preact/hooks'
import type { RequestProblem } from '../interface/console-client.js'
import type { ConsoleRequest } from '../interface/console-request.js'
import { Question } from '../parts/dialog.js'
import { CountNote, CurlNote, Moment, Problem } from '../parts/notes.js'
import { offsetIn, PageButtons } from '../parts/page-buttons.js'
import { number } from '../parts/value-text.js'
import { useAllowances } from '../state/allowances.js'
import type { ConsoleParts } from '../state/console-parts.js'
import { type RegistrationShape, subjectText } from '../state/document-shapes.js'
import { useValue } from '../state/observable.js'
import { useReading } from '../state/reading.js'
import { scopeOf } from '../state/scope.js'
import { CreateRegistration } from './create-registration.js'

const pageRegistrations = 100

export function RegistrationsView({ client, bar }: ConsoleParts) {
  const address = useValue(bar.address)
  const scope = scopeOf(address)
  const offset = offsetIn(address)
  const query = { limit: String(pageRegistrations), offset: offset === 0 ? '' : String(offset), options: 'count' }
  const request: ConsoleRequest = { method: 'GET', path: 'v2/registrations', query, ...scope }
  const { json, total, problem, again } = useReading<readonly RegistrationShape[]>(client, request)
  const registrations = json ?? []
  const mayRegister = useAllowances(client, scope).has('register')
  const [creates, setCreates] = useState(false)
  const [deleted, setDeleted] = useState<RegistrationShape | undefined>(undefined)
  const [failed, setFailed] = useState<RequestProblem | undefined>(undefined)
  const remove = async ({ id }: RegistrationShape): Promise<void> => {
    const path = `v2/registrations/${encodeURIComponent(id)}`
    const answer = await client.ask({ method: 'DELETE', path, tenant: scope.tenant })
    setFailed(answer.ok ? undefined : answer.problem)
    // One that somebody else has deleted is to leave the list as well.
    again()
  }
  return (
    <section aria-labelledby="view-title">
      <h1 id="view-title">Registrations</h1>
      <Problem problem={problem} />
      <Problem problem={failed} />
      <div class="buttons">
        <CountNote shown={registrations.length} total={total} what="registrations" />
        <button type="button" onClick={again}>
          Read again
        </button>
        {mayRegister && (
          <button type="button" onClick={() => setCreates(true)}>
            Create…
          </button>
        )}
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-label="Table of registrations">
        <table>
          <thead>
            <tr>
              <th scope="col">Registration</th>
              <th scope="col">Provides</th>
              <th scope="col">Provider</th>
              <th scope="col">Sent</th>
              <th scope="col">Failed</th>
              <th scope="col">Last success</th>
              <th scope="col">Last failure</th>
              {mayRegister && <th scope="col">Actions</th>}
            </tr>
          </thead>
          <tbody>
            {registrations.map(one => (
              <RegistrationRow
                key={one.id}
                registration={one}
                onDelete={mayRegister ? () => setDeleted(one) : undefined}
              />
            ))}
          </tbody>
        </table>
      </div>
      <PageButtons bar={bar} offset={offset} limit={pageRegistrations} total={total} />
      <p class="quiet">Numbers and times are those since the start of the broker.</p>
      <CurlNote client={client} request={request} />
      {creates && (
        <CreateRegistration
          client={client}
          scope={scope}
          onDone={() => {
            setCreates(false)
            again()
          }}
          onClose={() => setCreates(false)}
        />
      )}
      {deleted && (
        <Question
          title="Delete this registration?"
          text={`${nameOf(deleted)}, provided by ${urlOf(deleted)}. This cannot be undone.`}
          verb="Delete"
          onYes={() => {
            setDeleted(undefined)
            void remove(deleted)
          }}
          onNo={() => setDeleted(undefined)}
        />
      )}
    </section>
  )
}

const nameOf = ({ id, description }: RegistrationShape): string => description ?? id

const urlOf = ({ provider }: RegistrationShape): string => provider.http?.url ?? ''

/** What the provider is asked for, where that is not everything. */
const modes: Readonly<Record<string, string>> = {
  query: 'queries alone',
  update: 'updates alone',
  none: 'never asked',
}

function RegistrationRow({
  registration,
  onDelete,
}: {
  readonly registration: RegistrationShape
  /** undefined: the rules do not allow it. */
  readonly onDelete: (() => void) | undefined
}) {
  const { expires, dataProvided, provider, forwardingInformation: outcome } = registration
  const { entities = [], attrs = [] } = dataProvided
  const mode = modes[provider.supportedForwardingMode ?? 'all']
  const isOver = expires !== undefined && new Date(expires).getTime() <= Date.now()
  return (
    <tr>
      <th scope="row" class="wrap">
        {nameOf(registration)}
        {expires !== undefined && (
          <div class="quiet">
            {isOver ? 'expired ' : 'until '}
            <Moment time={expires} />
          </div>
        )}
      </th>
      <td class="wrap">
        {entities.length === 0 ? 'nothing' : entities.map(subjectText).join(', ')}
        <div class="quiet">{attrs.length === 0 ? 'every attribute' : attrs.join(', ')}</div>
      </td>
      <td class="wrap">
        {urlOf(registration)}
        {mode !== undefined && <div class="quiet">{mode}</div>}
      </td>
      <td>{number(outcome?.timesSent ?? 0)}</td>
      <td>{number(outcome?.timesFailed ?? 0)}</td>
      <td>
        <Moment time={outcome?.lastSuccess} />
      </td>
      <td class="wrap">
        <Moment time={outcome?.lastFailure} /> {outcome?.lastFailureReason}
      </td>
      {onDelete && (
        <td>
          <button type="button" aria-label={`Delete ${nameOf(registration)}…`} onClick={onDelete}>
            Delete…
          </button>
        </td>
      )}
    </tr>
  )
}
