// Each exported type has a name of its own, so that a name means the same everywhere.
//
// Types that a file does not export do not count.

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
