// Random access files: keys with known secrets, roles with random rules, and sometimes roles of `anonymous`.
//
// Names, types, ids, paths and attributes come from small alphabets, so that rules often overlap and requests often
// meet them. Keys have the same names in every file, and mostly other roles: what a principal owns stays its own while
// its rights change. Some keys have expired, and some are missing.
//
// Not here: what the rules mean (reference-grant), the requests (random-access-request).

import { createHash } from 'node:crypto'
import type { Random } from '../support/random.js'
import { chance, several, shuffled } from '../support/random-entity.js'

export interface AccessRule {
  readonly actions: readonly string[]
  readonly tenants?: readonly string[]
  readonly paths?: readonly string[]
  readonly types?: readonly string[]
  readonly ids?: readonly (string | { readonly pattern: string })[]
  readonly attributes?: readonly string[]
}

export interface AccessKey {
  readonly name: string
  readonly sha256: string
  readonly roles: readonly string[]
  readonly expires?: string
}

export interface AccessFile {
  readonly anonymous?: readonly string[]
  readonly keys: readonly AccessKey[]
  readonly roles: Readonly<Record<string, readonly AccessRule[]>>
}

type Choices<T> = readonly [T, ...T[]]

export const tenants = ['', 'city'] as const
export const paths = ['/', '/a', '/a/b', '/a/b/c', '/ab', '/c'] as const
export const types = ['Lamp', 'Meter', 'Museum', 'Thing'] as const
export const ids = ['E1', 'E2', 'E3', 'urn:1', 'urn:2'] as const
export const attributes = ['a', 'b', 'c', 'd', 'loc'] as const
/** The names of all keys that a file may have. */
export const keyNames = Array.from({ length: 14 }, (_, at) => `key-${at + 1}`) as unknown as Choices<string>

/** A key that may do everything in each file, so that there is always something to see. */
export const strongKey = keyNames[0]

const roleNames = Array.from({ length: 24 }, (_, at) => `role-${at + 1}`) as unknown as Choices<string>
const idPatterns = ['^E', '^urn:', '[12]$'] as const
const actionSets = [
  ['*'],
  ['*'],
  ['read'],
  ['read'],
  ['read', 'stream'],
  ['read', 'create', 'update'],
  ['read', 'update', 'delete'],
  ['create', 'update'],
  ['update'],
  ['create'],
  ['delete'],
  ['notify'],
  ['subscribe'],
  ['subscribe', 'stream'],
  ['subscribe', 'read'],
  ['register'],
  ['stream'],
  ['create', 'update', 'delete', 'notify', 'register', 'history'],
] as const
const tenantSets = [undefined, ['*'], ['*'], ['*'], ['city'], ['', 'city'], ['']] as const
const pathSets = [
  undefined,
  undefined,
  ['/#'],
  ['/'],
  ['/a/#'],
  ['/a'],
  ['/a/b', '/c'],
  ['/a/b/#', '/'],
  ['/ab/#', '/a'],
  ['/', '/a', '/ab'],
] as const
const attributeSets = [
  undefined,
  undefined,
  ['*'],
  ['*', '!a'],
  ['*', '!b'],
  ['*', '!b', '!c'],
  ['!loc', '*'],
  ['a'],
  ['a', 'b'],
  ['b', 'c', 'loc'],
  ['c', 'd', '!d'],
] as const

/** The secret of a key. It depends on its name and the seed alone, so that it is the same in every file of a run. */
export const secretOf = (seed: number, name: string): string =>
  `ok_${createHash('sha256').update(`${seed} ${name}`).digest('base64url')}`

export const hashOf = (secret: string): string => createHash('sha256').update(secret).digest('hex')

/** A file in which nothing but the listed key has a rule, and that one may do everything. */
export const openFile = (seed: number): AccessFile => ({
  anonymous: ['everything'],
  keys: keyNames.map(name => ({ name, sha256: hashOf(secretOf(seed, name)), roles: ['everything'] })),
  roles: { everything: [{ actions: ['*'], tenants: ['*'] }] },
})

/** A random file. `probe`: the name of one more key, by which a test sees that the file is in use. */
export function randomAccessFile(random: Random, probe: string): AccessFile {
  const roles = Object.fromEntries(roleNames.map(name => [name, several(random, 1, 4, () => rule(random))]))
  roles['role-1'] = [{ actions: ['*'], tenants: ['*'] }]
  roles['role-2'] = [
    { actions: ['read', 'subscribe', 'stream', 'admin'], tenants: ['city'] },
    ...several(random, 0, 2, () => rule(random)),
  ]
  const keys = keyNames.filter(name => name === strongKey || chance(random, 0.97)).map(name => key(random, name))
  const probing = { name: probe, sha256: hashOf(secretOf(random.seed, probe)), roles: [] }
  return {
    ...(chance(random, 0.6) && { anonymous: someRoles(random) }),
    keys: [...keys, probing],
    roles,
  }
}

function key(random: Random, name: string): AccessKey {
  const draw = random.fraction()
  const expires =
    draw < 0.04 && name !== strongKey ? '2001-01-01T00:00:00Z' : draw < 0.2 ? '2099-01-01T00:00:00Z' : undefined
  const roles = name === strongKey ? ['role-1'] : chance(random, 0.05) ? [] : someRoles(random)
  return { name, sha256: hashOf(secretOf(random.seed, name)), roles, ...(expires !== undefined && { expires }) }
}

const someRoles = (random: Random): string[] => shuffled(random, roleNames).slice(0, random.pick([1, 1, 2, 2, 3, 5]))

function rule(random: Random): AccessRule {
  const inTenants = random.pick(tenantSets)
  const inPaths = random.pick(pathSets)
  const ofTypes = chance(random, 0.4) ? shuffled(random, types).slice(0, random.between(1, 3)) : undefined
  const ofIds = chance(random, 0.2) ? several(random, 1, 2, () => oneId(random)) : undefined
  const ofAttributes = random.pick(attributeSets)
  return {
    actions: random.pick(actionSets),
    ...(inTenants && { tenants: inTenants }),
    ...(inPaths && { paths: inPaths }),
    ...(ofTypes && { types: ofTypes }),
    ...(ofIds && { ids: ofIds }),
    ...(ofAttributes && { attributes: ofAttributes }),
  }
}

const oneId = (random: Random): string | { readonly pattern: string } =>
  chance(random, 0.5) ? random.pick(ids) : { pattern: random.pick(idPatterns) }
