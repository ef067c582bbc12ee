import t from 'tap'
import { parseDateTime, renderDateTime } from '../../src/domain/date-time.js'
import fc from '../support/properties.js'

const instants: [text: string, rendered: string][] = [
  // The forms that docs/interface/entities.md#dates names as one instant
  ['2016-10-01', '2016-10-01T00:00:00.000Z'],
  ['2016-10-01T00', '2016-10-01T00:00:00.000Z'],
  ['2016-10-01T0000Z', '2016-10-01T00:00:00.000Z'],
  ['2016-10-01T00:00', '2016-10-01T00:00:00.000Z'],
  ['2016-10-01T000000.000', '2016-10-01T00:00:00.000Z'],
  ['2016-10-01T02:00:00+02:00', '2016-10-01T00:00:00.000Z'],
  // Times
  ['2017-06-17T07', '2017-06-17T07:00:00.000Z'],
  ['2017-06-17T07:21', '2017-06-17T07:21:00.000Z'],
  ['2017-06-17T0721', '2017-06-17T07:21:00.000Z'],
  ['2017-06-17T07:21:24', '2017-06-17T07:21:24.000Z'],
  ['2017-06-17T072124', '2017-06-17T07:21:24.000Z'],
  ['2017-06-17T07:21:24.2', '2017-06-17T07:21:24.200Z'],
  ['2017-06-17T07:21:24.238', '2017-06-17T07:21:24.238Z'],
  ['2017-06-17T07:21:24.238999999', '2017-06-17T07:21:24.238Z'],
  ['2017-06-17T072124.23899999999', '2017-06-17T07:21:24.238Z'],
  ['2017-06-17T23:59:59.999Z', '2017-06-17T23:59:59.999Z'],
  // Zones
  ['2017-06-17T07:21:24Z', '2017-06-17T07:21:24.000Z'],
  ['2017-06-17T07Z', '2017-06-17T07:00:00.000Z'],
  ['2017-06-17T07+02', '2017-06-17T05:00:00.000Z'],
  ['2017-06-17T07:21-0230', '2017-06-17T09:51:00.000Z'],
  ['2017-06-17T0721+02:30', '2017-06-17T04:51:00.000Z'],
  ['2017-06-17T00:00:00.123+02:00', '2017-06-16T22:00:00.123Z'],
  ['2017-12-31T23:00-01', '2018-01-01T00:00:00.000Z'],
  ['2017-06-17T07:21-00:00', '2017-06-17T07:21:00.000Z'],
  // Calendar
  ['2016-02-29', '2016-02-29T00:00:00.000Z'],
  ['2000-02-29', '2000-02-29T00:00:00.000Z'],
  ['1969-12-31T23:59:59.9999', '1969-12-31T23:59:59.999Z'],
  ['0000-01-01', '0000-01-01T00:00:00.000Z'],
  ['0099-12-31', '0099-12-31T00:00:00.000Z'],
  ['9999-12-31T23:59:59.999', '9999-12-31T23:59:59.999Z'],
]

const invalid = [
  ['', ' ', '2016', '2016-10', '2016-1-1', '16-10-01', '20161001', 'x016-10-01', '2016/10/01', '2016-10-1x'],
  ['2016-10-01Z', '2016-10-01+02:00', '2016-10-01T', '2016-10-01 00:00', '2016-10-01t00:00', '2016-10-01T00:00z'],
  ['2016-00-01', '2016-13-01', '2016-01-00', '2016-01-32', '2016-04-31', '2017-02-29', '1900-02-29', '2016-02-30'],
  ['2016-10-01T24', '2016-10-01T24:00:00', '2016-10-01T00:60', '2016-10-01T00:00:60', '2016-10-01T0060'],
  ['2016-10-01T0', '2016-10-01T00:', '2016-10-01T00:0', '2016-10-01T000', '2016-10-01T00:00:', '2016-10-01T00000'],
  ['2016-10-01T00:0000', '2016-10-01T0000:00', '2016-10-01T00:00.5', '2016-10-01T0000.5', '2016-10-01T00.5'],
  ['2016-10-01T00:00:00.', '2016-10-01T00:00:00.Z', '2016-10-01T00:00:00,5', '2016-10-01T00:00:00.5x'],
  ['2016-10-01T00:00+', '2016-10-01T00:00+2', '2016-10-01T00:00+020', '2016-10-01T00:00+02:', '2016-10-01T00:00+02:0'],
  ['2016-10-01T00:00+02:000', '2016-10-01T00:00+02000', '2016-10-01T00:00+24', '2016-10-01T00:00+02:60'],
  ['2016-10-01T00:00ZZ', '2016-10-01T00:00Z ', ' 2016-10-01', '2016-10-01T00:00:00.0000000000', '+2016-10-01'],
  ['9999-12-31T23:59:59-01', '0000-01-01T00:00+01', '-001-01-01', '2016-10-01T-1:00', '２０１６-10-01'],
].flat()

t.test('dates, times and zones in every accepted form denote their instant', async t => {
  for (const [text, rendered] of instants) {
    const ms = parseDateTime(text)
    t.equal(ms === undefined ? undefined : renderDateTime(ms), rendered, text)
  }
})

t.test('anything else is not a date, fields out of range included', async t => {
  for (const text of invalid) t.equal(parseDateTime(text), undefined, text)
})

t.test('29 characters are the most that is read', async t => {
  t.equal(parseDateTime('2016-10-01T00:00:00.123+00:00'), Date.UTC(2016, 9, 1) + 123)
  t.equal(parseDateTime('2016-10-01T00:00:00.1234+00:00'), undefined)
})

const anyInstant = fc.integer({ min: Date.parse('0000-01-01T00:00Z'), max: Date.parse('9999-12-31T23:59:59.999Z') })

t.test('a rendered date is read as the same instant', async () => {
  fc.assert(fc.property(anyInstant, ms => parseDateTime(renderDateTime(ms)) === ms))
})

t.test('a zone moves the instant by its offset, in every way of writing', async () => {
  const zone = fc.tuple(fc.constantFrom('+', '-'), fc.integer({ min: 0, max: 23 }), fc.integer({ min: 0, max: 59 }))
  const recent = fc.integer({ min: 0, max: Date.UTC(2100, 0, 1) })
  fc.assert(
    fc.property(recent, zone, fc.boolean(), fc.boolean(), (ms, [sign, hours, minutes], compactTime, compactZone) => {
      const [date, time] = renderDateTime(ms).slice(0, 19).split('T') as [string, string]
      const hh = String(hours).padStart(2, '0')
      const mm = String(minutes).padStart(2, '0')
      const text = `${date}T${compactTime ? time.replaceAll(':', '') : time}${sign}${hh}${compactZone ? '' : ':'}${mm}`
      const offset = (hours * 60 + minutes) * 60_000 * (sign === '+' ? 1 : -1)
      return parseDateTime(text) === Math.floor(ms / 1000) * 1000 - offset
    }),
  )
})

t.test('a day exists exactly when the calendar of the platform has it', async () => {
  const two = fc.integer({ min: 0, max: 40 }).map(n => String(n).padStart(2, '0'))
  const year = fc.integer({ min: 0, max: 9999 }).map(n => String(n).padStart(4, '0'))
  fc.assert(
    fc.property(year, two, two, (yyyy, mm, dd) => {
      const platform = new Date(`${yyyy}-${mm}-${dd}T00:00:00Z`)
      const exists = !Number.isNaN(platform.getTime()) && platform.toISOString().startsWith(`${yyyy}-${mm}-${dd}`)
      return parseDateTime(`${yyyy}-${mm}-${dd}`) === (exists ? platform.getTime() : undefined)
    }),
  )
})
