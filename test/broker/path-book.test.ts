// What an owner knows of service paths: all of a tenant's, or that it does not know; and no more than so much memory.

import t from 'tap'
import { announcedKept, PathBook, tenantsKept } from '../../src/broker/path-book.js'
import { fewPathsLengthMax, fewPathsMax } from '../../src/domain/limits.js'

function complete(): PathBook {
  const book = new PathBook()
  book.isComplete = true
  return book
}

const few = (book: PathBook, tenant: string): readonly string[] | undefined => {
  const paths = book.few(tenant)
  return paths && [...paths].sort()
}

t.test('of few paths all are known', t => {
  const book = complete()
  for (const path of ['/b', '/a', '/b']) book.hear('t', path)
  t.strictSame(few(book, 't'), ['/a', '/b'])
  t.strictSame(few(book, 'other'), [])
  t.end()
})

t.test('nothing is known before all others have told what they have', t => {
  const book = new PathBook()
  book.hear('t', '/a')
  t.equal(few(book, 't'), undefined)
  t.end()
})

t.test('of many paths, or long ones, it is known that they are many', t => {
  const book = complete()
  for (let n = 0; n <= fewPathsMax; n++) book.hear('many', `/p${n}`)
  book.hear('long', '/a')
  book.hear('long', `/${'x'.repeat(fewPathsLengthMax)}`)
  t.equal(few(book, 'many'), undefined)
  t.equal(few(book, 'long'), undefined)
  const other = complete()
  for (const [tenant, paths] of book.all) other.hearAll(tenant, paths)
  t.equal(few(other, 'many'), undefined, 'which another owner is told')
  t.end()
})

t.test('of a forgotten tenant nothing is known, whatever is heard of it later', t => {
  const book = complete()
  book.hear('first', '/a')
  for (let n = 0; n < 3 * tenantsKept; n++) book.hear(`t${n}`, '/')
  book.hear('first', '/b')
  t.equal(few(book, 'first'), undefined)
  t.strictSame(few(book, `t${3 * tenantsKept - 1}`), ['/'])
  t.end()
})

t.test('a tenant that is asked for is not forgotten', t => {
  const book = complete()
  book.hear('used', '/a')
  for (let n = 0; n < 3 * tenantsKept; n++) {
    book.hear(`t${n}`, '/')
    book.few('used')
  }
  t.strictSame(few(book, 'used'), ['/a'])
  t.end()
})

t.test('tenants that come and go take no more memory than is said', t => {
  const book = complete()
  for (let n = 0; n < 80_000; n++) {
    book.hear(`t${n}`, '/')
    book.noteAnnounced(`t${n}`, '/')
  }
  t.ok(book.size.tenants <= 2 * tenantsKept)
  t.ok(book.size.announced <= 2 * announcedKept)
  t.end()
})

t.test('another owner is told of a path that is announced, even if its tenant was forgotten', t => {
  const book = complete()
  book.hear('first', '/a')
  book.noteAnnounced('first', '/a')
  for (let n = 0; n < 3 * tenantsKept; n++) book.hear(`t${n}`, '/')
  t.ok(book.all.some(([tenant, [path]]) => tenant === 'first' && path === '/a'))
  t.end()
})
