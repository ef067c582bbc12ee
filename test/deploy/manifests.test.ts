// Other programs can read the files of `deploy/`: manifests fit the schemas of Kubernetes, the composition names only
// parts that it defines, and the unit has sections and settings of systemd.
//
// The test starts neither Kubernetes nor Docker nor systemd.

import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import t from 'tap'
import { lackingPackages } from '../support/packages.js'
import { root } from '../support/project.js'

const skip = lackingPackages('test/deploy')
const load: (name: string) => unknown = createRequire(join(root, 'test/deploy/package.json'))

interface Yaml {
  parse(text: string, options?: { readonly merge: boolean }): unknown
  parseAllDocuments(text: string): readonly { readonly errors: readonly Error[]; toJS(): unknown }[]
}

interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string }
}

/** A kind of Kubernetes. An instance knows its schema; `validate` throws when the instance does not fit. */
type Model = new (manifest: unknown) => { validate(): void }

const textOf = (file: string): string => readFileSync(join(root, 'deploy', file), 'utf8')
const yaml = (): Yaml => load('yaml') as Yaml

function modelOf({ apiVersion, kind }: Manifest): Model | undefined {
  const models = load(`kubernetes-models/${apiVersion}`) as Readonly<Record<string, Model>>
  return models[kind]
}

function manifestsOf(text: string): Manifest[] {
  return yaml()
    .parseAllDocuments(text)
    .map(document => {
      if (document.errors[0]) throw document.errors[0]
      return document.toJS() as Manifest
    })
}

t.test('each manifest fits the schema of its kind', { skip }, async t => {
  const files = readdirSync(join(root, 'deploy/kubernetes')).filter(file => file.endsWith('.yaml'))
  t.ok(files.length >= 3)
  for (const file of files)
    for (const manifest of manifestsOf(textOf(`kubernetes/${file}`))) {
      const Kind = modelOf(manifest)
      const name = `${file}: ${manifest.kind} ${manifest.metadata.name}`
      if (!Kind) t.fail(`${name}: no such kind`)
      else t.doesNotThrow(() => new Kind(manifest).validate(), name)
    }
})

t.test('a manifest with a wrong field is noticed', { skip }, async t => {
  const text = textOf('kubernetes/single-node.yaml')
  for (const [right, wrong] of [
    ['replicas: 1', 'replicas: one'],
    ['containerPort:', 'containerPorts:'],
  ] as const) {
    t.ok(text.includes(right), right)
    const manifests = manifestsOf(text.replaceAll(right, wrong))
    t.throws(() => {
      for (const manifest of manifests) new (modelOf(manifest)!)(manifest).validate()
    }, wrong)
  }
})

interface Service {
  readonly depends_on?: readonly string[] | Readonly<Record<string, unknown>>
  readonly secrets?: readonly (string | { readonly source: string })[]
  readonly volumes?: readonly string[]
  readonly image?: string
  readonly build?: unknown
}

interface Composition {
  readonly services: Readonly<Record<string, Service>>
  readonly volumes: Readonly<Record<string, unknown>>
  readonly secrets: Readonly<Record<string, { readonly file: string }>>
}

t.test('the composition uses only services, secrets and volumes that it defines', { skip }, async t => {
  const composition = yaml().parse(textOf('compose.yaml'), { merge: true }) as Composition
  const services = Object.entries(composition.services)
  t.equal(services.length, 6, 'three nodes and three members of etcd')
  const used = { volumes: new Set<string>(), secrets: new Set<string>() }
  for (const [name, service] of services) {
    t.ok(service.image ?? service.build, `${name} has an image`)
    const before = service.depends_on ?? []
    for (const other of Array.isArray(before) ? before : Object.keys(before))
      t.ok(other in composition.services, `${name} depends on ${other}`)
    for (const secret of service.secrets ?? []) used.secrets.add(typeof secret === 'string' ? secret : secret.source)
    for (const volume of service.volumes ?? []) used.volumes.add(volume.split(':')[0]!)
  }
  t.strictSame([...used.volumes].sort(), Object.keys(composition.volumes).sort())
  t.strictSame([...used.secrets].sort(), Object.keys(composition.secrets).sort())
})

/** Settings that a unit may repeat; a second value of any other setting would replace the first. */
const repeatable = new Set(['Environment', 'LoadCredential'])

t.test('the unit has the sections of a service, and each setting once', async t => {
  const settings = new Map<string, string[]>()
  let section = ''
  for (const line of textOf('orrery.service').split('\n')) {
    if (line === '' || line.startsWith('#')) continue
    const header = /^\[(\w+)\]$/.exec(line)
    if (header) {
      section = header[1]!
      t.notOk(settings.has(section), `[${section}] once`)
      settings.set(section, [])
      continue
    }
    const setting = /^([A-Z][A-Za-z]+)=/.exec(line)
    t.ok(setting && section, line)
    const known = settings.get(section)!
    if (!repeatable.has(setting![1]!)) t.notOk(known.includes(setting![1]!), `${setting![1]} once`)
    known.push(setting![1]!)
  }
  t.strictSame([...settings.keys()], ['Unit', 'Service', 'Install'])
})
