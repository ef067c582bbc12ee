// The effects of requests on one entity, R1. Attributes are written as in requests and answers, without empty metadata.
// A request is its verb, the attribute it names and its options: `POST` and `POST append`, `PATCH` and `PUT` are on
// /attrs, `PUT temp` is on /attrs/temp, `PUT temp/value` on its value, `DELETE temp` on the attribute.

export interface Update {
  readonly rule: string
  readonly stored: string
  readonly request: string
  readonly body?: string
  /** The attributes afterwards; undefined: the request changes nothing. */
  readonly after?: string
  readonly refusal?: string
}

const temp = '{"temp":{"type":"Celsius","value":21}}'
const tempHum = '{"temp":{"type":"Celsius","value":21},"hum":{"type":"Number","value":50}}'

/** Types (docs/interface/entities.md#default-types) and values (docs/interface/updates.md#single-attributes). */
export const typeCases: readonly Update[] = [
  {
    rule: 'PUT of a value keeps the type, though the kind of value changes',
    stored: temp,
    request: 'PUT temp/value',
    body: '"warm"',
    after: '{"temp":{"type":"Celsius","value":"warm"}}',
  },
  {
    rule: 'PUT of a value stores an object literally',
    stored: temp,
    request: 'PUT temp/value',
    body: '{"value":5,"type":"X"}',
    after: '{"temp":{"type":"Celsius","value":{"value":5,"type":"X"}}}',
  },
  ...['POST', 'PATCH', 'PUT'].flatMap(request => [
    {
      rule: `${request} takes the given type`,
      stored: temp,
      request,
      body: '{"temp":{"type":"Kelvin","value":300}}',
      after: '{"temp":{"type":"Kelvin","value":300}}',
    },
    {
      rule: `${request} without type takes the default one`,
      stored: temp,
      request,
      body: '{"temp":{"value":5}}',
      after: '{"temp":{"type":"Number","value":5}}',
    },
    {
      rule: `${request} with keyValues takes the default type`,
      stored: temp,
      request: `${request} keyValues`,
      body: '{"temp":"warm"}',
      after: '{"temp":{"type":"Text","value":"warm"}}',
    },
    {
      rule: `${request} without value takes null`,
      stored: temp,
      request,
      body: '{"temp":{}}',
      after: '{"temp":{"type":"None","value":null}}',
    },
  ]),
  {
    rule: 'PUT of an attribute takes the given type',
    stored: temp,
    request: 'PUT temp',
    body: '{"type":"Kelvin","value":300}',
    after: '{"temp":{"type":"Kelvin","value":300}}',
  },
  {
    rule: 'PUT of an attribute without type takes the default one',
    stored: temp,
    request: 'PUT temp',
    body: '{"value":true}',
    after: '{"temp":{"type":"Boolean","value":true}}',
  },
  {
    rule: 'PUT of an empty attribute takes null',
    stored: temp,
    request: 'PUT temp',
    body: '{}',
    after: '{"temp":{"type":"None","value":null}}',
  },
  {
    rule: 'an update that only means metadata takes null all the same',
    stored: temp,
    request: 'PATCH',
    body: '{"temp":{"metadata":{"m":{"value":1}}}}',
    after: '{"temp":{"type":"None","value":null,"metadata":{"m":{"type":"Number","value":1}}}}',
  },
  {
    rule: 'an operator without type makes a StructuredValue',
    stored: temp,
    request: 'PATCH',
    body: '{"temp":{"value":{"$inc":1}}}',
    after: '{"temp":{"type":"StructuredValue","value":22}}',
  },
  {
    rule: 'an operator with a type takes it',
    stored: temp,
    request: 'PATCH',
    body: '{"temp":{"type":"Celsius","value":{"$inc":1}}}',
    after: '{"temp":{"type":"Celsius","value":22}}',
  },
  {
    rule: 'an operator as a value keeps the type',
    stored: temp,
    request: 'PUT temp/value',
    body: '{"$inc":1}',
    after: '{"temp":{"type":"Celsius","value":22}}',
  },
]

/** The attributes that a request is about (docs/interface/updates.md, docs/interface/updates.md#single-attributes). */
export const existenceCases: readonly Update[] = [
  {
    rule: 'POST updates what exists and adds what does not, at the end',
    stored: temp,
    request: 'POST',
    body: '{"hum":{"value":50},"temp":{"value":22}}',
    after: '{"temp":{"type":"Number","value":22},"hum":{"type":"Number","value":50}}',
  },
  {
    rule: 'POST keeps what is not mentioned',
    stored: tempHum,
    request: 'POST',
    body: '{"hum":{"value":60}}',
    after: '{"temp":{"type":"Celsius","value":21},"hum":{"type":"Number","value":60}}',
  },
  {
    rule: 'POST append adds what does not exist',
    stored: temp,
    request: 'POST append',
    body: '{"hum":{"value":50},"co2":{"value":400}}',
    after:
      '{"temp":{"type":"Celsius","value":21},"hum":{"type":"Number","value":50},"co2":{"type":"Number","value":400}}',
  },
  {
    rule: 'POST append of what all exists adds nothing',
    stored: tempHum,
    request: 'POST append',
    body: '{"hum":{"value":60},"temp":{"value":22}}',
    refusal: 'Unprocessable one or more of the attributes in the request already exist: R1 - [ hum, temp ]',
  },
  {
    rule: 'POST append of what partly exists adds the rest',
    stored: temp,
    request: 'POST append',
    body: '{"temp":{"value":22},"hum":{"value":50}}',
    after: '{"temp":{"type":"Celsius","value":21},"hum":{"type":"Number","value":50}}',
    refusal: 'PartialUpdate one or more of the attributes in the request already exist: R1 - [ temp ]',
  },
  {
    rule: 'PATCH updates what exists and keeps what is not mentioned',
    stored: tempHum,
    request: 'PATCH',
    body: '{"hum":{"value":60}}',
    after: '{"temp":{"type":"Celsius","value":21},"hum":{"type":"Number","value":60}}',
  },
  {
    rule: 'PATCH of what does not exist changes nothing',
    stored: temp,
    request: 'PATCH',
    body: '{"b":{"value":1},"a":{"value":1}}',
    refusal: 'Unprocessable do not exist: R1 - [ b, a ]',
  },
  {
    rule: 'PATCH of what partly exists updates that part',
    stored: temp,
    request: 'PATCH',
    body: '{"temp":{"value":22},"b":{"value":1}}',
    after: '{"temp":{"type":"Number","value":22}}',
    refusal: 'PartialUpdate do not exist: R1 - [ b ]',
  },
  {
    rule: 'PUT removes what is not mentioned, and all metadata',
    stored: '{"a":{"type":"T","value":1,"metadata":{"m":{"type":"T","value":1}}},"b":{"type":"T","value":2}}',
    request: 'PUT',
    body: '{"c":{"value":3},"a":{"value":1,"type":"T"}}',
    after: '{"c":{"type":"Number","value":3},"a":{"type":"T","value":1}}',
  },
  {
    rule: 'PUT of one attribute leaves the others',
    stored: tempHum,
    request: 'PUT temp',
    body: '{"value":22}',
    after: '{"temp":{"type":"Number","value":22},"hum":{"type":"Number","value":50}}',
  },
  {
    rule: 'PUT of one attribute never creates it',
    stored: temp,
    request: 'PUT hum',
    body: '{"value":22}',
    refusal: 'NotFound The entity does not have such an attribute',
  },
  {
    rule: 'PUT of a value never creates the attribute',
    stored: temp,
    request: 'PUT hum/value',
    body: '22',
    refusal: 'NotFound The entity does not have such an attribute',
  },
  {
    rule: 'names of the language are missing like any other',
    stored: temp,
    request: 'PUT constructor/value',
    body: '22',
    refusal: 'NotFound The entity does not have such an attribute',
  },
  {
    rule: 'DELETE removes the attribute',
    stored: tempHum,
    request: 'DELETE temp',
    after: '{"hum":{"type":"Number","value":50}}',
  },
  { rule: 'DELETE of the last attribute leaves an entity without', stored: temp, request: 'DELETE temp', after: '{}' },
  {
    rule: 'DELETE of what does not exist is refused',
    stored: temp,
    request: 'DELETE hum',
    refusal: 'NotFound The entity does not have such an attribute',
  },
]

/**
 * Metadata (docs/interface/updates.md#metadata-in-updates): stored, sent, kept by default, kept with overrideMetadata;
 * `-` is an update without metadata.
 */
export const metadataCases: readonly (readonly [stored: string, sent: string, byDefault: string, override: string])[] =
  [
    [
      '{"m1":{"type":"T","value":1},"m2":{"type":"T","value":2}}',
      '-',
      '{"m1":{"type":"T","value":1},"m2":{"type":"T","value":2}}',
      '{}',
    ],
    [
      '{"m1":{"type":"T","value":1},"m2":{"type":"T","value":2}}',
      '{"m1":{"value":9}}',
      '{"m1":{"type":"Number","value":9},"m2":{"type":"T","value":2}}',
      '{"m1":{"type":"Number","value":9}}',
    ],
    [
      '{"m1":{"type":"T","value":1},"m2":{"type":"T","value":2}}',
      '{"m3":{"type":"U","value":3}}',
      '{"m1":{"type":"T","value":1},"m2":{"type":"T","value":2},"m3":{"type":"U","value":3}}',
      '{"m3":{"type":"U","value":3}}',
    ],
    ['{"m1":{"type":"T","value":1},"m2":{"type":"T","value":2}}', '{}', '{}', '{}'],
    [
      '{"m1":{"type":"T","value":1}}',
      '{"m1":{}}',
      '{"m1":{"type":"None","value":null}}',
      '{"m1":{"type":"None","value":null}}',
    ],
    ['{}', '{"m1":{"value":1}}', '{"m1":{"type":"Number","value":1}}', '{"m1":{"type":"Number","value":1}}'],
    ['{}', '-', '{}', '{}'],
  ]

/** Whether an attribute has changed (docs/interface/entities.md#changes): stored, request, body, yes or no. */
export const changeCases: readonly (readonly [
  why: string,
  stored: string,
  request: string,
  body: string,
  changed: boolean,
])[] = [
  ['nothing differs', '{"type":"Number","value":1}', 'PUT temp', '{"value":1}', false],
  ['nothing differs', '{"type":"Number","value":1}', 'PUT temp/value', '1', false],
  ['nothing differs', '{"type":"Number","value":1}', 'POST', '{"temp":{"value":1}}', false],
  ['nothing differs', '{"type":"Number","value":1}', 'PATCH', '{"temp":{"value":1}}', false],
  ['nothing differs', '{"type":"Number","value":1}', 'PATCH keyValues', '{"temp":1}', false],
  ['the value differs', '{"type":"Number","value":1}', 'PUT temp', '{"value":2}', true],
  ['the value differs in kind', '{"type":"T","value":1}', 'PUT temp', '{"type":"T","value":"1"}', true],
  ['the value differs at depth', '{"type":"T","value":{"a":[{"b":1}]}}', 'PUT temp/value', '{"a":[{"b":2}]}', true],
  [
    'the order of keys',
    '{"type":"T","value":{"a":{"b":1,"c":2},"d":3}}',
    'PUT temp/value',
    '{"d":3,"a":{"c":2,"b":1}}',
    false,
  ],
  ['the order of items', '{"type":"T","value":[1,2]}', 'PUT temp/value', '[2,1]', true],
  ['the type differs', '{"type":"T","value":1}', 'PUT temp', '{"value":1}', true],
  [
    'the same date in another form',
    '{"type":"DateTime","value":"2030-01-01"}',
    'PUT temp',
    '{"type":"DateTime","value":"2030-01-01T01:00:00+01:00"}',
    false,
  ],
  ['metadata added', '{"type":"T","value":1}', 'PUT temp', '{"type":"T","value":1,"metadata":{"m":{"value":1}}}', true],
  [
    'metadata removed',
    '{"type":"T","value":1,"metadata":{"m":{"value":1}}}',
    'PUT temp',
    '{"type":"T","value":1,"metadata":{}}',
    true,
  ],
  [
    'metadata removed',
    '{"type":"T","value":1,"metadata":{"m":{"value":1}}}',
    'PUT temp overrideMetadata',
    '{"type":"T","value":1}',
    true,
  ],
  [
    'metadata of another name',
    '{"type":"T","value":1,"metadata":{"m":{"value":1}}}',
    'PUT temp overrideMetadata',
    '{"type":"T","value":1,"metadata":{"n":{"value":1}}}',
    true,
  ],
  [
    'metadata of another value',
    '{"type":"T","value":1,"metadata":{"m":{"value":1}}}',
    'PUT temp',
    '{"type":"T","value":1,"metadata":{"m":{"value":2}}}',
    true,
  ],
  [
    'metadata of another type',
    '{"type":"T","value":1,"metadata":{"m":{"value":1}}}',
    'PUT temp',
    '{"type":"T","value":1,"metadata":{"m":{"value":1,"type":"U"}}}',
    true,
  ],
  [
    'metadata the same',
    '{"type":"T","value":1,"metadata":{"m":{"value":{"a":1,"b":2}}}}',
    'PUT temp',
    '{"type":"T","value":1,"metadata":{"m":{"value":{"b":2,"a":1}}}}',
    false,
  ],
  [
    'metadata not mentioned',
    '{"type":"T","value":1,"metadata":{"m":{"value":1}}}',
    'PUT temp',
    '{"type":"T","value":1}',
    false,
  ],
  [
    'no metadata to remove',
    '{"type":"T","value":1}',
    'PUT temp overrideMetadata',
    '{"type":"T","value":1,"metadata":{}}',
    false,
  ],
  ['an operator without effect', '{"type":"T","value":[1]}', 'PUT temp', '{"type":"T","value":{"$addToSet":1}}', true],
  ['an operator without effect', '{"type":"T","value":1}', 'PUT temp/value', '{"$inc":0}', true],
  [
    'an operator without effect',
    '{"type":"T","value":{}}',
    'PATCH',
    '{"temp":{"type":"T","value":{"$unset":{"a":1}}}}',
    true,
  ],
  ['an operator without effect', '{"type":"T","value":1}', 'PUT temp/value', '{"$unset":1}', true],
  ['forced', '{"type":"Number","value":1}', 'PUT temp forcedUpdate', '{"value":1}', true],
  ['forced', '{"type":"Number","value":1}', 'PUT temp/value forcedUpdate', '1', true],
  ['forced', '{"type":"Number","value":1}', 'POST forcedUpdate', '{"temp":{"value":1}}', true],
  ['forced', '{"type":"Number","value":1}', 'PATCH forcedUpdate', '{"temp":{"value":1}}', true],
  ['replaced by the same', '{"type":"Number","value":1}', 'PUT', '{"temp":{"value":1}}', true],
]

const point = '{"type":"geo:json","value":{"type":"Point","coordinates":[2,41]}}'
const second =
  'NoResourceAvailable You cannot use more than one geo location attribute when creating an entity. Use ignoreType metadata if you want to add additional informative locations.'
const ignored =
  '{"type":"geo:json","value":{"type":"Point","coordinates":[2,41]},"metadata":{"ignoreType":{"type":"Boolean","value":true}}}'
const loc = `{"loc":${point},"temp":{"type":"Number","value":21}}`
const prefix = 'BadRequest error parsing location attribute'
const badFeature = '{"type":"geo:json","value":{"type":"Feature"}}'

/**
 * The one location of an entity (docs/interface/geography.md#location), and the texts of the refusals of a bad one
 * (docs/interface/geography.md#geojson).
 */
export const locationCases: readonly Update[] = [
  ...['geo:json', 'geo:point', 'geo:line', 'geo:box', 'geo:polygon'].map(type => {
    const value = {
      'geo:json': '{"type":"Point","coordinates":[2,41]}',
      'geo:point': '"41, 2"',
      'geo:line': '["41, 2","42, 3"]',
      'geo:box': '["41, 2","42, 3"]',
      'geo:polygon': '["0, 0","0, 1","1, 1","0, 0"]',
    }[type]
    return {
      rule: `POST of a second location, ${type}`,
      stored: loc,
      request: 'POST',
      body: `{"b":{"type":"${type}","value":${value}}}`,
      refusal: second,
    }
  }),
  {
    rule: 'POST of two locations at once',
    stored: '{}',
    request: 'POST',
    body: `{"a":${point},"b":${point}}`,
    refusal: second,
  },
  {
    rule: 'POST that turns another attribute into a location',
    stored: loc,
    request: 'POST',
    body: `{"temp":${point}}`,
    refusal: second,
  },
  {
    rule: 'POST append of a second location',
    stored: loc,
    request: 'POST append',
    body: `{"b":${point}}`,
    refusal: second,
  },
  {
    rule: 'PATCH that turns another attribute into a location',
    stored: loc,
    request: 'PATCH',
    body: `{"temp":${point}}`,
    refusal: second,
  },
  {
    rule: 'PUT that turns another attribute into a location',
    stored: loc,
    request: 'PUT temp',
    body: point,
    refusal: second,
  },
  { rule: 'PUT of two locations', stored: loc, request: 'PUT', body: `{"a":${point},"b":${point}}`, refusal: second },
  {
    rule: 'PUT of a value that makes an empty location a second one',
    stored: `{"loc":${point},"b":{"type":"geo:json","value":null}}`,
    request: 'PUT b/value',
    body: '{"type":"Point","coordinates":[0,0]}',
    refusal: second,
  },
  {
    rule: 'metadata that gives up ignoreType makes a second location',
    stored: `{"loc":${point},"b":${ignored}}`,
    request: 'PUT b overrideMetadata',
    body: point,
    refusal: second,
  },
  {
    rule: 'PUT of another location replaces the first',
    stored: loc,
    request: 'PUT',
    body: `{"b":${point}}`,
    after: `{"b":${point}}`,
  },
  {
    rule: 'a null location does not count',
    stored: loc,
    request: 'POST',
    body: '{"b":{"type":"geo:json","value":null}}',
    after: `{"loc":${point},"temp":{"type":"Number","value":21},"b":{"type":"geo:json","value":null}}`,
  },
  {
    rule: 'a location with ignoreType does not count',
    stored: `{"loc":${point}}`,
    request: 'POST',
    body: `{"b":${ignored}}`,
    after: `{"loc":${point},"b":${ignored}}`,
  },
  {
    rule: 'ignoreType that is not the boolean true does not help',
    stored: `{"loc":${point}}`,
    request: 'POST',
    body: `{"b":{"type":"geo:point","value":"1, 2","metadata":{"ignoreType":{"value":"true"}}}}`,
    refusal: second,
  },
  {
    rule: 'a stored ignoreType counts when the request names none',
    stored: `{"loc":${point},"b":${ignored}}`,
    request: 'PATCH',
    body: '{"b":{"type":"geo:json","value":{"any":"thing"}}}',
    after: `{"loc":${point},"b":{"type":"geo:json","value":{"any":"thing"},"metadata":{"ignoreType":{"type":"Boolean","value":true}}}}`,
  },
  {
    rule: 'the location may move to another attribute within one request',
    stored: loc,
    request: 'PATCH',
    body: `{"loc":{"value":"here"},"temp":${point}}`,
    after: `{"loc":{"type":"Text","value":"here"},"temp":${point}}`,
  },
  {
    rule: 'the location changes its shape',
    stored: `{"loc":${point}}`,
    request: 'PATCH',
    body: '{"loc":{"type":"geo:point","value":"41, 2"}}',
    after: '{"loc":{"type":"geo:point","value":"41, 2"}}',
  },
  {
    rule: 'PUT of a value changes the location',
    stored: `{"loc":${point}}`,
    request: 'PUT loc/value',
    body: '{"type":"Point","coordinates":[0,0]}',
    after: '{"loc":{"type":"geo:json","value":{"type":"Point","coordinates":[0,0]}}}',
  },
  {
    rule: 'PUT of a value that is no location',
    stored: loc,
    request: 'PUT loc/value',
    body: '{"type":"Point"}',
    refusal: 'BadRequest Wrong GeoJson',
  },
  {
    rule: 'PUT of a value that is no object',
    stored: loc,
    request: 'PUT loc/value',
    body: '5',
    refusal: 'BadRequest geo:json needs an object or null as value',
  },
  ...['PATCH', 'PUT', 'POST'].map(request => ({
    rule: `${request} of bad GeoJSON`,
    stored: loc,
    request,
    body: '{"loc":{"type":"geo:json","value":{"type":"Point","coordinates":[200,0]}}}',
    refusal: 'BadRequest Wrong GeoJson',
  })),
  {
    rule: 'a bad location that is new',
    stored: '{}',
    request: 'POST',
    body: `{"b":${badFeature}}`,
    refusal: `${prefix} for new attribute: geometry in Feature not found`,
  },
  {
    rule: 'a bad location that is new, strictly',
    stored: '{}',
    request: 'POST append',
    body: `{"b":${badFeature}}`,
    refusal: `${prefix} for new attribute: geometry in Feature not found`,
  },
  {
    rule: 'a bad location where there was none',
    stored: '{"temp":{"type":"Number","value":21}}',
    request: 'POST',
    body: `{"temp":${badFeature}}`,
    refusal: `${prefix} for existing attribute: geometry in Feature not found`,
  },
  {
    rule: 'a bad location where an empty one was',
    stored: '{"loc":{"type":"geo:json","value":null}}',
    request: 'POST',
    body: `{"loc":${badFeature}}`,
    refusal: `${prefix} for existing attribute: geometry in Feature not found`,
  },
  {
    rule: 'a bad location where an ignored one was',
    stored: `{"loc":${ignored}}`,
    request: 'POST overrideMetadata',
    body: `{"loc":${badFeature}}`,
    refusal: `${prefix} for existing attribute: geometry in Feature not found`,
  },
  {
    rule: 'a bad location where one was',
    stored: loc,
    request: 'POST',
    body: `{"loc":${badFeature}}`,
    refusal: `${prefix}: geometry in Feature not found`,
  },
  {
    rule: 'a bad location in a PATCH',
    stored: '{"temp":{"type":"Number","value":21}}',
    request: 'PATCH',
    body: `{"temp":${badFeature}}`,
    refusal: `${prefix}: geometry in Feature not found`,
  },
  {
    rule: 'a bad location in a PUT',
    stored: '{}',
    request: 'PUT',
    body: `{"b":${badFeature}}`,
    refusal: `${prefix}: geometry in Feature not found`,
  },
  {
    rule: 'a bad point',
    stored: '{"b":{"type":"T","value":1}}',
    request: 'PUT b',
    body: '{"type":"geo:point","value":"here"}',
    refusal: `${prefix}: geo coordinates format error [see Orion user manual]: here`,
  },
]

/** Operators through requests (docs/interface/updates.md). */
export const operatorCases: readonly Update[] = [
  ...(
    [
      ['10', '{"$inc":-2.5}', '7.5'],
      ['10', '{"$mul":3}', '30'],
      ['10', '{"$min":5}', '5'],
      ['10', '{"$max":5}', '10'],
      ['[1]', '{"$push":[2]}', '[1,[2]]'],
      ['[1]', '{"$push":{"$each":[2,3]}}', '[1,2,3]'],
      ['[1]', '{"$addToSet":1}', '[1]'],
      ['[1]', '{"$addToSet":{"$each":[1,2]}}', '[1,2]'],
      ['[1,2,1]', '{"$pull":1}', '[2]'],
      ['[1,2,3]', '{"$pullAll":[1,3]}', '[2]'],
      ['{"a":1,"b":2}', '{"$set":{"b":3,"c.d":4}}', '{"a":1,"b":3,"c.d":4}'],
      ['"x"', '{"$set":5}', '5'],
      ['{"a":1,"b":2}', '{"$unset":{"a":0,"z":0}}', '{"b":2}'],
      ['"x"', '{"$unset":1}', '"x"'],
      ['{"a":1,"b":2}', '{"$set":{"c":3},"$unset":{"a":0}}', '{"b":2,"c":3}'],
    ] as const
  ).flatMap(([stored, operator, result]) =>
    (
      [
        ['PATCH', `{"x":{"type":"T","value":${operator}}}`],
        ['POST', `{"x":{"type":"T","value":${operator}}}`],
        ['PUT x', `{"type":"T","value":${operator}}`],
        ['PUT x/value', operator],
      ] as const
    ).map(([request, body]) => ({
      rule: `${operator} on ${stored}`,
      stored: `{"x":{"type":"T","value":${stored}}}`,
      request,
      body,
      after: `{"x":{"type":"T","value":${result}}}`,
    })),
  ),
  ...(
    [
      // operator, result of PUT /attrs, result of POST /attrs; none where the attribute is not created
      ['{"$inc":3}', '3', '3'],
      ['{"$mul":3}', '0', '0'],
      ['{"$min":3}', '0', '3'],
      ['{"$min":-3}', '-3', '-3'],
      ['{"$max":3}', '3', '3'],
      ['{"$max":-3}', '0', '-3'],
      ['{"$push":3}', '[3]', '[3]'],
      ['{"$addToSet":3}', '[3]', '[3]'],
      ['{"$set":{"a":1}}', '{"a":1}', '{"a":1}'],
      ['{"$set":3}', '3', '3'],
      ['{"$unset":{"a":1}}', '', ''],
      ['{"$pull":3}', '', ''],
      ['{"$pullAll":[3]}', '', ''],
    ] as const
  ).flatMap(([operator, replaced, appended]) => {
    const body = `{"b":1,"x":${operator}}`
    const after = (result: string): string =>
      `{"b":{"type":"Number","value":1}${result === '' ? '' : `,"x":{"type":"StructuredValue","value":${result}}`}}`
    return [
      { rule: `${operator} on nothing`, stored: '{}', request: 'PUT keyValues', body, after: after(replaced) },
      {
        rule: `${operator} ignores what is replaced`,
        stored: '{"x":{"type":"T","value":2}}',
        request: 'PUT keyValues',
        body,
        after: after(replaced),
      },
      { rule: `${operator} on nothing`, stored: '{}', request: 'POST keyValues', body, after: after(appended) },
      { rule: `${operator} on nothing`, stored: '{}', request: 'POST append keyValues', body, after: after(appended) },
    ]
  }),
  {
    rule: 'different operators in one request',
    stored: '{"a":{"type":"Number","value":1},"b":{"type":"StructuredValue","value":[1]}}',
    request: 'PATCH keyValues',
    body: '{"a":{"$inc":1},"b":{"$push":2}}',
    after: '{"a":{"type":"StructuredValue","value":2},"b":{"type":"StructuredValue","value":[1,2]}}',
  },
  {
    rule: 'metadata of a request with an operator is applied',
    stored: '{"a":{"type":"Number","value":1,"metadata":{"m":{"type":"Number","value":1}}}}',
    request: 'PATCH',
    body: '{"a":{"type":"Number","value":{"$inc":1},"metadata":{"n":{"value":2}}}}',
    after:
      '{"a":{"type":"Number","value":2,"metadata":{"m":{"type":"Number","value":1},"n":{"type":"Number","value":2}}}}',
  },
  ...['PATCH', 'POST'].map(request => ({
    rule: 'an operator that fails spoils the whole request',
    stored: '{"a":{"type":"Number","value":1},"b":{"type":"Text","value":"x"}}',
    request: `${request} keyValues`,
    body: '{"a":2,"b":{"$inc":1}}',
    refusal: 'InternalServerError Database Error (…',
  })),
  {
    rule: 'an operator that fails spoils a partial update too',
    stored: '{"b":{"type":"Text","value":"x"}}',
    request: 'PATCH keyValues',
    body: '{"missing":2,"b":{"$inc":1}}',
    refusal: 'InternalServerError Database Error (…',
  },
  {
    rule: 'an operator that fails on nothing',
    stored: '{}',
    request: 'POST keyValues',
    body: '{"a":2,"b":{"$inc":"x"}}',
    refusal: 'InternalServerError Database Error (…',
  },
  {
    rule: 'an operator on a missing attribute of a PATCH',
    stored: '{}',
    request: 'PATCH keyValues',
    body: '{"a":{"$inc":1}}',
    refusal: 'Unprocessable do not exist: R1 - [ a ]',
  },
]

/**
 * Values without a type, accepted and refused (docs/interface/entities.md#forbidden-characters,
 * docs/interface/entities.md#dates, docs/interface/updates.md#plain-values, docs/interface/entities.md#expiry).
 */
export const valueCases: readonly Update[] = [
  {
    rule: 'a forbidden character',
    stored: temp,
    request: 'PUT temp/value',
    body: '"a<b"',
    refusal: 'BadRequest Invalid characters in attribute value',
  },
  {
    rule: 'a forbidden character in a key',
    stored: temp,
    request: 'PUT temp/value',
    body: '{"a=":1}',
    refusal: 'BadRequest Invalid characters in attribute value',
  },
  {
    rule: 'a forbidden character where the stored type allows it',
    stored: '{"x":{"type":"TextUnrestricted","value":""}}',
    request: 'PUT x/value',
    body: '"a<b"',
    after: '{"x":{"type":"TextUnrestricted","value":"a<b"}}',
  },
  ...['DateTime', 'ISO8601'].flatMap(type => [
    {
      rule: `a date where the stored type is ${type}`,
      stored: `{"x":{"type":"${type}","value":null}}`,
      request: 'PUT x/value',
      body: '"2030-01-01T01:00:00+01:00"',
      after: `{"x":{"type":"${type}","value":"2030-01-01T00:00:00.000Z"}}`,
    },
    {
      rule: `null where the stored type is ${type}`,
      stored: `{"x":{"type":"${type}","value":"2030-01-01"}}`,
      request: 'PUT x/value',
      body: 'null',
      after: `{"x":{"type":"${type}","value":null}}`,
    },
    ...['"soon"', '5', '{"$max":"2030-01-01"}'].map(body => ({
      rule: `${body} where the stored type is ${type}`,
      stored: `{"x":{"type":"${type}","value":null}}`,
      request: 'PUT x/value',
      body,
      refusal: 'BadRequest date has invalid format',
    })),
  ]),
  {
    rule: 'metadata stays, overrideMetadata or not',
    stored: '{"x":{"type":"T","value":1,"metadata":{"m":{"type":"T","value":1}}}}',
    request: 'PUT x/value overrideMetadata',
    body: '2',
    after: '{"x":{"type":"T","value":2,"metadata":{"m":{"type":"T","value":1}}}}',
  },
]

const until = '{"dateExpires":{"type":"DateTime","value":"2030-01-01T00:00:00.000Z"}}'

/**
 * The time at which an entity expires (docs/interface/entities.md#expiry): stored, request, body, and the time
 * afterwards; `never` for a regular entity.
 */
export const expiryCases: readonly (readonly [stored: string, request: string, body: string, expires: string])[] = [
  ['{}', 'POST', '{"dateExpires":{"type":"DateTime","value":"2031-01-01"}}', '2031-01-01T00:00:00.000Z'],
  ['{}', 'POST', '{"dateExpires":{"type":"ISO8601","value":"2031-01-01"}}', '2031-01-01T00:00:00.000Z'],
  ['{}', 'POST', '{"dateExpires":{"type":"DateTime","value":"1999-01-01"}}', '1999-01-01T00:00:00.000Z'],
  ['{}', 'POST', '{"dateExpires":{"type":"DateTime","value":null}}', 'never'],
  ['{}', 'POST', '{"temp":{"type":"DateTime","value":"2031-01-01"}}', 'never'],
  ['{}', 'POST append', '{"dateExpires":{"type":"DateTime","value":"2031-01-01"}}', '2031-01-01T00:00:00.000Z'],
  [until, 'PATCH', '{"dateExpires":{"type":"DateTime","value":"2031-01-01"}}', '2031-01-01T00:00:00.000Z'],
  [until, 'PUT dateExpires', '{"type":"DateTime","value":"2031-01-01"}', '2031-01-01T00:00:00.000Z'],
  [until, 'PUT dateExpires', '{"type":"DateTime","value":null}', 'never'],
  [until, 'PUT dateExpires/value', '"2031-01-01"', '2031-01-01T00:00:00.000Z'],
  [until, 'PUT', '{"dateExpires":{"type":"DateTime","value":"2031-01-01"}}', '2031-01-01T00:00:00.000Z'],
  [until, 'PUT', '{"temp":{"value":1}}', 'never'],
  [until, 'POST', '{"temp":{"value":1}}', '2030-01-01T00:00:00.000Z'],
  [until, 'DELETE dateExpires', '', 'never'],
]
