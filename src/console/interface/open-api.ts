// The document that describes the interface (docs/interface/openapi.json), as a list of operations.
//
// It is a file of the build of this page, so its shape is not checked.

import type { Json } from '../../domain/json.js'
import { type TypedMethod, typedMethods } from './typed-request.js'

export interface DescribedParameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly description: string
}

export interface DescribedOperation {
  readonly method: TypedMethod
  /** With names in braces. */
  readonly path: string
  readonly summary: string
  readonly parameters: readonly DescribedParameter[]
  /** undefined: it has no body. */
  readonly example: Json | undefined
}

interface Reference {
  readonly $ref: string
}

interface OperationShape {
  readonly summary: string
  readonly parameters?: readonly (DescribedParameter | Reference)[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly example: Json }>> }
}

export interface OpenApiShape {
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationShape>>>>
  readonly components: { readonly parameters: Readonly<Record<string, DescribedParameter>> }
}

export function operationsOf({ paths, components }: OpenApiShape): DescribedOperation[] {
  const resolved = (one: DescribedParameter | Reference): DescribedParameter[] => {
    if (!('$ref' in one)) return [one]
    const known = components.parameters[one.$ref.slice(one.$ref.lastIndexOf('/') + 1)]
    return known ? [known] : []
  }
  return Object.entries(paths).flatMap(([path, methods]) =>
    typedMethods.flatMap((method): DescribedOperation[] => {
      const operation = methods[method.toLowerCase()]
      if (!operation) return []
      const { summary, parameters = [], requestBody } = operation
      const [content] = Object.values(requestBody?.content ?? {})
      return [{ method, path, summary, parameters: parameters.flatMap(resolved), example: content?.example }]
    }),
  )
}

/** Whether a path, perhaps with a query, is one of a path with names in braces. */
export function isOf(template: string, target: string): boolean {
  const [path = ''] = target.split('?')
  const parts = path.replace(/\/$/, '').split('/')
  const wanted = template.replace(/\/$/, '').split('/')
  return wanted.length === parts.length && wanted.every((part, at) => part === parts[at] || part.startsWith('{'))
}

export const bodyText = (example: Json | undefined): string =>
  example === undefined ? '' : JSON.stringify(example, undefined, 2)
