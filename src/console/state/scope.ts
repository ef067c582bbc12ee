// The tenant and the service path of the present view.

import type { ViewAddress } from './address.js'

export interface ConsoleScope {
  readonly tenant: string
  readonly servicePath: string
}

export const scopeOf = ({ parameters: { tenant = '', path = '' } }: ViewAddress): ConsoleScope => ({
  tenant,
  servicePath: path,
})
