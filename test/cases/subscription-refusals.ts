// Subscriptions that are refused, and the texts of the refusals, written down once more from the specification
// (docs/interface/errors.md#subscriptions). Every text belongs to a 400; `BadRequest` unless the table says
// `ParseError`. Each row holds for POST and PATCH alike.
//
// The comment of a table of parts names the place of its JSON in an otherwise valid body.

// biome-ignore-all lint/suspicious/noTemplateCurlyInString: macros of notifications look like templates

export type Refused = readonly [what: string, json: string, description: string]

const a = (count: number): string => 'a'.repeat(count)

/** Whole bodies that only a POST refuses. */
export const incomplete: readonly Refused[] = [
  ['no subject', '{"notification":{"http":{"url":"http://h"}}}', 'no subject for subscription specified'],
  ['no notification', '{"subject":{"entities":[{"id":"E"}]}}', 'no notification for subscription specified'],
  ['only unknown fields', '{"foo":1}', 'no subject for subscription specified'],
]

/** Whole bodies (docs/interface/errors.md#subscriptions). */
export const bodies: readonly Refused[] = [
  ['array', '[]', 'ParseError Errors found in incoming JSON buffer'],
  ['string', '"x"', 'ParseError Errors found in incoming JSON buffer'],
  ['null', 'null', 'ParseError Errors found in incoming JSON buffer'],
  ['no fields', '{}', 'empty payload'],
]

/** One member of the body (docs/interface/errors.md#subscriptions). */
export const simpleFields: readonly Refused[] = [
  ['description is a number', '"description":1', 'description is not a string'],
  ['description is null', '"description":null', 'description is not a string'],
  ['description too long', `"description":"${a(1025)}"`, 'max description length exceeded'],
  [
    'description too long beyond the basic plane',
    `"description":"${'😀'.repeat(1025)}"`,
    'max description length exceeded',
  ],
  ['description with a bracket', '"description":"a(b"', 'forbidden characters in description'],
  ['expires is a number', '"expires":1', 'expires is not a string'],
  ['expires is null', '"expires":null', 'expires is not a string'],
  ['expires is no date', '"expires":"tomorrow"', 'expires has an invalid format'],
  ['expires with a hole', '"expires":"205604-05T14:00:00.00Z"', 'expires has an invalid format'],
  ['status is a number', '"status":4', 'status is not a string'],
  ['status is null', '"status":null', 'status is not a string'],
  ['status unknown', '"status":"foobar"', 'status is not valid: it has to be either active, inactive or oneshot'],
  ['status expired', '"status":"expired"', 'status is not valid: it has to be either active, inactive or oneshot'],
  ['status failed', '"status":"failed"', 'status is not valid: it has to be either active, inactive or oneshot'],
  [
    'status of all objects',
    '"status":"toString"',
    'status is not valid: it has to be either active, inactive or oneshot',
  ],
  ['throttling is a string', '"throttling":"5"', 'throttling is not an int'],
  ['throttling is null', '"throttling":null', 'throttling is not an int'],
  ['throttling with a fraction', '"throttling":1.5', 'throttling is not an int'],
  ['throttling beyond 64 bits', '"throttling":10000000000000000000', 'throttling is not an int'],
]

/** The member `subject` (docs/interface/errors.md#subscriptions). */
export const subjects: readonly Refused[] = [
  ['subject is a string', '"x"', 'subject is not an object'],
  ['subject is null', 'null', 'subject is not an object'],
  ['no entities', '{}', 'no subject entities specified'],
  ['only a condition', '{"condition":{"attrs":[]}}', 'no subject entities specified'],
  ['entities is an object', '{"entities":{"id":"E"}}', '/entities/ is not an array'],
  ['entities is null', '{"entities":null}', '/entities/ is not an array'],
  ['entities is empty', '{"entities":[]}', 'subject entities is empty'],
  ['condition is an array', '{"entities":[{"id":"E"}],"condition":[]}', 'condition is not an object'],
  ['condition is null', '{"entities":[{"id":"E"}],"condition":null}', 'condition is not an object'],
  ['condition is empty', '{"entities":[{"id":"E"}],"condition":{}}', 'condition is empty'],
]

/** One element of `subject.entities` (docs/interface/errors.md#subscriptions). */
export const entities: readonly Refused[] = [
  ['element is a string', '"E"', '/entities/ vector item is not an object'],
  ['element is null', 'null', '/entities/ vector item is not an object'],
  ['no id', '{"type":"T"}', '/entities/ vector item does not have /id/ nor /idPattern/'],
  ['nothing', '{}', '/entities/ vector item does not have /id/ nor /idPattern/'],
  ['two ids', '{"id":"E","idPattern":".*"}', '/entities/ vector item has both /id/ and /idPattern/'],
  ['two types', '{"id":"E","type":"T","typePattern":".*"}', '/entities/ element has both /type/ and /typePattern/'],
  ['id is a number', '{"id":1}', '/entities/ vector item /id/ is not a string'],
  ['id is null', '{"id":null}', '/entities/ vector item /id/ is not a string'],
  ['id is empty', '{"id":""}', '/entities/ element id is empty'],
  ['id with a blank', '{"id":"a b"}', 'forbidden characters in /entities/ vector item /id/'],
  ['id with a bracket', '{"id":"a(b"}', 'forbidden characters in /entities/ vector item /id/'],
  ['id too long', `{"id":"${a(257)}"}`, 'max id length exceeded in /entities/ vector item /id/'],
  ['idPattern is a number', '{"idPattern":1}', '/entities/ vector item /idPattern/ is not a string'],
  ['idPattern is empty', '{"idPattern":""}', '/entities/ vector item /idPattern/ is empty'],
  ['idPattern is open', '{"idPattern":"[.*"}', 'Invalid regex for entity idPattern'],
  ['idPattern looks ahead', '{"idPattern":"(?!x)"}', 'Invalid regex for entity idPattern'],
  ['type is a number', '{"id":"E","type":1}', '/entities/ vector item type is not a string'],
  ['type is null', '{"id":"E","type":null}', '/entities/ vector item type is not a string'],
  ['type beyond ASCII', '{"id":"E","type":"Olé"}', 'forbidden characters in /entities/ vector item /type/'],
  ['type with an equals sign', '{"id":"E","type":"Ol="}', 'forbidden characters in /entities/ vector item /type/'],
  ['type too long', `{"id":"E","type":"${a(257)}"}`, 'max type length exceeded in /entities/ vector item /type/'],
  ['type is empty', '{"id":"E","type":""}', 'entity type length: 0, min length supported: 1'],
  ['typePattern is an array', '{"id":"E","typePattern":[]}', '/entities/ vector item /typePattern/ is not a string'],
  ['typePattern is empty', '{"id":"E","typePattern":""}', '/entities/ vector item /typePattern/ is empty'],
  ['typePattern is open', '{"id":"E","typePattern":"("}', 'Invalid regex for entity typePattern'],
]

/**
 * A member that must be a list of names, wherever there is one; `F` stands for its name
 * (docs/interface/errors.md#subscriptions).
 */
export const lists: readonly Refused[] = [
  ['an object', '{}', 'the field /F/ must be a JSON array'],
  ['null', 'null', 'the field /F/ must be a JSON array'],
  ['a string', '"A"', 'the field /F/ must be a JSON array'],
  ['with a number', '[1]', 'only JSON Strings allowed in string vector /F/'],
  ['with null', '[null]', 'only JSON Strings allowed in string vector /F/'],
  ['with a name twice', '["entityCreate","entityCreate"]', 'duplicated item /entityCreate/ in array'],
  ['with a blank', '["a b"]', 'forbidden characters in attribute name'],
  ['with an equals sign', '["a="]', 'forbidden characters in attribute name'],
  ['with an empty name', '[""]', 'empty string found in string vector /F/'],
]

/** Members of `subject.condition` (docs/interface/errors.md#subscriptions). */
export const conditions: readonly Refused[] = [
  ['expression is a string', '"expression":"q"', 'expression is not an object'],
  ['expression is empty', '"expression":{}', 'expression is empty'],
  [
    'alteration type',
    '"alterationTypes":["entityDelete","entityFoo"]',
    'unknown subscription alterationType: entityFoo',
  ],
  [
    'alteration type in other case',
    '"alterationTypes":["entitycreate"]',
    'unknown subscription alterationType: entitycreate',
  ],
  ['flag is a string', '"notifyOnMetadataChange":"foo"', 'notifyOnMetadataChange is not a bool'],
  ['flag is null', '"notifyOnMetadataChange":null', 'notifyOnMetadataChange is not a bool'],
]

const partial = 'partial geo expression: geometry, georel and coords have to be provided together'
const geo = (detail: string): string => `error parsing geo-query fields: ${detail}`

/** Members of `subject.condition.expression` (docs/interface/errors.md#subscriptions). */
export const expressions: readonly Refused[] = [
  ['q is a number', '"q":1', 'q is not a string'],
  ['q is empty', '"q":""', 'q is empty'],
  ['q is wrong', '"q":"house<flat>"', 'forbidden characters in String Filter'],
  ['q without left side', '"q":"<speed"', 'empty left-hand-side in q-item'],
  ['mq is null', '"mq":null', 'mq is not a string'],
  ['mq is empty', '"mq":""', 'mq is empty'],
  ['mq without metadata', '"mq":"temperature==1"', 'no metadata name - not valid for metadata filters'],
  ['geometry is a number', '"geometry":1', 'geometry is not a string'],
  ['coords is an array', '"coords":[1,2]', 'coords is not a string'],
  ['georel is null', '"georel":null', 'georel is not a string'],
  ['geometry is empty', '"geometry":""', 'geometry is empty'],
  ['coords is empty', '"coords":""', 'coords is empty'],
  ['georel is empty', '"georel":""', 'georel is empty'],
  ['geometry alone', '"geometry":"point"', partial],
  ['no georel', '"geometry":"point","coords":"1,2"', partial],
  ['no geometry', '"georel":"near;maxDistance:1","coords":"1,2"', partial],
  [
    'geometry unknown',
    '"geometry":"rectangles","coords":"-4.41,-31.51","georel":"far;maxDistance:2"',
    geo('error parsing geometry: Invalid selector in geometry specification'),
  ],
  [
    'half a pair',
    '"geometry":"point","coords":"1","georel":"near;maxDistance:1"',
    geo('invalid point in URI param /coords/'),
  ],
]

/** The member `notification` (docs/interface/errors.md#subscriptions). */
export const notifications: readonly Refused[] = [
  ['notification is a string', '"x"', 'notification is not an object'],
  ['notification is null', 'null', 'notification is not an object'],
  ['no transport', '{"attrs":["A"]}', 'http, httpCustom, mqtt or mqttCustom is missing'],
  ['nothing', '{}', 'http, httpCustom, mqtt or mqttCustom is missing'],
  [
    'two transports',
    '{"http":{"url":"mqtt://h"},"mqtt":{"url":"h"}}',
    'only one of http, httpCustom, mqtt or mqttCustom is allowed',
  ],
  ['two of a kind', '{"http":{},"httpCustom":{}}', 'only one of http, httpCustom, mqtt or mqttCustom is allowed'],
]

const formats =
  'invalid attrsFormat, accepted values: legacy, normalized, simplifiedNormalized, keyValues, simplifiedkeyValues, values'
const uncovered = 'covered true cannot be used if notification attributes list is empty'

/** Members of `notification` beside a valid transport (docs/interface/errors.md#subscriptions). */
export const notificationFields: readonly Refused[] = [
  ['two lists', '"attrs":["A"],"exceptAttrs":["B"]', 'http notification has attrs and exceptAttrs'],
  ['two lists, both empty', '"attrs":[],"exceptAttrs":[]', 'http notification has attrs and exceptAttrs'],
  ['exceptAttrs is empty', '"exceptAttrs":[]', 'http notification has exceptAttrs is empty'],
  ['onlyChangedAttrs is a string', '"onlyChangedAttrs":"foo"', 'onlyChangedAttrs is not a bool'],
  ['covered is a number', '"covered":1', 'covered is not a bool'],
  ['covered without list', '"covered":true', uncovered],
  ['covered with an empty list', '"attrs":[],"covered":true', uncovered],
  ['attrsFormat is null', '"attrsFormat":null', 'attrsFormat is not a string'],
  ['attrsFormat unknown', '"attrsFormat":"unique"', formats],
  ['attrsFormat as its own error spells it', '"attrsFormat":"simplifiedkeyValues"', formats],
  ['maxFailsLimit is a string', '"maxFailsLimit":"foo"', 'maxFailsLimit is not an int'],
  ['maxFailsLimit with a fraction', '"maxFailsLimit":0.5', 'maxFailsLimit is not an int'],
  ['maxFailsLimit is zero', '"maxFailsLimit":0', 'maxFailsLimit must be greater than zero'],
  ['maxFailsLimit is negative', '"maxFailsLimit":-1', 'maxFailsLimit must be greater than zero'],
  ['propagateDeletes is a string', '"propagateDeletes":"true"', 'propagateDeletes is not a bool'],
  ['propagateDeletes is null', '"propagateDeletes":null', 'propagateDeletes is not a bool'],
]

/** URLs that are no URLs (docs/interface/subscriptions.md#urls). */
export const wrongUrls: readonly string[] = [
  '',
  'abc',
  '//',
  '///',
  'h:80',
  'localhost:1234/notify',
  'http',
  'http:',
  'http://',
  'http:///a',
  'http:/h',
  'HTTP://h',
  'ftp://h',
  'mqtts://h',
  'http://h:',
  'http://h:/p',
  'http://h:0/p',
  'http://h:65536/p',
  'http://h:8080:80/p',
  'http://h:p/p',
  'http://user@h/p',
  'http://user:word@h/p',
  'http://::1/p',
  'http://[::1',
  'http://[h]/p',
  'http://[]/p',
  'http://[:]/p',
  'http://[1::2::3]/p',
  'http://[1:2:3:4:5:6:7]/p',
  'http://[1:2:3:4:5:6:7::8]/p',
  'http://[::12345]/p',
  'http://[::1.2.3]/p',
  'http://[1.2.3.4::]/p',
  'http://1.2.3/p',
  'http://1.2.3.4.5/p',
  'http://256.0.0.1/p',
  'http://127.0.0.010/p',
  'http://127.0.0.1./p',
  'http://0x7f000001/p',
  'http://2130706433/p',
  'http://h?p',
  'http://a b/p',
  'http://h/a b',
  'http://h/a\\r\\nb',
  ' http://h/p',
  'http://h/p\\n',
]

/** Members `http` (docs/interface/errors.md#subscriptions). */
export const httpTransports: readonly Refused[] = [
  ['http is a string', '"http://h"', 'http notification is not an object'],
  ['no url', '{}', 'url http notification is missing'],
  ['url is a number', '{"url":1}', 'url http notification is not a string'],
  ['url is null', '{"url":null}', 'url http notification is not a string'],
  ['url with a query', '{"url":"http://h/p?a=b"}', 'forbidden characters in http field /url/'],
  ['url of MQTT', '{"url":"mqtt://h"}', 'mqtt URL cannot be used in http notifications'],
  ['url with a macro', '{"url":"http://${host}/"}', 'Invalid URL parsing notification url'],
  ['timeout is a string', '{"url":"http://h","timeout":"1"}', 'timeout is not an int'],
  ['timeout with a fraction', '{"url":"http://h","timeout":1.5}', 'timeout is not an int'],
  ['timeout is negative', '{"url":"http://h","timeout":-1}', 'timeout field must be an integer between 0 and 1800000'],
  [
    'timeout too long',
    '{"url":"http://h","timeout":1800001}',
    'timeout field must be an integer between 0 and 1800000',
  ],
]

/** Members `httpCustom` (docs/interface/errors.md#subscriptions). */
export const httpCustomTransports: readonly Refused[] = [
  ['httpCustom is an array', '[]', 'httpCustom notification is not an object'],
  ['no url', '{}', 'url httpCustom notification is missing'],
  ['url is a number', '{"url":1}', 'url httpCustom notification is not a string'],
  ['url with a query', '{"url":"http://h/p?a=b"}', 'forbidden characters in custom /url/'],
  ['url with a macro and a query', '{"url":"http://${h}/p?a=b"}', 'forbidden characters in custom /url/'],
  ['url of MQTT', '{"url":"mqtt://h"}', 'mqtt URL cannot be used in http notifications'],
  ['url of MQTT with a macro', '{"url":"mqtt://${h}"}', 'mqtt URL cannot be used in http notifications'],
]

/** Members of `httpCustom` beside a valid URL (docs/interface/errors.md#subscriptions). */
export const httpCustomFields: readonly Refused[] = [
  ['timeout is a string', '"timeout":"1"', 'timeout is not an int'],
  ['timeout is negative', '"timeout":-1', 'timeout field must be an integer between 0 and 1800000'],
  ['method is null', '"method":null', 'method httpCustom notification is not a string'],
  ['method unknown', '"method":"FOO"', 'unknown method httpCustom notification'],
  ['method in lower case', '"method":"post"', 'unknown method httpCustom notification'],
  ['qs is a string', '"qs":"a"', 'notification httpCustom qs is not an object'],
  ['qs is empty', '"qs":{}', 'notification httpCustom qs is empty'],
  ['qs with a number', '"qs":{"a":1}', 'notification httpCustom qs element is not a string'],
  ['qs with a wrong name', '"qs":{"a=":"b"}', 'forbidden characters in custom notification httpCustom qs'],
  ['qs with a wrong value', '"qs":{"a":"b;c"}', 'forbidden characters in custom notification httpCustom qs'],
  ['headers is an array', '"headers":["a"]', 'notification httpCustom headers is not an object'],
  ['headers is empty', '"headers":{}', 'notification httpCustom headers is empty'],
  ['headers with null', '"headers":{"a":null}', 'notification httpCustom headers element is not a string'],
  [
    'headers with a wrong name',
    '"headers":{"a(":"b"}',
    'forbidden characters in custom notification httpCustom headers',
  ],
  [
    'headers with a wrong value',
    '"headers":{"a":"\\"b\\""}',
    'forbidden characters in custom notification httpCustom headers',
  ],
]

const oneBody = 'only one of payload, json or ngsi fields accepted at the same time in httpCustom or mqttCustom'
const container = 'json fields in httpCustom or mqttCustom must be object or array'
const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels)
const tooDeep = 'attribute or metadata value has overpassed maximum nesting limit: 50'

/** Members of `httpCustom` and `mqttCustom` alike (docs/interface/errors.md#subscriptions). */
export const customBodies: readonly Refused[] = [
  ['text and JSON', '"payload":"a","json":{}', oneBody],
  ['text and entity', '"payload":"a","ngsi":{}', oneBody],
  ['JSON and entity', '"json":[],"ngsi":{}', oneBody],
  ['null counts', '"payload":null,"json":{}', oneBody],
  ['an empty text counts', '"payload":"","ngsi":{}', oneBody],
  ['payload is a number', '"payload":1', 'payload custom notification is not a string'],
  ['payload is an object', '"payload":{}', 'payload custom notification is not a string'],
  ['payload with quotes', '"payload":"{\\"a\\":1}"', 'forbidden characters in custom /payload/'],
  ['json is a string', '"json":"only objects and arrays are accepted"', container],
  ['json is null', '"json":null', container],
  ['json is a number', '"json":1', container],
  ['json too deep', `"json":${nested(51)}`, tooDeep],
  ['ngsi is a string', '"ngsi":"E"', 'ngsi is not an object'],
  ['ngsi is null', '"ngsi":null', 'ngsi is not an object'],
  ['ngsi.id is a number', '"ngsi":{"id":42}', 'Invalid JSON type for entity id'],
  ['ngsi.id with a blank', '"ngsi":{"id":"a b"}', 'Invalid characters in entity id'],
  ['ngsi.id too long', `"ngsi":{"id":"${a(257)}"}`, 'entity id length: 257, max length supported: 256'],
  ['ngsi.type is null', '"ngsi":{"type":null}', 'Invalid JSON type for entity type'],
  ['ngsi.type with a bracket', '"ngsi":{"type":"a)"}', 'Invalid characters in entity type'],
  ['attribute name', '"ngsi":{"a b":{"value":1}}', 'Invalid characters in attribute name'],
  ['attribute is bare', '"ngsi":{"A":1}', 'attribute must be a JSON object, unless keyValues option is used'],
  ['attribute is null', '"ngsi":{"A":null}', 'attribute must be a JSON object, unless keyValues option is used'],
  ['attribute with another key', '"ngsi":{"A":{"unit":1}}', 'unrecognized property for context attribute'],
  ['attribute type is a number', '"ngsi":{"A":{"type":42}}', 'invalid JSON type for attribute type'],
  ['attribute type is empty', '"ngsi":{"A":{"type":""}}', 'attribute type length: 0, min length supported: 1'],
  ['metadata is no object', '"ngsi":{"A":{"metadata":[]}}', 'metadata not a JSON object'],
  [
    'attribute with metadata',
    '"ngsi":{"A":{"value":1,"metadata":{"m":{"value":1}}}}',
    'metadata are not allowed in ngsi field in custom notifications',
  ],
  ['attribute too deep', `"ngsi":{"A":{"value":${nested(51)}}}`, tooDeep],
]

/**
 * Members of `mqtt` and `mqttCustom` alike (docs/interface/errors.md#subscriptions). `T` stands for a valid topic, `U`
 * for a valid URL.
 */
export const mqttFields: readonly Refused[] = [
  ['no url', 'T', 'url mqtt notification is missing'],
  ['url is a number', 'T,"url":1234', 'url mqtt notification is not a string'],
  ['url with a bracket', 'T,"url":"mqtt://h("', 'forbidden characters in mqtt field /url/'],
  ['url with a macro', 'T,"url":"mqtt://${h}"', 'invalid mqtt /url/'],
  ['url of HTTP', 'T,"url":"http://h"', 'http or https URL cannot be used in mqtt notifications'],
  ['url of HTTPS', 'T,"url":"https://h"', 'http or https URL cannot be used in mqtt notifications'],
  ['url with a path', 'T,"url":"mqtt://h/p"', 'path cannot be used in mqtt url, use topic instead'],
  ['url with two slashes', 'T,"url":"mqtt://h//"', 'path cannot be used in mqtt url, use topic instead'],
  ['user is a number', 'T,U,"user":1,"passwd":"p"', 'user mqtt notification is not a string'],
  ['passwd is null', 'T,U,"user":"u","passwd":null', 'passwd mqtt notification is not a string'],
  ['user with a quote', 'T,U,"user":"u\'","passwd":"p"', 'forbidden characters in mqtt /user/'],
  ['user alone', 'T,U,"user":"u"', 'you must use user and passwd fields simultaneously'],
  ['passwd alone', 'T,U,"passwd":"p"', 'you must use user and passwd fields simultaneously'],
  ['qos is a string', 'T,U,"qos":"1"', 'qos is not an int'],
  ['qos with a fraction', 'T,U,"qos":0.5', 'qos is not an int'],
  ['qos too high', 'T,U,"qos":3', 'mqtt qos field must be an integer in the 0 to 2 range'],
  ['qos is negative', 'T,U,"qos":-1', 'mqtt qos field must be an integer in the 0 to 2 range'],
  ['retain is a number', 'T,U,"retain":1', 'retain is not a bool'],
  ['no topic', 'U', 'topic mqtt notification is missing'],
  ['topic is a number', 'U,"topic":1', 'topic mqtt notification is not a string'],
  ['topic is empty', 'U,"topic":""', 'empty mqtt field /topic/'],
  ['topic with a plus', 'U,"topic":"/sub+"', '+ and # are not allowed in mqtt field /topic/'],
  ['topic with a hash', 'U,"topic":"/sub#"', '+ and # are not allowed in mqtt field /topic/'],
  ['topic with a bracket', 'U,"topic":"a)"', 'forbidden characters in mqtt field /topic/'],
]

/** Whole bodies with several mistakes: the refusal is about the first one in the order of the tables. */
export const severalMistakes: readonly Refused[] = [
  ['description before subject', '{"subject":1,"description":1}', 'description is not a string'],
  ['subject before notification', '{"notification":1,"subject":1}', 'subject is not an object'],
  ['notification before expires', '{"expires":1,"notification":1,"subject":S}', 'notification is not an object'],
  ['expires before status', '{"status":1,"expires":1,"subject":S,"notification":N}', 'expires is not a string'],
  ['status before throttling', '{"throttling":"","status":1,"subject":S,"notification":N}', 'status is not a string'],
  ['entities before condition', '{"subject":{"condition":1,"entities":[{}]}}', entities[3]![2]],
  ['id before type', '{"subject":{"entities":[{"type":1,"id":1}]}}', '/entities/ vector item /id/ is not a string'],
  ['two types before id', '{"subject":{"entities":[{"type":"T","typePattern":"T","id":1}]}}', entities[5]![2]],
  ['first element first', '{"subject":{"entities":[{"id":"E","type":1},{"id":1}]}}', entities[16]![2]],
  [
    'attrs before expression',
    '{"subject":{"entities":[{"id":"E"}],"condition":{"expression":{},"attrs":1}}}',
    'the field /attrs/ must be a JSON array',
  ],
  [
    'expression before alteration types',
    '{"subject":{"entities":[{"id":"E"}],"condition":{"alterationTypes":1,"expression":{}}}}',
    'expression is empty',
  ],
  [
    'alteration types before the flag',
    '{"subject":{"entities":[{"id":"E"}],"condition":{"notifyOnMetadataChange":1,"alterationTypes":["x"]}}}',
    'unknown subscription alterationType: x',
  ],
  [
    'syntax of q before kind of mq',
    '{"subject":{"entities":[{"id":"E"}],"condition":{"expression":{"mq":1,"q":"a<b>"}}}}',
    'forbidden characters in String Filter',
  ],
  [
    'mq before geography',
    '{"subject":{"entities":[{"id":"E"}],"condition":{"expression":{"geometry":1,"mq":"a==1"}}}}',
    'no metadata name - not valid for metadata filters',
  ],
  [
    'kinds of geography before what is missing',
    '{"subject":{"entities":[{"id":"E"}],"condition":{"expression":{"geometry":"point","georel":1}}}}',
    'georel is not a string',
  ],
  ['transport before lists', '{"subject":S,"notification":{"attrs":1,"http":{}}}', 'url http notification is missing'],
  [
    'number of transports before what is in them',
    '{"subject":S,"notification":{"http":1,"mqtt":1}}',
    'only one of http, httpCustom, mqtt or mqttCustom is allowed',
  ],
  [
    'two lists before what is in them',
    '{"subject":S,"notification":{"http":{"url":"http://h"},"attrs":1,"exceptAttrs":1}}',
    'http notification has attrs and exceptAttrs',
  ],
  [
    'lists before flags',
    '{"subject":S,"notification":{"http":{"url":"http://h"},"onlyChangedAttrs":1,"attrs":[1]}}',
    'only JSON Strings allowed in string vector /attrs/',
  ],
  [
    'flags before the format',
    '{"subject":S,"notification":{"http":{"url":"http://h"},"attrsFormat":1,"covered":true}}',
    uncovered,
  ],
  [
    'format before the limit of failures',
    '{"subject":S,"notification":{"http":{"url":"http://h"},"maxFailsLimit":0,"attrsFormat":1}}',
    'attrsFormat is not a string',
  ],
  [
    'characters before syntax',
    '{"subject":S,"notification":{"http":{"url":"(","timeout":-1}}}',
    'forbidden characters in http field /url/',
  ],
  [
    'timeout before method',
    '{"subject":S,"notification":{"httpCustom":{"url":"http://h","method":1,"timeout":"1"}}}',
    'timeout is not an int',
  ],
  [
    'method before qs before headers',
    '{"subject":S,"notification":{"httpCustom":{"url":"http://h","headers":1,"qs":1,"method":"x"}}}',
    'unknown method httpCustom notification',
  ],
  [
    'headers before the payload',
    '{"subject":S,"notification":{"httpCustom":{"url":"http://h","payload":1,"headers":{}}}}',
    'notification httpCustom headers is empty',
  ],
  [
    'url before login before qos before topic',
    '{"subject":S,"notification":{"mqtt":{"topic":1,"qos":9,"user":"u","url":"mqtt://h"}}}',
    'you must use user and passwd fields simultaneously',
  ],
  [
    'qos before topic',
    '{"subject":S,"notification":{"mqtt":{"topic":1,"qos":9,"url":"mqtt://h"}}}',
    'mqtt qos field must be an integer in the 0 to 2 range',
  ],
]

/** Whole bodies that have a key twice. */
export const twiceTheSame: readonly Refused[] = [
  ['at the top', '{"status":"active","status":"inactive"}', 'duplicated tag-name: /status/ in path: /'],
  [
    'inside',
    '{"subject":{"entities":[{"id":"A"},{"id":"B","id":"C"}]}}',
    'duplicated tag-name: /id/ in path: /subject/entities/1/',
  ],
  [
    'in a template',
    '{"subject":S,"notification":{"httpCustom":{"url":"http://h","json":{"a":1,"a":2}}}}',
    'duplicated tag-name: /a/ in path: /notification/httpCustom/json/',
  ],
]
