// Environment variables with a prefix of ours: the one that counts for an option, and those that name no option, which
// are most likely misspelt.
//
// Docker and Kubernetes set variables in every container for each service: `ORION_PORT=tcp://10.0.0.7:1026` for one
// with the name `orion`. Such a service link names an option by chance, so it is ignored, with a warning.
//
// The lines never show a value, because each of them may be a password.

import { nearest } from './nearest.js'
import { envPrefixes, type OptionName, optionNames, options } from './options.js'

type Environment = Readonly<Record<string, string | undefined>>

/** Lines of a start about unknown variables; one more line counts the rest. */
export const unknownVariablesMax = 20

/** Variables besides options that the image of Orion and the examples of its deployments set. */
const ofDeployments: ReadonlySet<string> = new Set(['USER', 'USER_UID', 'VERSION'])

/** Variables of Docker and Kubernetes, in every container, for a service whose name begins with `orion` or `ctx`. */
const ofServices =
  /^(([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(ADDR|PORT|PROTO))?)|NAME|ENV_.*)$/

const serviceAddress = /^(tcp|udp|sctp):\/\//

const suffixes: readonly string[] = optionNames.map(name => options[name].env)

/** The variable that counts for an option; undefined: none is set. */
export const variableOf = (name: OptionName, env: Environment): string | undefined =>
  envPrefixes.map(prefix => prefix + options[name].env).find(key => env[key] && !isServiceLink(key, env[key]))

/** Whether a variable is the address of a service, set in the container automatically. */
const isServiceLink = (key: string, value = ''): boolean => /_PORT$/.test(key) && serviceAddress.test(value)

/** A line about the service links that are ignored in place of options. */
export function ignoredLinks(env: Environment): string[] {
  const ignored = optionNames
    .flatMap(name => envPrefixes.map(prefix => prefix + options[name].env))
    .filter(key => isServiceLink(key, env[key]))
    .sort()
  if (ignored.length === 0) return []
  const advice = 'enableServiceLinks: false in the pod avoids that'
  return [
    `${ignored.join(', ')}: ignored, since it is the address of a service, set by Kubernetes or Docker (${advice})`,
  ]
}

/** A line for each variable with a prefix of ours that names no option. */
export function unknownVariables(env: Environment): string[] {
  const unknown = Object.keys(env)
    .filter(key => isUnknown(key) && !isServiceLink(key, env[key]))
    .sort()
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
  // Some operators write the name of the option instead of that of its variable.
  const bare = suffix.replaceAll('_', '')
  const option = optionNames.find(name => name.toLowerCase() === bare.toLowerCase())
  const near = option === undefined ? nearest(suffix, suffixes) : options[option].env
  return `environment variable ${variable} is unknown${near === undefined ? '' : `; did you mean ${prefix}${near}?`}`
}
