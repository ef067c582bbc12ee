// The table of which layer may import which, and the reader of import lines that checks it.
//
// A file of src/ belongs to the layer named by its folder, or by its own name when it lies directly in src/. A layer
// may import itself and the layers in its row. A name without a row is an error, so that each new folder gets a row.
// Types count like values: a layer that knows another one's types depends on it.
//
// Not here: the files themselves (test/layers.test.ts reads them), so that the rules can be tested with invented ones.

import { posix } from 'node:path'
import ts from 'typescript'

/** The layers of src/, and the other layers of src/ that each may import. */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  domain: [],
  ports: ['domain', 'messages', 'encoded-entity'],
  messages: ['domain', 'ports', 'encoded-entity'],
  rows: ['domain', 'ports'],
  backup: ['domain', 'ports'],
  wire: ['domain', 'messages', 'encoded-entity', 'ports'],
  'encoded-entity': ['domain', 'ports', 'messages'],
  shard: ['domain', 'ports', 'messages', 'encoded-entity', 'rows', 'wire', 'backup'],
  broker: ['domain', 'ports', 'messages', 'encoded-entity', 'wire', 'backup'],
  deliver: ['domain', 'ports', 'messages', 'encoded-entity'],
  storage: ['domain', 'ports', 'messages', 'encoded-entity'],
  observe: ['domain', 'ports', 'messages', 'encoded-entity'],
  http: ['domain', 'ports', 'messages', 'encoded-entity', 'broker'],
  // Proofs of identity. Its commands open sockets as those of move do.
  access: ['domain', 'ports', 'config', 'clock', 'deliver'],
  // JSON from outside is read by parseJson of http/body.js, which knows nothing of HTTP.
  move: [
    'domain',
    'ports',
    'messages',
    'encoded-entity',
    'rows',
    'backup',
    'shard',
    'storage',
    'deliver',
    'observe',
    'config',
    'clock',
    'http',
  ],
  // The command `orrery watch`, a client of a broker as those of move are.
  watch: ['domain', 'ports', 'deliver', 'config', 'clock', 'http', 'move'],
  // The command `orrery demo`, a client of a broker too.
  demo: ['domain', 'ports', 'deliver', 'config', 'clock', 'move'],
  // Runs in a browser, which gets none of the other layers: of domain it imports types only.
  console: ['domain'],
  config: ['domain', 'ports', 'messages'],
  clock: ['domain', 'ports'],
}

/**
 * The only files that import sideways, and the only ones of src/ that know cluster/. No other file
 * imports them.
 */
const roots = new Set(['main', 'process'])

/** Packages that only the files matching `files` may import; bench/ and test/ may, too. */
const keepers: readonly { readonly package: string; readonly files: RegExp; readonly said: string }[] = [
  {
    package: 'uWebSockets.js',
    files: /^src\/http\/uws-(?:binary|events|exchange|front|socket)\.ts$/,
    said: 'src/http/uws-{binary,events,exchange,front,socket}.ts',
  },
  { package: '@nxtedition/rocksdb', files: /^src\/storage\/rocks-[^/]+\.ts$/, said: 'src/storage/rocks-*.ts' },
  { package: 'classic-level', files: /^src\/storage\/level-store\.ts$/, said: 'src/storage/level-store.ts' },
  { package: '@grpc/grpc-js', files: /^cluster\/asks\/grpc-[^/]+\.ts$/, said: 'cluster/asks/grpc-*.ts' },
  { package: '@grpc/proto-loader', files: /^cluster\/asks\/grpc-[^/]+\.ts$/, said: 'cluster/asks/grpc-*.ts' },
  { package: 'etcd3', files: /^cluster\/logs\/etcd-[^/]+\.ts$/, said: 'cluster/logs/etcd-*.ts' },
  {
    package: 'undici',
    files: /^src\/(deliver|move)\//,
    said: 'src/deliver/ and src/move/',
  },
  { package: 'mqtt', files: /^src\/deliver\//, said: 'src/deliver/' },
  {
    package: 'ws',
    files: /^src\/(?:http\/node-(?:front|socket)|watch\/[^/]+)\.ts$/,
    said: 'src/http/node-{front,socket}.ts and src/watch/',
  },
  { package: 'jose', files: /^src\/access\//, said: 'src/access/' },
  { package: 'yaml', files: /^src\/access\//, said: 'src/access/' },
  { package: 'preact', files: /^src\/console\//, said: 'src/console/' },
  { package: 'leaflet', files: /^src\/console\/map\//, said: 'src/console/map/' },
  { package: 'supercluster', files: /^src\/console\/map\//, said: 'src/console/map/' },
  { package: 'topojson-client', files: /^src\/console\/map\//, said: 'src/console/map/' },
  { package: 'pmtiles', files: /^src\/console\/map\//, said: 'src/console/map/' },
  { package: 'pino', files: /^src\/observe\//, said: 'src/observe/' },
  { package: 'prom-client', files: /^src\/observe\//, said: 'src/observe/' },
]

/** Packages without I/O, clock or chance: the only ones that `domain` may use. */
const purePackages = /^(re2js|rbush|flatbush|robust-predicates|@turf\/[^/]+)$/

/** One import line. `target` is a path of the project for relative imports, otherwise the words of the line. */
interface Import {
  readonly file: string
  readonly line: number
  readonly words: string
  readonly target: string
}

/**
 * The violations in these files (path from the project's root, slashes -> text): one sentence each, with file and line.
 */
export function violations(files: ReadonlyMap<string, string>): string[] {
  const imports = [...files]
    .flatMap(([file, text]) => importsOf(file, text))
    .map(one => (files.has(`${one.target}x`) ? { ...one, target: `${one.target}x` } : one))
  const found = imports.flatMap(one =>
    broken(one).map(rule => `${one.file}:${one.line} imports '${one.words}': ${rule}`),
  )
  return [...found, ...circles(imports, files)]
}

function broken(one: Import): string[] {
  return [...ending(one), ...layer(one), ...keeper(one)]
}

function ending({ words }: Import): string[] {
  return words.startsWith('.') && !/\.(js|json)$/.test(words) ? ['a relative import ends in .js'] : []
}

function keeper({ file, words }: Import): string[] {
  if (!/^(src|cluster)\//.test(file)) return []
  return keepers
    .filter(rule => packageOf(words) === rule.package && !rule.files.test(file))
    .map(rule => `only ${rule.said} may import ${rule.package}`)
}

function layer({ file, words, target }: Import): string[] {
  const [building] = file.split('/')
  if (building === 'cluster')
    return words.startsWith('.') && !target.startsWith('cluster/') ? ['cluster imports nothing of the rest'] : []
  if (building !== 'src') return []
  const from = layerOf(file)
  if (roots.has(from))
    return outsideSrc(target, words) && !target.startsWith('cluster/') ? ['src imports src or cluster'] : []
  const allowed = mayImport[from]
  if (!allowed) return [`src/${from} has no row in the table of layers`]
  if (!words.startsWith('.')) return from === 'domain' ? impure(words) : []
  if (outsideSrc(target, words)) return [`only main and process look outside src`]
  const to = layerOf(target)
  if (to === from || allowed.includes(to)) return []
  return [`${from} may import ${allowed.length > 0 ? allowed.join(', ') : 'nothing outside itself'}, not ${to}`]
}

function outsideSrc(target: string, words: string): boolean {
  return words.startsWith('.') && !target.startsWith('src/')
}

function impure(words: string): string[] {
  return purePackages.test(packageOf(words)) ? [] : ['domain is pure: no Node, no package with effects']
}

function layerOf(file: string): string {
  return (file.split('/')[1] ?? '').replace(/\.tsx?$/, '')
}

function packageOf(words: string): string {
  return words
    .split('/')
    .slice(0, words.startsWith('@') ? 2 : 1)
    .join('/')
}

function importsOf(file: string, text: string): Import[] {
  return ts.preProcessFile(text, true, true).importedFiles.map(({ fileName: words, pos }) => {
    const path = posix.join(posix.dirname(file), words).replace(/\.js$/, '.ts')
    return { file, line: text.slice(0, pos).split('\n').length, words, target: words.startsWith('.') ? path : words }
  })
}

/** Every circle once, found where a depth-first walk comes back to a file that it has not left. */
function circles(imports: readonly Import[], files: ReadonlyMap<string, string>): string[] {
  const next = new Map<string, Import[]>()
  for (const one of imports) if (files.has(one.target)) next.set(one.file, [...(next.get(one.file) ?? []), one])
  const found: string[] = []
  const done = new Set<string>()
  const walk = (file: string, path: readonly string[]) => {
    for (const one of next.get(file) ?? []) {
      const at = path.indexOf(one.target)
      if (at >= 0)
        found.push(`${one.file}:${one.line} closes a circle: ${[...path.slice(at), one.target].join(' -> ')}`)
      else if (!done.has(one.target)) walk(one.target, [...path, one.target])
    }
    done.add(file)
  }
  for (const file of files.keys()) if (!done.has(file)) walk(file, [file])
  return found
}
