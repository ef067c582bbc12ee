// Proofs that were shown lately: only the very text is found, also among texts that share its slot and its end.

import t from 'tap'
import { newKey } from '../../src/access/keys.js'
import { RecentProofs } from '../../src/access/recent-proofs.js'

t.test('a text is found with its value until it is forgotten', async t => {
  const proofs = new RecentProofs<number>()
  const keys = Array.from({ length: 50 }, newKey)
  for (const [nth, key] of keys.entries()) {
    proofs.set(key, nth)
    t.equal(proofs.get(`${key} `.slice(0, -1)), nth)
  }
  proofs.clear()
  t.ok(keys.every(key => proofs.get(key) === undefined))
})

t.test('a text that differs anywhere is not found', async t => {
  const proofs = new RecentProofs<number>()
  const key = newKey()
  proofs.set(key, 1)
  for (let at = 0; at < key.length; at++) {
    const other = key[at] === 'A' ? 'B' : 'A'
    t.equal(proofs.get(key.slice(0, at) + other + key.slice(at + 1)), undefined)
  }
  for (const text of ['', 'o', key.slice(1), `${key}A`, `A${key}`, key.slice(0, -1), key.slice(-10)])
    t.equal(proofs.get(text), undefined, text)
})

t.test('of texts in one slot the latest is found, and memory is bounded', async t => {
  const proofs = new RecentProofs<string>()
  const [one, other] = ['first-text-', 'second-text-'].map(text => `${text}0123456789`) as [string, string]
  proofs.set(one, 'one')
  t.equal(proofs.get(other), undefined)
  proofs.set(other, 'other')
  t.strictSame([proofs.get(one), proofs.get(other)], [undefined, 'other'])
  const long = 'A'.repeat(4097)
  proofs.set(long, 'long')
  proofs.set('short', 'short')
  t.strictSame([proofs.get(long), proofs.get('short')], [undefined, undefined])
  const keys = Array.from({ length: 5_000 }, newKey)
  for (const key of keys) proofs.set(key, key)
  t.ok(keys.filter(key => proofs.get(key) === key).length <= 1024)
})
