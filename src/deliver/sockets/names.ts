// Looking up the addresses of receivers, few at a time and each name once at a time.
//
// The system's resolver runs on the threads of the process that the store also uses, four by default, and a name whose server does
// not answer keeps one of them for ten seconds and more. Two at a time leave room for everything else. The resolver of Node that
// needs no threads does not know the names of the machine (/etc/hosts), so it is not used.

import { type LookupAddress, lookup as systemLookup } from 'node:dns'
import type { LookupFunction } from 'node:net'

/** Lookups at a time. */
const lookupsMax = 2

type Found = (error: NodeJS.ErrnoException | null, addresses: readonly LookupAddress[]) => void
type SystemLookup = (name: string, found: Found) => void

const bySystem: SystemLookup = (name, found) => systemLookup(name, { all: true, order: 'verbatim' }, found)

/** A `lookup` for sockets. Who asks for a name that is being looked up shares the answer. */
export function sharedLookup(lookup: SystemLookup = bySystem): LookupFunction {
  const asking = new Map<string, Found[]>()
  const waiting: string[] = []
  let running = 0

  const run = (): void => {
    while (running < lookupsMax && waiting.length > 0) {
      const name = waiting.shift()!
      running++
      lookup(name, (error, addresses) => {
        running--
        const askers = asking.get(name) ?? []
        asking.delete(name)
        for (const found of askers) found(error, addresses)
        run()
      })
    }
  }

  return (name, { all }, found) => {
    const answer: Found = (error, addresses) => {
      const [first] = addresses ?? []
      if (error || !first) found(error ?? new Error(`no address for ${name}`), '')
      else if (all) found(null, [...addresses])
      else found(null, first.address, first.family)
    }
    const askers = asking.get(name)
    if (askers) askers.push(answer)
    else {
      asking.set(name, [answer])
      waiting.push(name)
      run()
    }
  }
}
