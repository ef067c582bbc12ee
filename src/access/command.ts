// `orrery access key` and `orrery access explain` (docs/interface/access.md#commands).
//
// `key` prints a new key, which is stored nowhere, and its line for the access file. `explain` prints the decision
// about a request, and for each rule of the principal whether it allows the request. It reads the file as a broker
// does. It verifies a token with the keys of its issuer, which it fetches.
//
// Exit status of `explain`: 0 if the request is allowed, also in part; 1 if it is denied, or if something is wrong.

import { systemClock } from '../clock.js'
import { usageOf } from '../config/commands.js'
import { Egress } from '../deliver/sockets/egress.js'
import { openSockets } from '../deliver/sockets/sockets.js'
import { explainAccess, explanationLines } from '../domain/access/access-explanation.js'
import { type AccessFile, accessFileOf } from '../domain/access/access-file.js'
import { isKeyExpired, type PrincipalSource, principalOf } from '../domain/access/principal.js'
import { anonymousName } from '../domain/access/proofs-parser.js'
import type { JsonObject } from '../domain/json.js'
import { refusalText } from '../domain/refusal.js'
import { folderOf, keyFilesFault, readAccessFile } from './access-text.js'
import { type ExplainOrder, type KeyOrder, readExplainArguments, readKeyArguments } from './arguments.js'
import { fetchOver } from './fetch-keys.js'
import { keyHash, newKey } from './keys.js'
import { proofInText } from './proof.js'
import { needsOf } from './request-questions.js'
import { type TokenOutcome, TokenVerifier } from './tokens.js'

type Verb = 'key' | 'explain'

/** Runs the command with the words behind its name; returns the exit status. */
export async function runAccess(
  verb: Verb,
  words: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  const order = verb === 'key' ? readKeyArguments(words) : readExplainArguments(words, env)
  if (typeof order === 'string') return fail(`${usageOf(`access ${verb}`)}\n\n${order}`)
  try {
    return 'roles' in order ? printKey(order) : await explain(order)
  } catch (error) {
    return fail(`orrery access ${verb}: ${(error as Error).message}`)
  }
}

function fail(lines: string): number {
  process.stderr.write(`${lines}\n`)
  return 1
}

function printKey({ name, roles, expires }: KeyOrder): number {
  const key = newKey()
  const entry: JsonObject = { name, sha256: keyHash(key), roles: [...new Set(roles)], ...(expires && { expires }) }
  const value: JsonObject = { keys: [entry], roles: Object.fromEntries(roles.map(role => [role, []])) }
  const parsed = accessFileOf({ value, lineOf: () => 0 })
  if (!parsed.ok) return fail(`orrery access key: ${refusalText(parsed.refusal)}`)
  process.stderr.write('The key, which is shown only now, and its line for keys in the access file (JSON or YAML):\n')
  process.stdout.write(`${key}\n${JSON.stringify(entry)}\n`)
  return 0
}

async function explain(order: ExplainOrder): Promise<number> {
  const read = readAccessFile(order.file)
  if (!read.ok) return fail(`${order.file}: ${refusalText(read.refusal)}`)
  const file = read.value
  const fault = keyFilesFault(file, folderOf(order.file))
  if (fault !== undefined) return fail(`${order.file}: ${fault}`)
  const source = order.asking.kind === 'name' ? sourceNamed(file, order.asking.name) : await sourceOf(order, file)
  if (typeof source === 'string') return fail(source)
  return print(order, file, source)
}

function print({ request }: ExplainOrder, file: AccessFile, source: PrincipalSource): number {
  const print = (lines: readonly string[]): unknown => process.stdout.write(`${lines.join('\n')}\n`)
  const principal = principalOf(file, source)
  const needs = needsOf(request)
  switch (needs.kind) {
    case 'unknown':
      return fail(`${request.method} ${request.path}: Orrery has no such path, or not with this method`)
    case 'nothing':
      print(['allowed: it needs no proof'])
      return 0
    case 'principal':
      print([principal ? 'allowed: it needs a principal, and no rule' : 'denied: the file does not have the principal'])
      return principal ? 0 : 1
    case 'rules': {
      const explanations = needs.questions.map(question => explainAccess(file, principal, question))
      print([...explanations.flatMap(explanationLines), ...(needs.note === undefined ? [] : [needs.note])])
      // Of a batch, one kind may be allowed.
      const isDenied = ({ decision }: { readonly decision: string }): boolean => decision === 'denied'
      return (needs.note === undefined ? explanations.some(isDenied) : explanations.every(isDenied)) ? 1 : 0
    }
  }
}

/** The principal of a name in the file, or a sentence. */
function sourceNamed(file: AccessFile, name: string): PrincipalSource | string {
  if (file.rolesOfKeys.has(name)) {
    const keys = [...file.keys.values()].filter(key => key.name === name)
    if (keys.every(key => isKeyExpired(key, systemClock.wallMs()))) return `401: the key ${name} has expired`
    return { proof: 'key', name }
  }
  if (file.certificates.has(name)) return { proof: 'certificate', name }
  if (name !== anonymousName)
    return `--as: the file has no key and no certificate ${JSON.stringify(name)}; for a user of an issuer give --token`
  return file.anonymous ? { proof: 'none', name } : '401: nothing is shown, and the file has no anonymous'
}

/** The principal of a token, or a sentence. */
async function sourceOf(
  { asking, file: path, tls }: ExplainOrder,
  file: AccessFile,
): Promise<PrincipalSource | string> {
  const text = asking.kind === 'token' ? asking.text : ''
  if (proofInText(text).kind !== 'token') return '401: --token is no token: for a key give --as with its name'
  const log = (line: string): unknown => process.stderr.write(`${line}\n`)
  const egress = new Egress({ allow: [], deny: [], reserved: [] })
  egress.useFile(file)
  const tokens = new TokenVerifier({
    clock: systemClock,
    logger: { info: () => {}, warn: log },
    fetch: fetchOver(openSockets(tls, egress)),
    keysDirectory: undefined,
  })
  // Timers of the clock do not keep the process alive.
  const awake = setInterval(() => {}, 1_000)
  try {
    tokens.use(file, folderOf(path))
    const outcome = await new Promise<TokenOutcome>(resolve => {
      const now = tokens.verify(text, resolve)
      if (now) resolve(now)
    })
    if (outcome.ok) return outcome.token.source
    return `${outcome.fault === 'keysMissing' ? '503' : '401'}: the token is ${faultText[outcome.fault]}: ${outcome.reason}`
  } finally {
    tokens.stop()
    clearInterval(awake)
  }
}

const faultText = {
  malformed: 'malformed',
  expired: 'expired',
  unknown: 'not accepted',
  busy: 'not verified',
  keysMissing: 'not verified',
} as const
