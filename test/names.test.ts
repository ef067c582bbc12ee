// Each exported type has a name of its own: a reader who has met a name once knows what it means everywhere.
//
// Types that a file keeps to itself do not count.

import t from 'tap'
import { sourcesIn } from './support/project.js'

const declaration = /^export (?:abstract |declare )?(?:interface|type|class|enum) (\w+)/gm

t.test('no two files export a type of the same name', async t => {
  const files = new Map<string, string[]>()
  for (const [path, text] of [...sourcesIn('src'), ...sourcesIn('cluster')])
    for (const [, name] of text.matchAll(declaration)) files.set(name!, [...(files.get(name!) ?? []), path])
  t.ok(files.size > 800, `${files.size} types`)
  t.strictSame(
    [...files].filter(([, paths]) => paths.length > 1),
    [],
  )
})
