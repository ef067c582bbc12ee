// The comparison of a conformance run with the kept list.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { root } from '../support/project.js'
import { clusterFaultsOf, type Deviation, faultsOf, judge, updated } from './verdict.js'

const kept = { semantic: ['a', 'b', 'z'], exact: ['a'] }
const outcome = (id: string, semantic: boolean, exact: boolean) => ({ id, semantic, exact })
const deviation = { case: 'b', line: 'A sentence.', why: 'The case says the opposite.' }

t.test('a listed case that fails is lost, a case that never passed is not', async t => {
  const { lost } = judge(kept, [outcome('a', true, false), outcome('c', false, false)], [])
  t.strictSame(lost, { semantic: [], exact: ['a'] })
})

t.test('a listed case that was not run is not judged', async t => {
  t.strictSame(judge(kept, [], []).lost, { semantic: [], exact: [] })
})

t.test('a deviation is not judged', async t => {
  t.strictSame(judge(kept, [outcome('b', false, false)], [deviation]).lost.semantic, [])
})

t.test('a deviation may be of one level, and is judged at the other', async t => {
  const both = { semantic: ['b'], exact: ['b'] }
  const { lost } = judge(both, [outcome('b', false, false)], [{ ...deviation, level: 'exact' }])
  t.strictSame(lost, { semantic: ['b'], exact: [] })
})

t.test('an update only adds; with force it also removes', async t => {
  const verdict = judge(kept, [outcome('c', true, false), outcome('a', false, false)], [])
  t.strictSame(updated(kept, verdict, false), { semantic: ['a', 'b', 'c', 'z'], exact: ['a'] })
  t.strictSame(updated(kept, verdict, true), { semantic: ['b', 'c', 'z'], exact: [] })
})

t.test('a deviation needs its sentence and its reason, nothing else, and must not be listed as passing', async t => {
  t.strictSame(faultsOf([{ ...deviation, case: 'q' }], kept), [])
  t.match(faultsOf([{ case: 'q', line: '', why: 'w', note: 'n' }], kept), [/has no line/, /has note/])
  t.match(faultsOf([deviation], kept), [/listed as passing/])
})

t.test('a deviation of clusters is about a case that one node passes', async t => {
  t.strictSame(clusterFaultsOf([deviation], kept), [])
  t.match(clusterFaultsOf([{ ...deviation, case: 'q' }, { case: 'b' }], kept), [/needs no excuse/, /no line/, /no why/])
})

t.test('a deviation of clusters quotes a sentence of the page about clusters', async t => {
  const read = (file: string): string => readFileSync(join(root, file), 'utf8')
  const page = read('docs/operations/cluster.md').replaceAll(/\s+/g, ' ')
  const deviations: readonly Deviation[] = JSON.parse(read('test/conformance/cluster-deviations.json'))
  for (const { line } of deviations) t.ok(page.includes(line), line)
})
