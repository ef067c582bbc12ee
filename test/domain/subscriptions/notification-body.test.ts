// The contents of a notification about an entity, as tables. The JSON text of an encoded entity, where it may be used,
// gives the same body.

import t from 'tap'
import type { Json } from '../../../src/domain/json.js'
import type { NamedAttribute } from '../../../src/domain/subscriptions/message.js'
import { encodedJson, encodeEntity, isAnswer } from '../../../src/encoded-entity.js'
import { attributeCases, emptyFormatCases, formatCases, metadataCases } from '../../cases/notification-bodies.js'
import { bodyOf, room, roomOf, sent, temperatureBefore } from '../../support/notification-inputs.js'
import fc from '../../support/properties.js'

for (const [attrsFormat, body] of formatCases)
  t.test(`format ${attrsFormat}`, async t => {
    t.equal(bodyOf(sent({ attrsFormat })), body)
  })

for (const [attrsFormat, body] of emptyFormatCases)
  t.test(`format ${attrsFormat}, with no attribute left`, async t => {
    t.equal(bodyOf(sent({ attrsFormat, attrs: ['X'] })), body)
  })

for (const { rule, notification, stored, named, alteration, sent: members } of attributeCases)
  t.test(rule, async t => {
    const facts = {
      ...(stored && { entity: room(stored) }),
      ...(named && { named: named.map((name): NamedAttribute => ({ name, action: 'update' })) }),
      ...(alteration && { alteration }),
    }
    const body = bodyOf(sent({ ...notification, attrsFormat: 'simplifiedKeyValues' }, facts))
    t.equal(body, `{"id":"R1","type":"Room"${members === '' ? '' : `,${members}`}}`)
  })

const metadataIn = (body: string): string[] => {
  const { id, type, ...attributes } = JSON.parse(body)
  return Object.values(attributes).map(one => JSON.stringify((one as { metadata: Json }).metadata))
}

for (const { rule, metadata, sent: members } of metadataCases)
  t.test(rule, async t => {
    const attrs = ['temperature', 'name', 'missing']
    const body = bodyOf(sent({ attrs, covered: true, metadata, attrsFormat: 'simplifiedNormalized' }))
    t.strictSame(metadataIn(body), members)
  })

const builtinMetadata = { attrs: ['temperature'], metadata: ['actionType', 'previousValue'] }
const simplified = { ...builtinMetadata, attrsFormat: 'simplifiedNormalized' }

t.test('an attribute that was created was appended and has no previous value', async t => {
  const named: NamedAttribute[] = [{ name: 'temperature', action: 'append' }]
  t.strictSame(metadataIn(bodyOf(sent(simplified, { named }))), ['{"actionType":{"type":"Text","value":"append"}}'])
})

t.test('an attribute that a request replaced was updated', async t => {
  const named: NamedAttribute[] = [{ name: 'temperature', action: 'append', previous: temperatureBefore }]
  t.match(bodyOf(sent(simplified, { named })), '"actionType":{"type":"Text","value":"update"}')
})

t.test('an attribute whose value the request did not give has no previous value', async t => {
  const named: NamedAttribute[] = [{ name: 'temperature', action: 'update' }]
  t.notMatch(bodyOf(sent(simplified, { named })), 'previousValue')
})

t.test('a previous value is sent also when it equals the new one, with the type that it had', async t => {
  const previous = { ...temperatureBefore, type: 'Celsius', value: 21.5 }
  const named: NamedAttribute[] = [{ name: 'temperature', action: 'update', previous }]
  t.match(bodyOf(sent(simplified, { named })), '"previousValue":{"type":"Celsius","value":21.5}')
})

t.test('metadata of the user with builtin names win', async t => {
  const metadata = { actionType: { type: 'Text', value: 'mine' }, dateModified: { type: 'Number', value: 1 } }
  const entity = room({ temperature: { type: 'Number', value: 1, metadata } })
  const names = { metadata: ['actionType', 'dateModified'], attrsFormat: 'simplifiedNormalized' }
  t.strictSame(metadataIn(bodyOf(sent(names, { entity }))), [JSON.stringify(metadata)])
})

t.test('the deletion of an entity has no action and no previous values', async t => {
  t.strictSame(metadataIn(bodyOf(sent(simplified, { alteration: 'entityDelete' }))), ['{}'])
})

t.test('builtin attributes have no metadata', async t => {
  const attrs = ['dateCreated', 'alterationType', 'servicePath']
  const named: NamedAttribute[] = attrs.map(name => ({ name, action: 'update', previous: temperatureBefore }))
  const metadata = ['dateCreated', 'dateModified', 'actionType', 'previousValue']
  const body = bodyOf(sent({ attrs, metadata, attrsFormat: 'simplifiedNormalized' }, { named }))
  t.strictSame(metadataIn(body), ['{}', '{}', '{}'])
})

t.test('a covered attribute is null of type None, in the legacy format too', async t => {
  const settings = { attrs: ['X'], covered: true }
  t.match(bodyOf(sent(settings)), '"X":{"type":"None","value":null,"metadata":{}}')
  t.match(bodyOf(sent({ ...settings, attrsFormat: 'legacy' })), '[{"name":"X","type":"None","value":null}]')
})

t.test('an ignored location is sent as it is, without the metadata that ignores it', async t => {
  const value = { type: 'Feature', geometry: { type: 'Point', coordinates: [1, 2] } }
  const metadata = { ignoreType: { type: 'Boolean', value: true } }
  const entity = room({ temperature: { type: 'geo:json', value, metadata } })
  const body = bodyOf(sent({ metadata: ['actionType'], attrsFormat: 'simplifiedNormalized' }, { entity }))
  t.strictSame(JSON.parse(body).temperature.value, value)
  t.notMatch(body, 'ignoreType')
})

for (const attrsFormat of ['normalized', 'simplifiedNormalized'])
  t.test(`the text that is given for an entity is sent as it is: ${attrsFormat}`, async t => {
    const normalizedText = '{"id":"given"}'
    t.match(bodyOf(sent({ attrsFormat }, { normalizedText })), '{"id":"given"}')
  })

for (const settings of [
  { attrs: ['name'] },
  { attrs: ['*', 'servicePath'] },
  { exceptAttrs: ['name'] },
  { onlyChangedAttrs: true },
  { metadata: ['*', 'actionType'] },
  { attrsFormat: 'keyValues' },
  { attrsFormat: 'values' },
  { attrsFormat: 'legacy' },
])
  t.test(`a given text does not replace the body for a subscription with ${JSON.stringify(settings)}`, async t => {
    t.notMatch(bodyOf(sent(settings, { normalizedText: '{"id":"given"}' })), 'given')
  })

const names = fc.string({ unit: 'grapheme', minLength: 1 }).filter(name => name !== 'id' && name !== 'type')
const values = fc.dictionary(names, fc.jsonValue() as fc.Arbitrary<Json>, { maxKeys: 5 })

t.test('bodies are JSON in every format, with any names and values', async t => {
  const isJson = fc.property(values, values => {
    const entity = roomOf(values)
    const named = Object.entries(values).map(
      ([name, value]): NamedAttribute => ({ name, action: 'update', previous: { ...temperatureBefore, value } }),
    )
    for (const [attrsFormat] of formatCases)
      for (const metadata of [[], ['*', 'previousValue', 'dateCreated']])
        JSON.parse(bodyOf(sent({ attrsFormat, metadata }, { entity, named })))
  })
  t.doesNotThrow(() => fc.assert(isJson))
})

t.test('the text of an encoded entity gives the same message as the entity', async t => {
  fc.assert(
    fc.property(values, values => {
      const entity = roomOf(values)
      const encoded = encodeEntity(entity, '')
      if (!isAnswer(encoded)) return
      const normalizedText = encodedJson(encoded).toString()
      t.equal(bodyOf(sent({}, { entity, normalizedText })), bodyOf(sent({}, { entity })))
    }),
  )
})

t.test('long lists cost no more than their length', async t => {
  const many = Array.from({ length: 5_000 }, (_, n) => `a${n}`)
  const entity = roomOf(Object.fromEntries(many.map(name => [name, 1])))
  const none = many.map(name => `no-${name}`)
  const begun = process.cpuUsage()
  t.equal(bodyOf(sent({ exceptAttrs: [...none, ...many], attrsFormat: 'values' }, { entity })).endsWith('[[]]}'), true)
  const nulls = JSON.parse(bodyOf(sent({ attrs: none, covered: true, attrsFormat: 'values' }, { entity }))).data[0]
  t.equal(nulls.length, none.length)
  t.ok(process.cpuUsage(begun).user < 5_000_000, 'far from the square of it, which takes many times that')
})
