// Every citation leads to its target: a link of a page, and a document that a comment of the code names.
//
// A page or comment may cite only documents of this repository, which its reader has, and only anchors that exist.

import { existsSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import t from 'tap'
import { anchorsOf, linksOf, pages } from '../support/markdown.js'
import { root, sourcesIn } from '../support/project.js'

const texts = pages()
const anchors = new Map([...texts].map(([path, text]) => [path, anchorsOf(text)]))

/** The fault of a citation; undefined: it has none. `from`: the folder of the citing file. */
function faultOf(target: string, from: string): string | undefined {
  const [path = '', anchor] = target.split('#')
  const places = [normalize(join(from, path)), normalize(path)]
  const place = places.find(one => existsSync(join(root, one)))
  if (place === undefined) return 'there is no such file'
  if (anchor === undefined) return undefined
  return anchors.get(place)?.has(anchor) ? undefined : 'there is no such anchor'
}

const faults = (cited: Iterable<readonly [where: string, target: string]>): string[] =>
  [...cited].flatMap(([where, target]) => {
    const fault = faultOf(target, dirname(where.replace(/:\d+$/, '')))
    return fault === undefined ? [] : [`${where} cites ${target}: ${fault}`]
  })

t.test('every link of a page leads to a file and an anchor', async t => {
  const links = [...texts].flatMap(([path, text]) =>
    linksOf(text).map(target => [path, target.startsWith('#') ? path.split('/').at(-1) + target : target] as const),
  )
  t.ok(links.length > 100, `${links.length} links`)
  t.strictSame(faults(links), [])
})

t.test('every document that a comment of the code cites is in the repository, with its anchor', async t => {
  const citation = /(?:[\w.-]+\/)*[\w-]+\.md(?:#[\w-]+)?/g
  const cited = ['src', 'cluster', 'test', 'bench']
    .flatMap(sourcesIn)
    .flatMap(([path, text]) =>
      text
        .split('\n')
        .flatMap((line, at) =>
          /^\s*(\/\/|\/?\*)|\/\/ /.test(line)
            ? [...line.matchAll(citation)].map(match => [`${path}:${at + 1}`, match[0]] as const)
            : [],
        ),
    )
  t.ok(cited.length > 500, `${cited.length} citations`)
  t.strictSame(faults(cited), [])
})

t.test('a citation that leads nowhere is named with file and line', async t => {
  t.strictSame(faults([['src/a.ts:7', 'docs/interface/nothing.md']]), [
    'src/a.ts:7 cites docs/interface/nothing.md: there is no such file',
  ])
  t.strictSame(faults([['src/a.ts:7', 'docs/interface/errors.md#nothing']]), [
    'src/a.ts:7 cites docs/interface/errors.md#nothing: there is no such anchor',
  ])
})
