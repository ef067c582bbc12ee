// Registrations as JSON: what is shown, and what is stored.

import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import {
  decodeRegistration,
  encodeRegistration,
  renderRegistration,
} from '../../../src/domain/providers/registration-json.js'
import { registration, registrations } from '../../support/registrations.js'

t.test('a registration is shown with all that has a default, in the order of the interface', async t => {
  const plain = registration(
    '{"provider":{"http":{"url":"http://h"}},"dataProvided":{"entities":[{"type":"T","id":"E"}]}}',
  )
  t.equal(
    renderRegistration(plain),
    `{"id":"${plain.id}","dataProvided":{"entities":[{"id":"E","type":"T"}],"attrs":[]},` +
      '"provider":{"http":{"url":"http://h"},"supportedForwardingMode":"all","legacyForwarding":false},"status":"active"}',
  )
})

t.test('what was given is shown, and an expired registration is not called so', async t => {
  const full = registration(
    '{"status":"inactive","expires":"2001-01-01T00:00:00Z","description":"d","provider":{"legacyForwarding":true,' +
      '"supportedForwardingMode":"none","http":{"url":"http://h"}},"dataProvided":{"attrs":["b","a"],"entities":[{"type":"T","idPattern":".*"}]}}',
  )
  t.equal(
    renderRegistration(full),
    `{"id":"${full.id}","description":"d","expires":"2001-01-01T00:00:00.000Z",` +
      '"dataProvided":{"entities":[{"idPattern":".*","type":"T"}],"attrs":["b","a"]},' +
      '"provider":{"http":{"url":"http://h"},"supportedForwardingMode":"none","legacyForwarding":true},"status":"inactive"}',
  )
})

t.test('a registration comes out of its stored text as it went in', async () => {
  fc.assert(
    fc.property(registrations, one => {
      assert.deepEqual(decodeRegistration(encodeRegistration(one)), one)
    }),
  )
})

t.test('a text of another version is not read', async t => {
  const text = encodeRegistration(registration('{"provider":{"http":{"url":"http://h"}},"dataProvided":{"attrs":[]}}'))
  t.throws(
    () => decodeRegistration(text.replace('"version":1', '"version":2')),
    /has version 2, and this release reads version 1/,
  )
})
