// Requests of operators' commands to a running broker: `orrery cluster` and `orrery tenants`.
//
// With access control they show a key or token, which is never shown in a message.
//
// Not here: requests that are repeated (broker-client.ts), the commands.

import type { Client } from 'undici'
import { envPrefixes, options } from '../config/options.js'
import { connectorTo, openSockets, reasonOf } from '../deliver/sockets/sockets.js'
import { endpointOf, reasonIn } from './broker-client.js'

/** Options of these commands, as `parseArgs` takes them. */
export const operatorOptions = {
  token: { type: 'string' },
  notifCaFile: { type: 'string' },
  insecureNotif: { type: 'boolean' },
} as const

/** Their values. */
export type OperatorValues = { readonly [Name in keyof typeof operatorOptions]?: string | boolean | undefined }

/** A broker, and how it is reached. */
export interface OperatorTarget {
  /** The paths of requests begin behind its path. */
  readonly url: URL
  /** undefined: nothing is shown. */
  readonly token: string | undefined
  readonly tls: { readonly insecure: boolean; readonly caFile: string | undefined }
}

export interface OperatorAnswer {
  readonly status: number
  readonly body: Buffer
}

/** The target at a URL, or a sentence about a fault. `name`: where the URL was given. */
export function operatorTarget(
  name: string,
  url: string,
  values: OperatorValues,
  env: Readonly<Record<string, string | undefined>>,
): OperatorTarget | string {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    return `${name}: ${JSON.stringify(url)} is not a URL with http or https`
  const { token, notifCaFile, insecureNotif } = values
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(String(token)))
    return '--token: has characters that a header cannot have'
  const variable = envPrefixes.map(prefix => env[prefix + options.notifCaFile.env]).find(one => one)
  const caFile = notifCaFile === undefined ? variable : String(notifCaFile)
  return {
    url: new URL(url),
    token: token === undefined ? undefined : String(token),
    tls: { insecure: insecureNotif === true, caFile },
  }
}

/** Calls `use` with a function that sends a request. `answerMsMax`: the time of each answer. Throws sentences. */
export async function withOperatorClient<T>(
  { url, token, tls }: OperatorTarget,
  answerMsMax: number,
  use: (ask: (method: 'GET' | 'POST' | 'DELETE', path: string) => Promise<OperatorAnswer>) => Promise<T>,
): Promise<T> {
  const { Client } = await import('undici')
  const client: Client = new Client(url.origin, {
    connect: connectorTo(endpointOf(url), openSockets(tls), () => {}),
    headersTimeout: answerMsMax,
    bodyTimeout: answerMsMax,
  })
  const base = url.pathname.replace(/\/+$/, '')
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
  try {
    return await use(async (method, path) => {
      const { statusCode, body } = await client
        .request({
          method,
          path: `${base}${path}`,
          headers: method === 'POST' ? { ...headers, 'content-length': '0' } : headers,
        })
        .catch((error: Error) => {
          throw new Error(reasonOf(error))
        })
      return { status: statusCode, body: Buffer.from(await body.arrayBuffer()) }
    })
  } finally {
    await client.destroy()
  }
}

/** The JSON of an answer. Throws a sentence if the broker has refused. */
export function operatorJson({ status, body }: OperatorAnswer): unknown {
  if (status >= 400) throw new Error(`answered ${status}: ${reasonIn({ body })}`)
  try {
    return JSON.parse(body.toString())
  } catch {
    throw new Error('the answer is not that of a broker')
  }
}
