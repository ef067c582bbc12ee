// Operations on registrations (subscriptions.md §12.2): one method each, in the words of NGSI.
//
// A registration belongs to its tenant; its service path says which requests it is for, and finds it in lists.

import type { Registration } from '../domain/providers/registration.js'
import { accepted, type Result, refusals, refused } from '../domain/refusal.js'
import type { ChangeRegistrationRequest, ListRegistrationsRequest } from '../messages/messages.js'
import type { DocumentIds } from './document-ids.js'
import type { OnResult } from './replies.js'
import type { RegistrationPage, ShardClient } from './shard-client.js'

export class RegistrationOperations {
  private readonly shards: ShardClient
  private readonly ids: DocumentIds

  constructor(shards: ShardClient, ids: DocumentIds) {
    this.shards = shards
    this.ids = ids
  }

  /** `POST /v2/registrations`: gives the id. */
  create(wanted: Omit<Registration, 'id'>, onResult: OnResult<string>): void {
    const id = this.ids.next()
    const registration = { ...wanted, id }
    this.shards.changeRegistration({ kind: 'createRegistration', registration }, result =>
      onResult(result.ok ? accepted(id) : result),
    )
  }

  /** `GET /v2/registrations`: a page in order of creation. */
  list(request: Omit<ListRegistrationsRequest, 'kind'>, onResult: OnResult<RegistrationPage>): void {
    this.shards.readRegistrations({ ...request, kind: 'listRegistrations' }, onResult)
  }

  /** `GET /v2/registrations/{id}`. */
  retrieve(tenant: string, id: string, onResult: OnResult<Registration>): void {
    this.shards.readRegistrations({ kind: 'findRegistration', tenant, id }, result =>
      onResult(result.ok ? onlyOne(result.value) : result),
    )
  }

  /** `PATCH /v2/registrations/{id}`. */
  change(request: Omit<ChangeRegistrationRequest, 'kind'>, onResult: OnResult<undefined>): void {
    this.shards.changeRegistration({ ...request, kind: 'changeRegistration' }, onResult)
  }

  /** `DELETE /v2/registrations/{id}`. */
  remove(tenant: string, id: string, onResult: OnResult<undefined>): void {
    this.shards.changeRegistration({ kind: 'removeRegistration', tenant, id }, onResult)
  }
}

const onlyOne = ({ registrations: [only] }: RegistrationPage): Result<Registration> =>
  only ? accepted(only) : refused(refusals.registrationNotFound)
