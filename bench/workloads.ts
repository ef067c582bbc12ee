// The requests to the servers: entities of an exact size and the raw requests of every workload, as templates.
//
// A template is HTTP/1.1 text with holes of fixed width, so that Content-Length is the same for every request. {ID} is
// the variable end of an entity id (16 characters). {N} is a random value of 4 digits, so hardly any update repeats the
// stored value. {U} is a value of 12 digits that comes only once, so that each update can be traced. Every hole is
// filled anew: a batch is a template with many {ID}. wrk's Lua, autocannon and the loader fill the same holes.
//
// Not here: sending of requests (generator, loader), and the required rates (main).

export const stockSize = 20_000
const idWidth = 16
export const idHole = '{ID}'
export const valueHole = '{N}'
export const ownValueHole = '{U}'

export interface Template {
  readonly method: 'GET' | 'POST' | 'PATCH'
  readonly path: string
  /** '' for none. */
  readonly body: string
  /** Sent as Fiware-ServicePath. */
  readonly servicePath?: string
  /** Sent as Authorization. */
  readonly authorization?: string
}

/** Entities `stock` exist before the run, numbered from 0; `new` ones have not been stored before. */
export interface Step {
  readonly template: Template
  readonly ids: 'stock' | 'new'
  /** Its frequency, relative to the other steps of the workload. */
  readonly weight: number
}

export type Workload = readonly Step[]

/** A normalized entity with three attributes, `bytes` long. */
export function entityBody(bytes: number): string {
  const render = (text: string): string =>
    `{"id":"urn:sensor:${idHole}","type":"Sensor","temperature":{"type":"Number","value":${valueHole}},` +
    `"humidity":{"type":"Number","value":41.5},"note":{"type":"Text","value":"${text}"}}`
  return render('n'.repeat(bytes - filledLength(render(''))))
}

const entityPath = `/v2/entities/urn:sensor:${idHole}`

/** The body of a `POST /v2/op/update`. */
export function batchBody(action: 'append' | 'delete', entities: readonly string[]): string {
  return `{"actionType":"${action}","entities":[${entities.join(',')}]}`
}

export const entitiesPerBatch = 100
export const batchPath = '/v2/op/update'

const upsert: Template = { method: 'POST', path: '/v2/entities?options=upsert', body: entityBody(250) }
const create: Template = { method: 'POST', path: '/v2/entities', body: entityBody(250) }
const read: Template = { method: 'GET', path: entityPath, body: '' }
const list: Template = { method: 'GET', path: '/v2/entities?type=Sensor&limit=20', body: '' }
const patch: Template = {
  method: 'PATCH',
  path: `${entityPath}/attrs`,
  body: `{"temperature":{"type":"Number","value":${valueHole}}}`,
}
const append: Template = {
  method: 'POST',
  path: batchPath,
  body: batchBody('append', Array(entitiesPerBatch).fill(entityBody(250))),
}

export const upserts: Workload = [{ template: upsert, ids: 'stock', weight: 1 }]
export const creates: Workload = [{ template: create, ids: 'new', weight: 1 }]
export const updates: Workload = [{ template: patch, ids: 'stock', weight: 1 }]
/** No two of these updates have the same value. */
export const ownUpdates: Workload = [
  { template: { ...patch, body: patch.body.replace(valueHole, ownValueHole) }, ids: 'stock', weight: 1 },
]
/** An update with a value of its own (`ownValues`). */
export const ownUpdateOf = (id: string, value: number): Template => ({
  ...patch,
  path: patch.path.replace(idHole, id),
  body: patch.body.replace(valueHole, String(value)),
})
/** The same update, as a batch of one entity. */
export const singleBatches: Workload = [
  {
    template: {
      method: 'POST',
      path: batchPath,
      body:
        `{"actionType":"update","entities":[{"id":"urn:sensor:${idHole}","type":"Sensor",` +
        `"temperature":{"type":"Number","value":${valueHole}}}]}`,
    },
    ids: 'stock',
    weight: 1,
  },
]
export const batches: Workload = [{ template: append, ids: 'stock', weight: 1 }]
export const reads: Workload = [{ template: read, ids: 'stock', weight: 1 }]
/** The first page of a type. */
export const lists: Workload = [{ template: list, ids: 'stock', weight: 1 }]
/** Six reads, three updates and one create in ten. The bare server has no PATCH, so it gets upserts. */
export const mixed = (updating: 'patch' | 'upsert'): Workload => [
  { template: read, ids: 'stock', weight: 6 },
  { template: updating === 'patch' ? patch : upsert, ids: 'stock', weight: 3 },
  { template: create, ids: 'new', weight: 1 },
]

export function stockId(n: number): string {
  return String(n).padStart(idWidth, '0')
}

/** The same requests of a client that shows a key or a token. */
export const authorized = (workload: Workload, proof: string): Workload =>
  workload.map(step => ({ ...step, template: { ...step.template, authorization: `Bearer ${proof}` } }))

let runs = 0
/** The first 7 characters of ids that no other run has used: seconds and a counter in base 36. Nine digits follow. */
export function freshPrefix(): string {
  const seconds = Math.floor(Date.now() / 1000) % 36 ** 4
  runs += 1
  return seconds.toString(36).padStart(4, '0') + ((process.pid * 64 + runs) % 36 ** 3).toString(36).padStart(3, '0')
}

export const newId = (prefix: string, n: number): string => prefix + String(n).padStart(9, '0')

/** Fills all holes; calls `nextId` for every {ID}. */
export function fill(text: string, nextId: () => string): string {
  return text
    .replaceAll(idHole, () => nextId())
    .replaceAll(valueHole, () => String(randomValue()))
    .replaceAll(ownValueHole, () => String(ownValues(1)))
}

let valuesTaken = 100_000_000_000
/** The first of `count` consecutive values that this process has not used before. */
export function ownValues(count: number): number {
  const first = valuesTaken
  valuesTaken += count
  return first
}

function randomValue(): number {
  return 1000 + Math.floor(Math.random() * 9000)
}

function filledLength(text: string): number {
  return fill(text, () => stockId(0)).length
}

/** The number of entities in a request of this template; a list counts as one. */
export const entitiesOf = (template: Template): number => Math.max(1, wire(template, '').split(idHole).length - 1)

/** Returns a function that makes the n-th request of a template, about the entity `idOf(n)`. */
export function requestsOf(template: Template, tenant: string, idOf: (n: number) => string): (n: number) => string {
  const text = wire(template, tenant)
  return n => fill(text, () => idOf(n))
}

/** The request as bytes on the wire, with its holes. A `tenant` '' sends no header. */
export function wire(template: Template, tenant: string): string {
  const head = [`${template.method} ${template.path} HTTP/1.1`, 'Host: bench']
  if (tenant !== '') head.push(`Fiware-Service: ${tenant}`)
  if (template.servicePath !== undefined) head.push(`Fiware-ServicePath: ${template.servicePath}`)
  if (template.authorization !== undefined) head.push(`Authorization: ${template.authorization}`)
  if (template.body !== '') {
    head.push('Content-Type: application/json', `Content-Length: ${filledLength(template.body)}`)
  }
  return `${head.join('\r\n')}\r\n\r\n${template.body}`
}

/** The step of each request of a cycle: the steps spread evenly by weight. */
export function cycle(workload: Workload): number[] {
  const length = workload.reduce((sum, step) => sum + step.weight, 0)
  const slots = workload.flatMap((step, index) =>
    Array.from({ length: step.weight }, (_, k) => ({ index, at: ((k + 0.5) * length) / step.weight })),
  )
  return slots.sort((a, b) => a.at - b.at || a.index - b.index).map(slot => slot.index)
}
