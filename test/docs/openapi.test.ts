// docs/interface/openapi.json has every path of the broker with its methods, and no other.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { routeNeeds } from '../../src/domain/access/route-needs.js'
import { root } from '../support/project.js'

interface Parameter {
  readonly name: string
  readonly in: string
}

interface Operation {
  readonly summary: string
  readonly parameters?: readonly (Parameter | { readonly $ref: string })[]
  readonly requestBody?: unknown
  readonly responses: Readonly<Record<string, unknown>>
}

type PathItem = Readonly<Record<string, Operation>>

const text = readFileSync(join(root, 'docs/interface/openapi.json'), 'utf8')
const document = JSON.parse(text) as {
  readonly openapi: string
  readonly paths: Readonly<Record<string, PathItem>>
  readonly components: { readonly parameters: Readonly<Record<string, Parameter>> }
}

const operations = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item)
    .filter(([method]) => method !== 'parameters')
    .map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
)

t.test('the document has every path of the table of routes with its methods, and no other', async t => {
  const listed = operations.map(({ method, path }) => `${path} ${method}`)
  const served = Object.entries(routeNeeds).flatMap(([path, needs]) =>
    Object.keys(needs).map(method => `${path} ${method}`),
  )
  t.ok(served.length > 60, `${served.length} operations`)
  t.strictSame(listed.sort(), served.sort())
})

t.test('each operation has a summary, its names in braces, and known references', async t => {
  t.match(document.openapi, /^3\.1\./)
  const { parameters: known } = document.components
  for (const { path, method, operation } of operations) {
    const { summary, parameters = [], requestBody, responses } = operation
    t.ok(summary.length > 0 && responses.default, `${method} ${path}`)
    const resolved = parameters.map(one => ('$ref' in one ? known[one.$ref.split('/').at(-1) as string] : one))
    t.notOk(resolved.includes(undefined), `references of ${method} ${path}`)
    const names = resolved.flatMap(one => (one?.in === 'path' ? one.name : []))
    t.strictSame(
      names.sort(),
      [...path.matchAll(/\{(\w+)\}/g)].map(match => match[1] as string).sort(),
      `${method} ${path}`,
    )
    if (/^(GET|HEAD|DELETE)$/.test(method)) t.equal(requestBody, undefined, `${method} ${path} has no body`)
  }
})
