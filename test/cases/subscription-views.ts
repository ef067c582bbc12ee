// Subscriptions that are accepted although they look odd, and the part of the answer to `GET` that a table is about,
// written down once more from the specification (docs/interface/subscriptions.md#fields,
// docs/interface/subscriptions.md#read).

// biome-ignore-all lint/suspicious/noTemplateCurlyInString: macros of notifications look like templates

export type Shown = readonly [what: string, json: string, shown: string]

const a = (count: number): string => 'a'.repeat(count)
const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels)

/** Members of the body; shown is the text around `subject` and `notification`. */
export const shownFields: readonly Shown[] = [
  ['nothing', '', '"status":"active"'],
  ['unknown fields', '"foo":{"bar":[1]},"id":"X","jexlExpression":1', '"status":"active"'],
  ['an empty description', '"description":""', '"status":"active"'],
  ['the longest description', `"description":"${a(1024)}"`, `"description":"${a(1024)}","status":"active"`],
  [
    'characters that count once',
    `"description":"${'😀'.repeat(1024)}"`,
    `"description":"${'😀'.repeat(1024)}","status":"active"`,
  ],
  ['no end', '"expires":""', '"status":"active"'],
  ['an end', '"expires":"2050-04-05T14:00:00.00Z"', '"expires":"2050-04-05T14:00:00.000Z","status":"active"'],
  ['an end as a day', '"expires":"2050-04-05"', '"expires":"2050-04-05T00:00:00.000Z","status":"active"'],
  ['an end in the past', '"expires":"2016-04-05T14:00:00Z"', '"expires":"2016-04-05T14:00:00.000Z","status":"expired"'],
  ['inactive', '"status":"inactive"', '"status":"inactive"'],
  ['one-shot', '"status":"oneshot"', '"status":"oneshot"'],
  ['throttling', '"throttling":5', '"status":"active","throttling":5'],
  ['no throttling', '"throttling":0', '"status":"active"'],
  ['less than no throttling', '"throttling":-3', '"status":"active"'],
]

const plainCondition = '"condition":{"attrs":[],"notifyOnMetadataChange":true}'

/** The member `subject`; shown is all of it. */
export const shownSubjects: readonly Shown[] = [
  ['an id', '{"entities":[{"id":"E"}]}', `{"entities":[{"id":"E"}],${plainCondition}}`],
  [
    'all ways to select, keys in any order',
    '{"entities":[{"type":"T","id":"E"},{"typePattern":"^T","idPattern":"(a|b)="},{"idPattern":".*"}]}',
    `{"entities":[{"id":"E","type":"T"},{"idPattern":"(a|b)=","typePattern":"^T"},{"idPattern":".*"}],${plainCondition}}`,
  ],
  [
    'elements that stand twice',
    '{"entities":[{"id":"E"},{"id":"E","type":"T"},{"type":"T","id":"E"},{"idPattern":"E"},{"id":"E"}]}',
    `{"entities":[{"id":"E"},{"id":"E","type":"T"},{"idPattern":"E"}],${plainCondition}}`,
  ],
  ['an unknown field', '{"entities":[{"id":"E","foo":1}],"bar":1}', `{"entities":[{"id":"E"}],${plainCondition}}`],
  [
    'an unknown condition',
    '{"entities":[{"id":"E"}],"condition":{"foo":1}}',
    `{"entities":[{"id":"E"}],${plainCondition}}`,
  ],
  [
    'an unknown expression',
    '{"entities":[{"id":"E"}],"condition":{"expression":{"foo":1}}}',
    `{"entities":[{"id":"E"}],${plainCondition}}`,
  ],
  [
    'empty lists',
    '{"entities":[{"id":"E"}],"condition":{"attrs":[],"alterationTypes":[]}}',
    `{"entities":[{"id":"E"}],${plainCondition}}`,
  ],
  [
    'a whole condition, keys in any order',
    '{"condition":{"notifyOnMetadataChange":false,"alterationTypes":["entityUpdate","entityCreate"],"expression":{"georel":"near;maxDistance:5","coords":"1,2","geometry":"point","mq":"A.m>1","q":"B~=^x"},"attrs":["B","A"]},"entities":[{"id":"E"}]}',
    '{"entities":[{"id":"E"}],"condition":{"attrs":["B","A"],"expression":{"q":"B~=^x","mq":"A.m>1","geometry":"point","coords":"1,2","georel":"near;maxDistance:5"},"alterationTypes":["entityUpdate","entityCreate"],"notifyOnMetadataChange":false}}',
  ],
]

const url = '"url":"http://h:1/n"'
const mqtt = '"url":"mqtt://h","topic":"t"'
const shownMqtt = `${mqtt},"qos":0,"retain":false`

/** The member of `notification` with the transport; shown is the same member. */
export const shownTransports: readonly Shown[] = [
  ['http', `"http":{${url}}`, `"http":{${url}}`],
  ['http over IPv6', '"http":{"url":"https://[::1]:8443"}', '"http":{"url":"https://[::1]:8443"}'],
  ['http with a timeout', `"http":{"timeout":1800000,${url}}`, `"http":{${url},"timeout":1800000}`],
  ['http with the default timeout', `"http":{"timeout":0,${url}}`, `"http":{${url}}`],
  ['http with fields of others', `"http":{${url},"method":"GET","topic":1}`, `"http":{${url}}`],
  ['custom with a URL alone', `"httpCustom":{${url}}`, `"httpCustom":{${url}}`],
  ['custom with a URL of macros', '"httpCustom":{"url":"${a}${b}"}', '"httpCustom":{"url":"${a}${b}"}'],
  [
    'custom with all fields, keys in any order',
    `"httpCustom":{"headers":{"x-b":"","X-a":"\${A}"},"qs":{"b":"1","\${a}":"2"},"method":"PUT","payload":"t \${id}","timeout":9,${url}}`,
    `"httpCustom":{${url},"timeout":9,"payload":"t \${id}","method":"PUT","qs":{"\${a}":"2","b":"1"},"headers":{"X-a":"\${A}","x-b":""}}`,
  ],
  ['custom with no body', `"httpCustom":{"payload":null,${url}}`, `"httpCustom":{${url},"payload":null}`],
  ['custom with an empty text', `"httpCustom":{"payload":"",${url}}`, `"httpCustom":{${url}}`],
  [
    'custom with JSON',
    `"httpCustom":{"json":{"b":"(\\"\${a}\\")","a":[1.50,null,{}]},${url}}`,
    `"httpCustom":{${url},"json":{"b":"(\\"\${a}\\")","a":[1.5,null,{}]}}`,
  ],
  [
    'custom with JSON at its deepest',
    `"httpCustom":{"json":${nested(50)},${url}}`,
    `"httpCustom":{${url},"json":${nested(50)}}`,
  ],
  [
    'custom with secrets',
    `"httpCustom":{"headers":{"Authorization":"Bearer s","X-API-Key":"s","cookie":"s","x-plain":"p","token":""},"qs":{"a":"p","PASSWORD":"s","my_secret":"s"},${url}}`,
    `"httpCustom":{${url},"qs":{"PASSWORD":"*****","a":"p","my_secret":"*****"},"headers":{"Authorization":"*****","X-API-Key":"*****","cookie":"*****","token":"","x-plain":"p"}}`,
  ],
  ['custom with no patch', `"httpCustom":{"ngsi":{},${url}}`, `"httpCustom":{${url},"ngsi":{}}`],
  [
    'custom with a patch',
    `"httpCustom":{"ngsi":{"B":{"value":"<\${B}>"},"type":"T\${x}","A":{"type":"DateTime","value":"\${d}","metadata":{}},"id":"\${id}:1","C":{},"__proto__":{"value":[1]}},${url}}`,
    `"httpCustom":{${url},"ngsi":{"id":"\${id}:1","type":"T\${x}","B":{"type":"Text","value":"<\${B}>"},"A":{"type":"DateTime","value":"\${d}"},"C":{"type":"None","value":null},"__proto__":{"type":"StructuredValue","value":[1]}}}`,
  ],
  [
    'custom with a patch of empty names',
    `"httpCustom":{"ngsi":{"id":"","type":""},${url}}`,
    `"httpCustom":{${url},"ngsi":{}}`,
  ],
  ['mqtt', `"mqtt":{${mqtt}}`, `"mqtt":{${shownMqtt}}`],
  [
    'mqtt with a slash',
    '"mqtt":{"topic":"t","url":"mqtt://h:1883/"}',
    '"mqtt":{"url":"mqtt://h:1883/","topic":"t","qos":0,"retain":false}',
  ],
  [
    'mqtt with all fields',
    `"mqtt":{"passwd":"(secret)","user":"u","retain":true,"qos":2,${mqtt}}`,
    `"mqtt":{${mqtt},"qos":2,"retain":true,"user":"u","passwd":"*****"}`,
  ],
  [
    'custom mqtt with all fields',
    `"mqttCustom":{"payload":"t","passwd":"p","user":"u","qos":1,"url":"mqtt://h","topic":"a/\${id}"}`,
    `"mqttCustom":{"url":"mqtt://h","topic":"a/\${id}","qos":1,"retain":false,"user":"u","passwd":"*****","payload":"t"}`,
  ],
  ['custom mqtt with no body', `"mqttCustom":{"payload":null,${mqtt}}`, `"mqttCustom":{${shownMqtt},"payload":null}`],
]

/** Members of `notification` beside `http`; shown is the text before and after it, with `T` in its place. */
export const shownSettings: readonly Shown[] = [
  ['nothing', '', '"attrs":[],"onlyChangedAttrs":false,"attrsFormat":"normalized",T,"covered":false'],
  [
    'deletions that are propagated',
    '"propagateDeletes":true',
    '"attrs":[],"onlyChangedAttrs":false,"attrsFormat":"normalized",T,"covered":false,"propagateDeletes":true',
  ],
  [
    'deletions that are not',
    '"propagateDeletes":false',
    '"attrs":[],"onlyChangedAttrs":false,"attrsFormat":"normalized",T,"covered":false',
  ],
  [
    'all fields',
    '"covered":true,"maxFailsLimit":3,"metadata":["m","*"],"attrsFormat":"simplifiedKeyValues","onlyChangedAttrs":true,"attrs":["B","*","A","dateCreated"]',
    '"attrs":["B","*","A","dateCreated"],"onlyChangedAttrs":true,"attrsFormat":"simplifiedKeyValues",T,"metadata":["m","*"],"maxFailsLimit":3,"covered":true',
  ],
  [
    'a list of exceptions',
    '"exceptAttrs":["A"],"covered":true',
    '"exceptAttrs":["A"],"onlyChangedAttrs":false,"attrsFormat":"normalized",T,"covered":true',
  ],
  [
    'what is read only',
    '"timesSent":7,"lastNotification":"x","lastFailure":1,"lastFailureReason":2,"lastSuccess":3,"lastSuccessCode":4,"failsCounter":5,"throttling":6',
    '"attrs":[],"onlyChangedAttrs":false,"attrsFormat":"normalized",T,"covered":false',
  ],
]
