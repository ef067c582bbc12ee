// Finds environment variables that have a prefix of ours and name no option: most likely they are misspelt.
//
// The lines never show a value, because each of them may be a password.

import { nearest } from './nearest.js'
import { envPrefixes, optionNames, options } from './options.js'

/** Lines of a start about unknown variables; what is beyond is counted in the last one. */
export const unknownVariablesMax = 20

/** What the image of Orion and the examples of its deployments set besides options. */
const ofDeployments: ReadonlySet<string> = new Set(['USER', 'USER_UID', 'VERSION'])

/** What Docker and Kubernetes set in every container for a service of the name `orion` or `ctx`. */
const ofServices = /^(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_[0-9]+_(TCP|UDP)(_(ADDR|PORT|PROTO))?|NAME|ENV_.*)$/

const suffixes: readonly string[] = optionNames.map(name => options[name].env)

/** A line for each variable with a prefix of ours that names no option. */
export function unknownVariables(env: Readonly<Record<string, string | undefined>>): string[] {
  const unknown = Object.keys(env).filter(isUnknown).sort()
  const lines = unknown.slice(0, unknownVariablesMax).map(lineOf)
  const left = unknown.length - lines.length
  return left > 0 ? [...lines, `${left} more environment variables are unknown`] : lines
}

const prefixOf = (variable: string): string | undefined => envPrefixes.find(prefix => variable.startsWith(prefix))

function isUnknown(variable: string): boolean {
  const prefix = prefixOf(variable)
  if (prefix === undefined) return false
  const suffix = variable.slice(prefix.length)
  return !suffixes.includes(suffix) && !ofDeployments.has(suffix) && !ofServices.test(suffix)
}

function lineOf(variable: string): string {
  const prefix = prefixOf(variable) as string
  const suffix = variable.slice(prefix.length)
  // Some write the name of the option instead of that of its variable.
  const bare = suffix.replaceAll('_', '')
  const option = optionNames.find(name => name.toLowerCase() === bare.toLowerCase())
  const near = option === undefined ? nearest(suffix, suffixes) : options[option].env
  return `environment variable ${variable} is unknown${near === undefined ? '' : `; did you mean ${prefix}${near}?`}`
}
