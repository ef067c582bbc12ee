// docs/interface/requests.md and docs/interface/administration.md name every path with its methods. The first of them
// also names every word of `options`. No page of docs/interface names an option of the command line that does not
// exist.
//
// The test reads paths and words from the text of the sources, because the table of routes needs a whole broker.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { isOptionName } from '../../src/config/options.js'
import { codesIn, pages, readPage, rowsOf, sectionOf } from '../support/markdown.js'
import { root } from '../support/project.js'

const requests = readPage('docs/interface/requests.md')
const source = (path: string): string => readFileSync(join(root, path), 'utf8')

const sorted = (words: Iterable<string>): string[] => [...words].sort()

t.test('the pages have every served path with its methods, and no other', async t => {
  const served = new Map<string, string[]>()
  // An entry is its path, and all text up to the next entry.
  for (const [, path, entry] of source('src/http/routes.ts').matchAll(
    /^ {2,4}'(\/[^']*)': (?:route|silent)\(([\s\S]*?)(?=^ {2,4}'\/|^ {2,4}\.\.\.|^\S)/gm,
  ))
    served.set(path!, sorted(new Set(entry!.match(/\b(?:GET|HEAD|POST|PUT|PATCH|DELETE)\b/g))))
  t.ok(served.size > 30, `${served.size} paths`)

  const listed = new Map<string, string[]>()
  const tables = [sectionOf(requests, 'Paths'), readPage('docs/interface/administration.md').split('\n## ')[0] ?? '']
  for (const [paths, methods] of tables.flatMap(rowsOf)) {
    const names = codesIn(paths!)
    // Several paths have one list of methods each, or one for all.
    const lists = methods!.split('; ')
    for (const [at, path] of names.entries()) listed.set(path, sorted((lists[at] ?? lists[0])!.split(', ')))
  }
  t.strictSame(Object.fromEntries([...listed].sort()), Object.fromEntries([...served].sort()))
})

t.test('the page has every word of options, and no other', async t => {
  const [, list = ''] = /const optionWords[^=]*= new Set\(\[([^\]]*)\]\)/.exec(source('src/http/url.ts')) ?? []
  const known = [...list.matchAll(/'(\w+)'/g)].map(match => match[1] as string)
  t.ok(known.length > 10, `${known.length} words`)
  const listed = rowsOf(sectionOf(requests, 'Options')).flatMap(([words]) => codesIn(words!))
  t.strictSame(sorted(listed), sorted(known))
})

t.test('every option that a page of docs/interface names exists', async t => {
  const named = [...pages()]
    .filter(([path]) => path.startsWith('docs/interface/'))
    .flatMap(([path, text]) =>
      [...text.matchAll(/`-([a-zA-Z0-9]{3,})/g)].map(match => [path, match[1] as string] as const),
    )
  t.ok(named.length > 50, `${named.length} options named`)
  t.strictSame(
    named.filter(([, name]) => !isOptionName(name)),
    [],
  )
})
