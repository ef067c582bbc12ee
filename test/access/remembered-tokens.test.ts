// The memory of verified tokens: how many, for how long, and which ones go.

import t from 'tap'
import { type Remembered, RememberedTokens } from '../../src/access/remembered-tokens.js'

const entry = (endsMs = 1_000): Remembered => ({ endsMs, isUsed: false })

t.test('it forgets a token when it ends', async t => {
  const tokens = new RememberedTokens(10)
  const one = entry()
  tokens.set('one', one)
  t.equal(tokens.get('one', 999), one)
  t.equal(tokens.get('one', 1_000), undefined)
  t.equal(tokens.size, 0)
})

t.test('it never has more than it may', async t => {
  const tokens = new RememberedTokens(100)
  for (let number = 0; number < 1_000; number++) {
    tokens.set(`token ${number}`, entry())
    if (tokens.size > 100) return t.fail(`${tokens.size} tokens`)
  }
  t.equal(tokens.size, 100)
  t.ok(tokens.get('token 999', 0))
})

t.test('tokens in use stay, and those that were seen once go', async t => {
  const tokens = new RememberedTokens(100)
  for (let number = 0; number < 50; number++) tokens.set(`used ${number}`, entry())
  for (let number = 0; number < 10_000; number++) {
    if (!tokens.get(`used ${number % 50}`, 0)) return t.fail(`used ${number % 50} was forgotten`)
    tokens.set(`once ${number}`, entry())
  }
})

t.test('a token that is set again is there once', async t => {
  const tokens = new RememberedTokens(2)
  tokens.set('a', entry(1))
  tokens.set('b', entry())
  tokens.set('a', entry(2_000))
  t.equal(tokens.size, 2)
  t.equal(tokens.get('a', 1_500)?.endsMs, 2_000)
  t.ok(tokens.get('b', 0))
})

t.test('it forgets what does not pass', async t => {
  const tokens = new RememberedTokens(10)
  for (let number = 0; number < 10; number++) tokens.set(String(number), entry(number))
  tokens.keepOnly(({ endsMs }) => endsMs >= 7)
  t.equal(tokens.size, 3)
  t.equal(tokens.get('6', 0), undefined)
})

t.test('making room is bounded when all are in use', async t => {
  const tokens = new RememberedTokens(10_000)
  for (let number = 0; number < 10_000; number++) tokens.set(String(number), entry())
  for (let number = 0; number < 10_000; number++) tokens.get(String(number), 0)
  tokens.set('new', entry())
  t.equal(tokens.size, 10_000)
  t.ok(tokens.get('new', 0))
})
