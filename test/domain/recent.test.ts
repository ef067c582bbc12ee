// The latest of many texts: texts in use stay, others are forgotten, and there are never more than twice as many as
// should be kept.

import t from 'tap'
import { ownText, Recent } from '../../src/domain/recent.js'

t.test('a stored key is found, and a second value replaces the first', t => {
  const recent = new Recent<number>(2)
  recent.set('a', 1)
  recent.set('a', 2)
  t.equal(recent.get('a'), 2)
  t.equal(recent.get('b'), undefined)
  t.equal(recent.size, 1)
  t.end()
})

t.test('of many keys the latest are kept, and keys in use stay', t => {
  const forgotten: string[] = []
  const recent = new Recent<number>(10, key => forgotten.push(key))
  recent.set('used', 0)
  for (let n = 0; n < 1000; n++) {
    recent.set(`k${n}`, n)
    t.equal(recent.get('used'), 0)
    t.ok(recent.size <= 20)
  }
  for (let n = 991; n < 1000; n++) t.equal(recent.get(`k${n}`), n)
  t.equal(recent.get('k0'), undefined)
  t.notOk(forgotten.includes('used'))
  t.equal(new Set(forgotten).size, forgotten.length)
  t.equal(forgotten.length + recent.size, 1001, 'each is known, or was told to be forgotten')
  t.equal([...recent.entries()].length, recent.size)
  t.end()
})

t.test('a copy of a text equals it', t => {
  for (const text of ['', 'a', 'a text that was cut out of a longer one', 'sécateur, twelve'])
    t.equal(ownText(text), text)
  t.end()
})
