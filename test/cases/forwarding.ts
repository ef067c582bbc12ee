// Requests to providers, written down once more from the specification
// (docs/interface/registrations.md#which-provider-is-asked, docs/interface/registrations.md#queries,
// docs/interface/registrations.md#updates-to-providers).
//
// A registration is written `entities attrs mode path`: entities by id or `*` for every id, with a type behind a slash;
// attrs by commas, `-` for the whole entity; mode and path are `all` and `/` when they are left out.

import type { Pathless } from '../../src/domain/providers/registration.js'

/** One request element against one registration: the request that the provider gets; '': it gets none. */
export type Candidate = readonly [what: string, request: string, registration: string, query: string, update: string]

/**
 * Requests are `id/type` or `~pattern/type`, an empty type for none; requests to providers are written alike. Updates
 * are of the attribute `a`.
 */
export const candidates: readonly Candidate[] = [
  ['the same id and type', 'E/T', 'E/T a', 'E/T', 'E/T'],
  ['another id', 'E/T', 'F/T a', '', ''],
  ['another type', 'E/T', 'E/U a', '', ''],
  ['a registration without type', 'E/T', 'E a', 'E/T', 'E/T'],
  ['every id of the type', 'E/T', '*/T a', 'E/T', 'E/T'],
  ['every id of another type', 'E/T', '*/U a', '', ''],
  ['every id of any type', 'E/T', '* a', 'E/T', 'E/T'],
  ['no type, a registration with one', 'E/', 'E/T a', 'E/T', ''],
  ['no type, a registration without', 'E/', 'E a', 'E/', 'E/'],
  ['no type, every id of a type', 'E/', '*/T a', 'E/T', ''],
  ['no type, every id of any type', 'E/', '* a', 'E/', 'E/'],
  ['a pattern that fits', '~^E/T', 'E1/T a', 'E1/T', ''],
  ['a pattern that does not', '~^E/T', 'F/T a', '', ''],
  ['a pattern and every id', '~^E/T', '*/T a', '~^E/T', ''],
  ['a pattern and another type', '~^E/T', 'E1/U a', '', ''],
  ['a pattern without type', '~^E/', 'E1/T a', 'E1/T', ''],
  ['a pattern without type and every id', '~.*/', '* a', '~.*/', ''],
  ['mode none', 'E/T', 'E/T a none', '', ''],
  ['mode query', 'E/T', 'E/T a query', 'E/T', ''],
  ['mode update', 'E/T', 'E/T a update', '', 'E/T'],
  ['the whole entity', 'E/T', 'E/T -', 'E/T', 'E/T'],
  ['another attribute', 'E/T', 'E/T b', '', ''],
  ['one attribute of several', 'E/T', 'E/T b,a', 'E/T', 'E/T'],
  ['another path', 'E/T', 'E/T a all /p', '', ''],
  ['no entities', 'E/T', ' a', '', ''],
]

/** The URLs at which a provider is asked (docs/interface/registrations.md#queries, issue of `-fwdPathless`). */
export const urls: readonly (readonly [url: string, plain: string, slash: string, v2: string])[] = [
  ['http://h', 'http://h/op/query', 'http://h//op/query', 'http://h/v2/op/query'],
  ['http://h/', 'http://h/op/query', 'http://h//op/query', 'http://h/v2/op/query'],
  ['https://h:1026', 'https://h:1026/op/query', 'https://h:1026//op/query', 'https://h:1026/v2/op/query'],
  ['http://h/v2', 'http://h/v2/op/query', 'http://h/v2/op/query', 'http://h/v2/op/query'],
  ['http://h/v2/', 'http://h/v2/op/query', 'http://h/v2/op/query', 'http://h/v2/op/query'],
  ['http://h/a/b', 'http://h/a/b/op/query', 'http://h/a/b/op/query', 'http://h/a/b/op/query'],
]

/** The URL at which a provider that does not serve the first path is asked; undefined: there is none. */
export const others: readonly (readonly [url: string, pathless: Pathless, other: string | undefined])[] = [
  ['http://h', 'plain', 'http://h/v2'],
  ['http://h/', 'slash', 'http://h/v2'],
  ['https://h:1026', 'v2', 'https://h:1026/'],
  ['http://h/v2', 'plain', undefined],
  ['http://h/v2/', 'v2', undefined],
  ['http://h/a/b', 'plain', 'http://h/a/b/v2'],
  ['http://h/a/b/', 'v2', 'http://h/a/b/v2'],
  ['http://h/a?b=c', 'plain', undefined],
  ['http://h?b=c', 'plain', undefined],
]

/**
 * Attributes of a query for `E/T` (docs/interface/registrations.md#queries): the named ones, the local ones, the
 * registrations, and the requests to the providers in turn; `-`: all.
 */
export type Wanted = readonly [
  what: string,
  named: string,
  local: string,
  registrations: readonly string[],
  asked: readonly string[],
]

export const wanted: readonly Wanted[] = [
  ['all of an attribute registration', '', '', ['a,b'], ['1 a,b']],
  ['all of a whole entity', '', '', ['-'], ['1 -']],
  ['what is here is not asked for', '', 'a', ['a,b'], ['1 b']],
  ['nobody who could only tell what is here', '', 'a,b', ['a,b'], []],
  ['a whole entity may always have more', '', 'a,b', ['-'], ['1 -']],
  ['named ones of an attribute registration', 'a,c', '', ['a,b'], ['1 a']],
  ['named ones of a whole entity', 'a,c', '', ['-'], ['1 a,c']],
  ['named ones that are here', 'a,c', 'a', ['a,b', '-'], ['2 c']],
  ['all named ones are here', 'a', 'a', ['a', '-'], []],
  ['attribute registrations come first', '', '', ['-', 'a', 'b'], ['2 a', '3 b', '1 -']],
  ['named ones of both kinds', 'a,b', '', ['-', 'a'], ['2 a', '1 a,b']],
]

/**
 * Updates of attributes of one entity (docs/interface/registrations.md#updates-to-providers): the attributes that were
 * not updated here, the registrations, and the updates that the providers get in turn.
 */
export type Sent = readonly [what: string, undone: string, registrations: readonly string[], sent: readonly string[]]

export const sent: readonly Sent[] = [
  ['nobody', 'a', [], []],
  ['nobody for the attribute', 'a', ['b'], []],
  ['one of two', 'a,b', ['b'], ['1 b']],
  ['each to its own', 'a,b', ['b', 'a'], ['1 b', '2 a']],
  ['the first of two that provide it', 'a', ['a,b', 'a'], ['1 a']],
  ['who provides attributes before who provides all', 'a,b', ['-', 'a'], ['1 b', '2 a']],
  ['who provides all', 'a,b', ['-', '-'], ['1 a,b']],
]
