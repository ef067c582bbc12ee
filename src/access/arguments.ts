// The options of `orrery access key` and `orrery access explain` on the command line.
//
// Names are --name or -name, as those of the start options. No message about a wrong option shows the value of --token.

import { parseArgs } from 'node:util'
import { envPrefixes, options } from '../config/options.js'
import { refusalText } from '../domain/refusal.js'
import { parseServicePaths, parseTenant } from '../domain/scope.js'
import type { AskedRequest } from './request-questions.js'

/** A new key. */
export interface KeyOrder {
  readonly name: string
  readonly roles: readonly string[]
  readonly expires: string | undefined
}

/** A decision that has to be explained. */
export interface ExplainOrder {
  readonly file: string
  readonly asking: { readonly kind: 'name'; readonly name: string } | { readonly kind: 'token'; readonly text: string }
  readonly request: AskedRequest
  readonly tls: { readonly insecure: boolean; readonly caFile: string | undefined }
}

const text = { type: 'string' } as const
const flag = { type: 'boolean' } as const

/** The order, or a sentence about what is wrong. */
export function readKeyArguments(words: readonly string[]): KeyOrder | string {
  const known = { name: text, role: { type: 'string', multiple: true }, expires: text } as const
  try {
    const { values } = parseArgs({ args: withDashes(words), options: known, strict: true, allowPositionals: false })
    const { name, role = [], expires } = values
    if (name === undefined) return '--name is missing'
    if (role.length === 0) return '--role is missing'
    return { name, roles: role, expires }
  } catch (error) {
    return (error as Error).message
  }
}

const explainOptions = {
  file: text,
  as: text,
  token: text,
  tenant: text,
  path: text,
  type: text,
  id: text,
  notifCaFile: text,
  insecureNotif: flag,
} as const

/** The order, or a sentence about what is wrong. */
export function readExplainArguments(
  words: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): ExplainOrder | string {
  try {
    const given = { args: withDashes(words), options: explainOptions, strict: true, allowPositionals: true } as const
    const { values, positionals } = parseArgs(given)
    const { file, as: name, token, type, id } = values
    if (file === undefined) return '--file is missing'
    if ((name === undefined) === (token === undefined)) return 'one of --as and --token has to be given'
    const [method = '', path = '', ...more] = positionals
    if (!/^[A-Za-z]+$/.test(method) || !path.startsWith('/') || more.length > 0)
      return 'a method and a path have to be given, as in GET /v2/entities'
    const tenant = parseTenant(values.tenant ?? '')
    if (!tenant.ok) return `--tenant: ${refusalText(tenant.refusal)}`
    const servicePaths = parseServicePaths(values.path ?? '')
    if (!servicePaths.ok) return `--path: ${refusalText(servicePaths.refusal)}`
    const caVariable = envPrefixes.map(prefix => env[prefix + options.notifCaFile.env]).find(one => one)
    return {
      file,
      asking: token === undefined ? { kind: 'name', name: name! } : { kind: 'token', text: token },
      request: {
        method: method.toUpperCase(),
        path,
        tenant: tenant.value,
        servicePaths: servicePaths.value,
        type,
        id,
      },
      tls: { insecure: values.insecureNotif === true, caFile: values.notifCaFile ?? caVariable },
    }
  } catch (error) {
    return (error as Error).message
  }
}

const withDashes = (words: readonly string[]): string[] => words.map(word => (/^-[^-]/.test(word) ? `-${word}` : word))
