// Paths and URL parameters: the tables of docs/interface/requests.md#paths and
// docs/interface/requests.md#url-parameters.

import t from 'tap'
import { refusalText } from '../../src/domain/refusal.js'
import { listParameter, parseParameters, parsePath } from '../../src/http/url.js'

/** The text of the refusal; each refusal here is a BadRequest. */
function refusalOf(result: ReturnType<typeof parseParameters> | ReturnType<typeof parsePath>): string | undefined {
  if (result.ok) return undefined
  return result.refusal.kind === 'BadRequest' ? refusalText(result.refusal) : result.refusal.kind
}

function parameters(query: string) {
  const result = parseParameters(query)
  if (!result.ok) throw new Error(`${query}: ${refusalText(result.refusal)}`)
  return result.value
}

const valueIn = (query: string, name: string) => parameters(query).values.get(name)

const paths: readonly (readonly [path: string, components: readonly string[]])[] = [
  ['/', ['']],
  ['/v2', ['v2']],
  ['/v2/', ['v2']],
  ['/v2//', ['v2', '']],
  ['/V2', ['V2']],
  ['/v2/entities//', ['v2', 'entities', '']],
  ['/v2/entities//attrs', ['v2', 'entities', '', 'attrs']],
  ['/v2/entities/R1//', ['v2', 'entities', 'R1', '']],
  ['/v2/entities/urn:ngsi-ld:Room:1', ['v2', 'entities', 'urn:ngsi-ld:Room:1']],
  // Decoded once, before it is split.
  ['/v2/a%2Fb', ['v2', 'a', 'b']],
  ['/v2%2Fentities', ['v2', 'entities']],
  ['/v2/a%253Cb', ['v2', 'a%3Cb']],
  ['/v2/%25', ['v2', '%']],
  ['/v2/%C3%BC', ['v2', 'ü']],
  ['/v2/%41%7a', ['v2', 'Az']],
  ['/v2/a+b', ['v2', 'a+b']],
  // A percent sign without two hexadecimal digits is a percent sign.
  ['/v2/100%', ['v2', '100%']],
  ['/v2/%zz%4', ['v2', '%zz%4']],
  ['/v2/%4g%41', ['v2', '%4gA']],
  ['/v2/%%41', ['v2', '%A']],
]

t.test('a path is decoded once, split, and loses one slash at its end', async t => {
  for (const [path, components] of paths) t.strictSame(parsePath(path), { ok: true, value: components }, path)
})

t.test('a path with a forbidden character is refused, plain or encoded', async t => {
  for (const character of `<>"'=;()`) {
    const encoded = `%${character.charCodeAt(0).toString(16)}`
    for (const path of [`/v2/entities/a${character}b`, `/v2/entities/a${encoded}b`, `/${encoded}`])
      t.equal(refusalOf(parsePath(path)), 'invalid character in URI', path)
  }
})

t.test('bytes in a path that are not UTF-8 become a character no identifier may have', async t => {
  t.strictSame(parsePath('/v2/%ff%C3'), { ok: true, value: ['v2', '\ufffd\ufffd'] })
})

const refused: readonly (readonly [query: string, description: string])[] = [
  ['q=', 'Empty right-hand-side for URI param /q/'],
  ['q', 'Empty right-hand-side for URI param /q/'],
  ['type=Room&q', 'Empty right-hand-side for URI param /q/'],
  ['foo"', 'Empty right-hand-side for URI param /foo"/'],
  ['options=', 'Empty right-hand-side for URI param /options/'],
  ['limit', 'Empty right-hand-side for URI param /limit/'],
  ['limit=-1', 'Bad pagination limit: /-1/ [must be a positive integer number]'],
  ['limit=1.5', 'Bad pagination limit: /1.5/ [must be a positive integer number]'],
  ['limit=abc', 'Bad pagination limit: /abc/ [must be a positive integer number]'],
  ['limit=+1', 'Bad pagination limit: / 1/ [must be a positive integer number]'],
  ['limit=1e3', 'Bad pagination limit: /1e3/ [must be a positive integer number]'],
  ['limit=%D9%A1', 'Bad pagination limit: /١/ [must be a positive integer number]'],
  ['limit=1001', 'Bad pagination limit: /1001/ [max: 1000]'],
  ['limit=99999999999999999999', 'Bad pagination limit: /99999999999999999999/ [max: 1000]'],
  ['offset=abc', 'Bad pagination offset: /abc/ [must be a decimal number]'],
  ['offset=-1', 'Bad pagination offset: /-1/ [must be a decimal number]'],
  ['offset=1.0', 'Bad pagination offset: /1.0/ [must be a decimal number]'],
  ['options=foo', 'Invalid value for URI param /options/'],
  ['options=count,foo', 'Invalid value for URI param /options/'],
  ['options=count,', 'Invalid value for URI param /options/'],
  ['options=count, keyValues', 'Invalid value for URI param /options/'],
  ['options=keyvalues', 'Invalid value for URI param /options/'],
  ['options=keyValues,values', 'Invalid value for URI param /options/'],
  ['options=unique,keyValues', 'Invalid value for URI param /options/'],
  ['options=values,count,unique', 'Invalid value for URI param /options/'],
  ['options=toString', 'Invalid value for URI param /options/'],
]

t.test('a parameter that cannot be read is refused with the reason', async t => {
  for (const [query, description] of refused) t.equal(refusalOf(parseParameters(query)), description, query)
})

t.test('a query is refused the second time as it was the first', async t => {
  const [first, second] = [parseParameters('limit=x&z'), parseParameters('limit=x&z')]
  t.strictSame(first, second)
})

t.test('every word of options is known', async t => {
  const words = 'count,normalized,append,upsert,forcedUpdate,overrideMetadata,flowControl,skipForwarding'
  const more = 'noAttrDetail,fullCounters,skipInitialNotification,dateCreated,dateModified,explain'
  for (const mode of ['values', 'keyValues', 'unique'])
    t.strictSame([...parameters(`options=${words},${more},${mode}`).options].length, 15, mode)
})

t.test('without parameters a page has 20 elements from the first one', async t => {
  t.match(parameters(''), { limit: 20, offset: 0 })
  t.equal(parameters('').options.size, 0)
})

t.test('limit goes from 0 to 1000', async t => {
  for (const [text, limit] of [['0', 0], ['1', 1], ['007', 7], ['1000', 1000]] as const) // biome-ignore format: a table
    t.equal(parameters(`limit=${text}`).limit, limit, text)
})

t.test('an offset of any length is a number', async t => {
  t.equal(parameters('offset=15').offset, 15)
  t.ok(Number.isSafeInteger(parameters(`offset=${'9'.repeat(400)}`).offset))
})

t.test('names and values are decoded once, and + is a blank', async t => {
  t.equal(valueIn('%74ype=Ro%6Fm', 'type'), 'Room')
  t.equal(valueIn('id=a+b%2Bc', 'id'), 'a b+c')
  t.equal(valueIn('a+b=1', 'a b'), '1')
  t.equal(valueIn('id=%2541', 'id'), '%41')
  t.equal(valueIn('q=date%3E2016-10-01T02:00:00%2B02:00', 'q'), 'date>2016-10-01T02:00:00+02:00')
  t.equal(valueIn('id=%E2%82%AC', 'id'), '€')
})

t.test('an encoded separator is not a separator', async t => {
  t.equal(valueIn('id=a%26b', 'id'), 'a&b')
  t.equal(valueIn('q=a%3D%3D1', 'q'), 'a==1')
})

t.test('only the first equal sign separates name and value', async t => {
  t.equal(valueIn('q=a==1', 'q'), 'a==1')
})

t.test('a percent sign without two hexadecimal digits is a percent sign', async t => {
  t.equal(valueIn('id=100%&type=%zz', 'id'), '100%')
  t.equal(valueIn('id=100%&type=%zz', 'type'), '%zz')
})

t.test('of a repeated parameter the last one counts', async t => {
  t.equal(parameters('limit=1&limit=2').limit, 2)
})

t.test('but each of them is checked', async t => {
  t.equal(refusalOf(parseParameters('id=a%3Cb&id=c')), 'invalid character in URI parameter')
  t.equal(refusalOf(parseParameters('id=&id=c')), 'Empty right-hand-side for URI param /id/')
})

t.test('unknown parameters are kept and change nothing', async t => {
  t.match(parameters('foo=1&__proto__=2'), { limit: 20, offset: 0 })
})

const allowed: readonly (readonly [parameter: string, characters: string])[] = [
  ['q', `<>"'=;()`],
  ['mq', `<>"'=;()`],
  ['idPattern', `<>"'=;()`],
  ['typePattern', `<>"'=;()`],
  ['georel', '=;'],
  ['geometry', '=;'],
  ['coords', ';'],
  ['id', ''],
  ['type', ''],
  ['attrs', ''],
  ['metadata', ''],
  ['orderBy', ''],
  ['options', ''],
  ['unknown', ''],
]

t.test('each parameter may hold the characters that its language needs, and no others', async t => {
  for (const [parameter, characters] of allowed) {
    for (const character of `<>"'=;()`) {
      const expected = characters.includes(character) ? undefined : 'invalid character in URI parameter'
      for (const written of [character, encodeURIComponent(character)])
        t.equal(refusalOf(parseParameters(`${parameter}=a${written}b`)), expected, `${parameter}=a${written}b`)
    }
  }
})

t.test('a parameter name may hold none of the forbidden characters', async t => {
  for (const written of ['%3C', '%3E', '%22', '%27', '%3D', '%3B', '%28', '%29'])
    t.equal(refusalOf(parseParameters(`a${written}b=1`)), 'invalid character in URI parameter', written)
})

t.test('a list is split at commas and nothing is trimmed', async t => {
  t.strictSame(listParameter(parameters('attrs=a,+b,c+,,d'), 'attrs'), ['a', ' b', 'c ', '', 'd'])
  t.equal(listParameter(parameters('id=1'), 'attrs'), undefined)
})

t.test('more different queries than are remembered are all read right', async t => {
  for (let round = 0; round < 2; round++)
    for (let limit = 0; limit <= 600; limit++)
      if (parameters(`limit=${limit}`).limit !== limit) t.fail(`limit=${limit}`)
})
