// Lookups: few at a time, each name once at a time.

import type { LookupAddress } from 'node:dns'
import t from 'tap'
import { sharedLookup } from '../../../src/deliver/sockets/sockets.js'

type Answer = (error: NodeJS.ErrnoException | null, addresses: readonly LookupAddress[]) => void

/** A resolver that answers when the test calls `answer`. */
function fakeResolver() {
  const asked: string[] = []
  const answers = new Map<string, Answer>()
  const lookup = sharedLookup((name, answer) => {
    asked.push(name)
    answers.set(name, answer)
  })
  const results: string[] = []
  const ask = (name: string): void =>
    lookup(name, {}, (error, address, family) => {
      results.push(error ? `${name} ${error.message}` : `${name} ${address} ${family}`)
    })
  const answer = (name: string, ...addresses: LookupAddress[]): void => answers.get(name)!(null, addresses)
  return { asked, answers, results: results, lookup, ask, answer }
}

const four: LookupAddress = { address: '10.0.0.1', family: 4 }
const six: LookupAddress = { address: '::1', family: 6 }

t.test('callers that ask for the same name share the answer', async t => {
  const { ask, answer, asked, results } = fakeResolver()
  ask('a')
  ask('a')
  t.same(asked, ['a'])
  answer('a', six, four)
  t.same(results, ['a ::1 6', 'a ::1 6'])
  ask('a')
  t.same(asked, ['a', 'a'], 'and is not kept longer')
})

t.test('two names are looked up at a time', async t => {
  const { ask, answer, answers, asked, results } = fakeResolver()
  for (const name of ['a', 'b', 'c', 'd']) ask(name)
  t.same(asked, ['a', 'b'])
  answer('b', four)
  t.same(asked, ['a', 'b', 'c'])
  answers.get('a')!(new Error('not found'), [])
  t.same(asked, ['a', 'b', 'c', 'd'])
  t.same(results, ['b 10.0.0.1 4', 'a not found'])
})

t.test('a caller that wants all addresses gets all, and no address is an error', async t => {
  const { lookup, answer } = fakeResolver()
  const got: unknown[] = []
  lookup('a', { all: true }, (error, addresses) => got.push(error ?? addresses))
  answer('a', six, four)
  lookup('b', {}, error => got.push(error?.message))
  answer('b')
  t.same(got, [[six, four], 'no address for b'])
})
