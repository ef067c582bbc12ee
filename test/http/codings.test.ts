// The coding that an answer gets, and the coding that a request has.

import t from 'tap'
import { answerCoding, preferredCoding, requestCoding, varying } from '../../src/http/codings.js'

const preferences: Readonly<Record<string, 'gzip' | 'br' | undefined>> = {
  '': undefined,
  gzip: 'gzip',
  'x-gzip': 'gzip',
  GZip: 'gzip',
  br: 'br',
  'gzip, deflate, br, zstd': 'br',
  'gzip, deflate': 'gzip',
  'gzip;q=1.0, br;q=0.9': 'gzip',
  'gzip; q=0.8 , br ;q=0.9': 'br',
  '*': 'br',
  'br;q=0, *': 'gzip',
  '*;q=0, gzip;q=0.001': 'gzip',
  'gzip;q=0, br;q=0': undefined,
  identity: undefined,
  'identity;q=0': undefined,
  'identity;q=0, gzip': 'gzip',
  'identity, gzip;q=0.5': undefined,
  'identity;q=0.5, gzip;q=0.5': 'gzip',
  'deflate, zstd': undefined,
  'gzip;q=2': undefined,
  'gzip;q=-1': undefined,
  'gzip;q=0.1234': undefined,
  'gzip;q': undefined,
  'gzip;level=9': undefined,
  'gzip;q=1;q=0': undefined,
  ',,gzip,,': 'gzip',
  'gzip br': undefined,
}

const given = (headers: Readonly<Record<string, readonly string[]>>) => ({
  header: (name: string) => headers[name]?.[0] ?? '',
  headerTimes: (name: string) => headers[name]?.length ?? 0,
})

t.test(
  'the coding with the highest weight is taken, ours at a tie, and none that the client does not take',
  async t => {
    for (const [header, coding] of Object.entries(preferences)) t.equal(preferredCoding(header), coding, header)
  },
)

t.test('an answer is not coded where the header is given twice or nothing may be transformed', async t => {
  t.equal(answerCoding(given({ 'accept-encoding': ['gzip'] })), 'gzip')
  t.equal(answerCoding(given({ 'accept-encoding': ['gzip', 'gzip;q=0'] })), undefined)
  t.equal(answerCoding(given({ 'accept-encoding': ['gzip'], 'cache-control': ['max-age=0, No-Transform'] })), undefined)
  t.equal(answerCoding(given({ 'accept-encoding': ['gzip'], 'cache-control': ['no-transformer'] })), 'gzip')
})

t.test('a body has one coding that is known, or none', async t => {
  const coding = (...values: string[]) => requestCoding(given({ 'content-encoding': values }), true)
  t.same(coding(), { ok: true, value: undefined })
  t.same(coding(''), { ok: true, value: undefined })
  t.same(coding('identity'), { ok: true, value: undefined })
  t.same(coding('GZIP'), { ok: true, value: 'gzip' })
  t.same(coding('x-gzip'), { ok: true, value: 'gzip' })
  t.same(coding('br'), { ok: true, value: 'br' })
  for (const values of [['deflate'], ['gzip, gzip'], ['gzip', 'gzip'], ['', 'gzip'], ['gzip;q=1'], ['zstd']])
    t.match(coding(...values), { ok: false, refusal: { code: 'contentCoding' } }, values.join(' and '))
  const off = requestCoding(given({ 'content-encoding': ['gzip'] }), false)
  t.match(off, { ok: false, refusal: { code: 'contentCoding', supported: 'identity' } })
})

t.test('Vary gets one more name, and stays one header', async t => {
  t.same(varying(['A', 'b']), ['A', 'b', 'Vary', 'Accept-Encoding'])
  t.same(varying(['Vary', 'Origin', 'A', 'Vary']), ['Vary', 'Origin, Accept-Encoding', 'A', 'Vary'])
})
