// The house rules on imports, read from the import lines of src/ and cluster/. The table is in support/layer-rules.ts.

import t from 'tap'
import { violations } from './support/layer-rules.js'
import { sourcesIn } from './support/project.js'

const invented = (...files: [string, string][]) => violations(new Map(files))

t.test('src and cluster import only as their layer may', async t => {
  const files = new Map([...sourcesIn('src'), ...sourcesIn('cluster')])
  t.ok(files.size > 1, `${files.size} files read`)
  t.strictSame(violations(files), [])
})

t.test('a layer that imports another one is named with file and line', async t => {
  const found = invented(['src/shard/shard.ts', "// head\nimport type { Front } from '../http/front.js'\n"])
  t.strictSame(found, [
    "src/shard/shard.ts:2 imports '../http/front.js': shard may import domain, ports, messages, encoded-entity, rows, wire, backup, not http",
  ])
})

t.test('main may import sideways and cluster, others may not', async t => {
  const lines = "import '../cluster/index.js'\nimport './http/front.js'\nimport './shard/shard.js'\n"
  t.strictSame(invented(['src/main.ts', lines]), [])
  t.match(invented(['src/clock.ts', lines]), [
    /only main and process/,
    /clock may import domain, ports, not http/,
    /not shard/,
  ])
})

t.test('domain uses nothing of Node, and pure packages only', async t => {
  t.strictSame(invented(['src/domain/a.ts', "import { RE2JS } from 're2js'\nimport './b.js'"]), [])
  t.match(invented(['src/domain/a.ts', "import { join } from 'node:path'"]), [/domain is pure/])
  t.match(invented(['src/domain/a.ts', "export * from '../ports.js'"]), [/nothing outside itself, not ports/])
})

t.test('cluster imports nothing of src', async t => {
  t.match(invented(['cluster/node.ts', "import '../src/ports.js'"]), [/cluster imports nothing of the rest/])
})

t.test('a package with a keeper is imported by the keeper only, dynamically too', async t => {
  t.strictSame(invented(['src/storage/rocks-syncer.ts', "await import('@nxtedition/rocksdb')"]), [])
  t.match(invented(['src/storage/store.ts', "await import('@nxtedition/rocksdb')"]), [
    /only src\/storage\/rocks-\*\.ts/,
  ])
  t.match(invented(['src/shard/shard.ts', "import { pino } from 'pino'"]), [/only src\/observe\//])
  t.match(invented(['cluster/link.ts', "import { Client } from '@grpc/grpc-js'"]), [/only cluster\/asks\/grpc-\*\.ts/])
})

t.test('a relative import without .js is refused', async t => {
  t.match(invented(['src/broker/a.ts', "import './b'"]), [/ends in \.js/])
})

t.test('a circle of imports is found, type imports included', async t => {
  const found = invented(
    ['src/broker/a.ts', "import './b.js'"],
    ['src/broker/b.ts', "import './c.js'"],
    ['src/broker/c.ts', "import type { A } from './a.js'"],
  )
  t.match(found, [/c\.ts:1 closes a circle: src\/broker\/a\.ts -> .*b\.ts -> .*c\.ts -> .*a\.ts/])
})

t.test('a new folder of src has to be put into the table', async t => {
  t.match(invented(['src/attic/a.ts', "import './b.js'"]), [/no row in the table/])
})
