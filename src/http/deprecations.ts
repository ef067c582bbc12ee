// What a request uses that is deprecated: told to whoever counts, as it goes by (operations.md §6.6).
//
// [hot] `noteOldLocations` looks at one character of each attribute's type.

import type { WantedAttribute } from '../domain/entities/entity.js'
import type { Registration } from '../domain/providers/registration.js'
import type { Subscription } from '../domain/subscriptions/subscription.js'
import type { Call } from './call.js'

const letterG = 0x67
const oldLocation = /^geo:(point|line|box|polygon)$/

/** Notes locations in the forms before GeoJSON. */
export function noteOldLocations(
  attributes: Iterable<readonly [name: string, attribute: WantedAttribute]>,
  call: Call | undefined,
): void {
  if (!call) return
  for (const [name, { type }] of attributes)
    if (type.charCodeAt(0) === letterG && oldLocation.test(type))
      call.deprecated(
        'geoFormat',
        `${type} detected in attribute ${name} at entity update, please use geo:json instead`,
      )
}

/** Notes a subscription whose notifications are in the form of the interface's first version; `when` says what is done with it. */
export function noteLegacyFormat(
  { notification }: Pick<Subscription, 'notification'>,
  when: 'creation' | 'retrieval',
  id: string,
  call: Call | undefined,
): void {
  if (notification.attrsFormat === 'legacy')
    call?.deprecated('ngsiv1NotifFormat', `notification legacy format at subscription ${when} (subId: ${id})`)
}

/** Notes a registration whose provider speaks the interface's first version; `when` says what is done with it. */
export function noteLegacyForwarding(
  { provider }: Pick<Registration, 'provider'>,
  when: 'creation' | 'retrieval',
  id: string,
  call: Call | undefined,
): void {
  if (provider.legacyForwarding)
    call?.deprecated('ngsiv1Forwarding', `NGSIv1 forwarding at registration ${when} (regId: ${id})`)
}
