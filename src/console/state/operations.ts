// The operations that the interface has, read once from the document beside the modules of the page.

import { useEffect, useState } from 'preact/hooks'
import { type DescribedOperation, type OpenApiShape, operationsOf } from '../interface/open-api.js'

let reading: Promise<readonly DescribedOperation[]> | undefined

async function read(): Promise<readonly DescribedOperation[]> {
  const response = await fetch(new URL('../openapi.json', import.meta.url))
  return response.ok ? operationsOf((await response.json()) as OpenApiShape) : []
}

/** Until they are read, and if that fails, there are none: a person can type a request without them. */
export function useOperations(): readonly DescribedOperation[] {
  const [operations, setOperations] = useState<readonly DescribedOperation[]>([])
  useEffect(() => {
    reading ??= read()
    reading.then(setOperations, () => {
      reading = undefined
    })
  }, [])
  return operations
}
