// Registrations that are refused, and the texts of the refusals, written down once more from the specification
// (docs/interface/errors.md#registrations-and-providers). Every text belongs to a 400 `BadRequest` unless the table
// says otherwise. Each row holds for POST and PATCH alike, except those of `incomplete`.
//
// The comment of a table of parts names the place of its JSON in an otherwise valid body.

import type { Refused } from './subscription-refusals.js'

const D = '"dataProvided":{"entities":[{"id":"E"}]}'
const P = '"provider":{"http":{"url":"http://h"}}'

/** Whole bodies that only a POST refuses. */
export const incomplete: readonly Refused[] = [
  ['no dataProvided', `{${P}}`, 'the field /dataProvided/ is missing in payload'],
  ['only unknown fields', '{"foo":1}', 'the field /dataProvided/ is missing in payload'],
  ['no provider', `{${D}}`, 'the field /provider/ is missing in payload'],
]

/** Whole bodies. */
export const bodies: readonly Refused[] = [
  ['no JSON', '{"a":', 'ParseError Errors found in incoming JSON buffer'],
  ['array', '[]', 'not a JSON object'],
  ['string', '"x"', 'not a JSON object'],
  ['null', 'null', 'not a JSON object'],
  ['no fields', '{}', 'empty payload'],
  ['a key twice', `{${D},${P},"status":"active","status":"inactive"}`, 'duplicated tag-name: /status/ in path: /'],
  [
    'a key twice below',
    `{${D},"provider":{"http":{"url":"http://h","url":"http://i"}}}`,
    'duplicated tag-name: /url/ in path: /provider/http/',
  ],
]

/** One member of the body. */
export const simpleFields: readonly Refused[] = [
  ['description is a number', '"description":1', 'invalid description'],
  ['description is null', '"description":null', 'invalid description'],
  ['description too long', `"description":"${'a'.repeat(1025)}"`, 'max description length exceeded'],
  ['description with a bracket', '"description":"a(b"', 'forbidden characters in description'],
  ['expires is a number', '"expires":1', 'expires is not a string'],
  ['expires is null', '"expires":null', 'expires is not a string'],
  ['expires is no date', '"expires":"tomorrow"', 'the field /expires/ has an invalid format'],
  ['status is a number', '"status":1', '/status/ must be a string'],
  ['status is null', '"status":null', '/status/ must be a string'],
  ['status unknown', '"status":"foobar"', 'invalid value for /status/'],
  ['status oneshot', '"status":"oneshot"', 'invalid value for /status/'],
  ['status empty', '"status":""', 'invalid value for /status/'],
]

/** The member `dataProvided`. */
export const provided: readonly Refused[] = [
  ['a string', '"x"', '/dataProvided/ must be a JSON object'],
  ['null', 'null', '/dataProvided/ must be a JSON object'],
  ['an array', '[]', '/dataProvided/ must be a JSON object'],
  ['empty', '{}', '/dataProvided/ is empty'],
  ['entities is an object', '{"entities":{}}', '/entities/ is not an array'],
  ['another pattern', '{"entities":[{"idPattern":"E.*"}]}', 'NotImplemented Unsupported idPattern'],
  [
    'a pattern of the type',
    '{"entities":[{"id":"E","typePattern":".*"}]}',
    'NotImplemented typePattern is not supported',
  ],
  [
    'both patterns',
    '{"entities":[{"id":"E","typePattern":".*"},{"idPattern":".+"}]}',
    'NotImplemented Unsupported idPattern',
  ],
  [
    'a pattern before a mistake',
    '{"entities":[{"idPattern":"E.*"},{}]}',
    '/entities/ vector item does not have /id/ nor /idPattern/',
  ],
  ['a pattern and bad attrs', '{"entities":[{"idPattern":"E.*"}],"attrs":1}', 'NotImplemented Unsupported idPattern'],
]

/** The member `provider`. */
export const providers: readonly Refused[] = [
  ['a string', '"x"', '/provider/ must be a JSON object'],
  ['null', 'null', '/provider/ must be a JSON object'],
  ['empty', '{}', '/provider/ empty'],
  ['no http', '{"legacyForwarding":true}', '/provider/ must contain a field /http/'],
  ['http is a string', '{"http":"http://h"}', '/http/ must be a JSON object'],
  ['http is null', '{"http":null}', '/http/ must be a JSON object'],
  ['no url', '{"http":{}}', '/http/ must contain a field /url/'],
  ['url is a number', '{"http":{"url":1}}', '/url/ field of /http/ must be a JSON string'],
  ['url is null', '{"http":{"url":null}}', '/url/ field of /http/ must be a JSON string'],
  ['url is empty', '{"http":{"url":""}}', '/url/ field of /http/ cannot be the empty string'],
  ['url without scheme', '{"http":{"url":"localhost:1026/v2"}}', '/url/ field of /http/ is invalid'],
  ['url of MQTT', '{"http":{"url":"mqtt://h"}}', '/url/ field of /http/ is invalid'],
  ['url with a bracket', '{"http":{"url":"http://h/(a"}}', '/url/ field of /http/ is invalid'],
  [
    'mode is a number',
    '{"http":{"url":"http://h"},"supportedForwardingMode":1}',
    '/supportedForwardingMode/ must be a JSON string',
  ],
  [
    'mode unknown',
    '{"http":{"url":"http://h"},"supportedForwardingMode":"xxxx"}',
    'invalid value of /supportedForwardingMode/',
  ],
  [
    'mode of all objects',
    '{"http":{"url":"http://h"},"supportedForwardingMode":"toString"}',
    'invalid value of /supportedForwardingMode/',
  ],
  [
    'legacy is a string',
    '{"http":{"url":"http://h"},"legacyForwarding":"true"}',
    'the field /legacyForwarding/ must be a boolean',
  ],
]

/** Mistakes in a body, in the order of the checks: the refusal is about the first mistake. */
export const inOrder: readonly (readonly [member: string, bad: string, description: string])[] = [
  ['description', '1', 'invalid description'],
  ['dataProvided', '{}', '/dataProvided/ is empty'],
  ['provider', '{}', '/provider/ empty'],
  ['expires', '1', 'expires is not a string'],
  ['status', '1', '/status/ must be a string'],
]
