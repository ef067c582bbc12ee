// The URL at which operators' commands find the broker of this machine, unless they are given one.
//
// In a container, or in a shell with the variables of the broker, these name its port for operators (`-adminPort`).

import { options } from './options.js'
import { variableOf } from './variables.js'

export function ownBrokerUrl(env: Readonly<Record<string, string | undefined>>): string {
  const given = (name: 'adminPort' | 'adminLocalIp'): string | undefined => env[variableOf(name, env) ?? '']
  const port = given('adminPort')
  if (port === undefined) return `http://localhost:${options.port.byDefault}`
  const address = given('adminLocalIp') ?? 'localhost'
  return `http://${address.includes(':') ? `[${address}]` : address}:${port}`
}
