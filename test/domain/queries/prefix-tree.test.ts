import t from 'tap'
import { PrefixTree } from '../../../src/domain/queries/prefix-tree.js'
import fc from '../../support/properties.js'

const valuesFor = (tree: PrefixTree<string>, text: string): string[] => {
  const found: string[] = []
  tree.visit(text, value => found.push(value))
  return found
}

t.test('a text finds the values of all its beginnings, the shortest first', async t => {
  const tree = new PrefixTree<string>()
  for (const prefix of ['room12', 'room', 'rack', '', 'room1', 'r']) tree.set(prefix, `<${prefix}>`)
  t.strictSame(valuesFor(tree, 'room123'), ['<>', '<r>', '<room>', '<room1>', '<room12>'])
  t.strictSame(valuesFor(tree, 'room'), ['<>', '<r>', '<room>'])
  t.strictSame(valuesFor(tree, 'roo'), ['<>', '<r>'])
  t.strictSame(valuesFor(tree, 'x'), ['<>'])
})

t.test('a value takes the place of the one before', async t => {
  const tree = new PrefixTree<string>()
  tree.set('ab', 'old')
  tree.set('ab', 'new')
  t.strictSame(valuesFor(tree, 'abc'), ['new'])
})

const key = fc.string({ unit: fc.constantFrom('a', 'b', 'é'), maxLength: 5 })
const act = fc.record({ kind: fc.constantFrom('set', 'set', 'delete'), key })

t.test('after any additions and removals, a tree is a map that is searched for beginnings', async t => {
  fc.assert(
    fc.property(fc.array(act, { maxLength: 60 }), fc.array(key, { minLength: 5, maxLength: 5 }), (acts, texts) => {
      const tree = new PrefixTree<string>()
      const map = new Map<string, string>()
      for (const [at, { kind, key }] of acts.entries()) {
        if (kind === 'set') {
          tree.set(key, `${at}`)
          map.set(key, `${at}`)
        } else {
          tree.delete(key)
          map.delete(key)
        }
      }
      for (const text of [...texts, ...map.keys()]) {
        const beginnings = [...map.keys()].filter(one => text.startsWith(one)).sort((a, b) => a.length - b.length)
        if (String(valuesFor(tree, text)) !== String(beginnings.map(one => map.get(one)))) throw new Error(text)
        if (tree.get(text) !== map.get(text)) throw new Error(`get ${text}`)
      }
    }),
    { numRuns: 2000 },
  )
  t.pass()
})

t.test('a tree that has been emptied holds nothing', async t => {
  const tree = new PrefixTree<string>()
  const prefixes = Array.from({ length: 500 }, (_, n) => `urn:x:${(n * 7919) % 500}`)
  for (const prefix of prefixes) tree.set(prefix, prefix)
  for (const prefix of prefixes) tree.delete(prefix)
  t.notMatch(JSON.stringify(tree), /urn/)
  t.strictSame(tree, new PrefixTree<string>())
})
