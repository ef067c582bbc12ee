// A refusal is a reasoned no: a normal answer, returned as a value, never thrown.
//
// Every text the interface promises stands in this catalogue, once. A refusal is born in a parser or in a turn,
// crosses nodes inside the reply, and becomes an HTTP status in http/reply.ts and nowhere else.
// Texts are those of entities.md §1-§20 and subscriptions.md §3; where base.md names the error, its spelling wins (MethodNotAlowed, 21.1).

import { bad, notAcceptable, parse, type Refusal } from './refusal-kind.js'
import { documentRefusals } from './subscriptions/document-refusals.js'

export type { Refusal, RefusalKind } from './refusal-kind.js'

export type Result<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly refusal: Refusal }

/** A result that carries nothing but its success. */
export const done: Result<undefined> = { ok: true, value: undefined }

export const accepted = <T>(value: T): Result<T> => ({ ok: true, value })

export const refused = (refusal: Refusal): { readonly ok: false; readonly refusal: Refusal } => ({ ok: false, refusal })

/** The places an identifier can stand, as the error texts name them (entities.md §3.1). */
export type IdentifierPlace =
  | 'entity id'
  | 'entity type'
  | 'attribute name'
  | 'attribute type'
  | 'metadata name'
  | 'metadata type'

/** What there may only be so many of in one request or entity, as the error texts name it. */
export type CountedThing = 'attributes' | 'metadata' | 'entities' | 'names' | 'positions' | 'values' | 'digits'

/** The operators of a query, as the error texts name them (entities.md §7.5). */
export type QueryOperator =
  | 'Exists'
  | 'NotExists'
  | 'Equals'
  | 'Differs'
  | 'GreaterThan'
  | 'GreaterThanOrEqual'
  | 'LessThan'
  | 'LessThanOrEqual'
  | 'MatchPattern'

/** The kinds of values in a query, as the error texts name them (entities.md §7.5). */
export type QueryValueKind = 'String' | 'Bool' | 'Number' | 'Null' | 'Date'

/** Where a geographical query stands: in URL parameters or in the `expression` of a payload. */
export type GeoQuerySource = 'url' | 'payload'

const geoQueryPrefix = { url: 'Invalid query: ', payload: 'error parsing geo-query fields: ' } as const

/** What can be wrong with a geographical query (entities.md §8.6); `refusals.geoQuery` puts the prefix in front. */
export const geoProblems = {
  geometryWord: 'error parsing geometry: Invalid selector in geometry specification',
  geometryTwice: 'error parsing geometry: geometry-type present more than once',
  georelWord: 'Invalid modifier in georel parameter',
  georelTwice: 'georel type present more than once',
  distanceTwice: (modifier: string): string => `${modifier} present more than once`,
  distanceNumber: (modifier: string): string => `invalid number for ${modifier}`,
  distanceWithoutNear: (modifier: string, georel: string): string =>
    `${modifier} erroneously used with georel /${georel}/`,
  nearWithoutDistance: 'georel /near/ without either minDistance nor maxDistance',
  nearWithoutPoint: 'georel /near/ used with geometry different than point',
  coveredBy: (geometry: string): string => `${geometry} geometry cannot be used with coveredBy georel`,
  pair: 'invalid point in URI param /coords/',
  coordinates: 'invalid coordinates',
  count: (geometry: string): string => `invalid number of coordinates for /${geometry}/`,
  polygonCount: 'Too few coordinates for polygon',
  polygonOpen: 'First and last point in polygon not the same',
  boxFlat: 'box coordinates are not defining an actual box',
  // Ours: the reference leaves these to its data store.
  polygonCrossed: 'polygon crosses or touches itself',
  coordsTooLong: (length: number, lengthMax: number): string =>
    `coords length: ${length}, max length supported: ${lengthMax}`,
  positionsTooMany: (count: number, countMax: number): string =>
    `coordinates in coords: ${count}, max number supported: ${countMax}`,
} as const

/** The names that `refusals.attributesMissing` told of; undefined: the refusal is another one. Names hold no blanks. */
export function namesMissing({ description }: Refusal): readonly string[] | undefined {
  return /^do not exist: \S+ - \[ (.+) \]$/.exec(description)?.[1]?.split(', ')
}

export const refusals = {
  // entities.md §1.3: Content-Type
  noContentType: {
    kind: 'UnsupportedMediaType',
    description: 'Content-Type header not used, default application/octet-stream is not supported',
  } as Refusal,
  contentType: (type: string): Refusal => ({
    kind: 'UnsupportedMediaType',
    description: `not supported content type: ${type}`,
  }),
  contentTypeWithoutBody: bad(
    'Orion accepts no payload for GET/DELETE requests. HTTP header Content-Type is thus forbidden',
  ),

  // §1.4: Accept
  acceptNothingKnown: notAcceptable('no acceptable mime-type in accept header'),
  acceptJson: notAcceptable('acceptable MIME types: application/json'),
  acceptTextForScalar: notAcceptable('accepted MIME types: text/plain'),
  acceptEmpty: bad('empty accept header'),
  acceptQWithoutEqual: bad('missing equal-sign after q in accept header'),
  acceptQWithoutValue: bad('qvalue in accept header is missing'),
  acceptQNotNumber: bad('qvalue in accept header is not a number'),

  // §1.5: body
  payloadTooLarge: (bytes: number, bytesMax: number): Refusal => ({
    kind: 'RequestEntityTooLarge',
    description: `payload size: ${bytes}, max size supported: ${bytesMax}`,
  }),
  lengthRequired: {
    kind: 'ContentLengthRequired',
    description: 'Zero/No Content-Length in PUT/POST/PATCH request',
  } as Refusal,
  emptyPayload: bad('empty payload'),
  notJson: parse('Errors found in incoming JSON buffer'),
  nestedTooDeep: (depthMax: number): Refusal =>
    parse(`attribute or metadata value has overpassed maximum nesting limit: ${depthMax}`),

  // §1.6, §1.7: path and method
  unknownPath: bad('Service not found. Check your URL as probably it is wrong.'),
  charactersInPath: bad('invalid character in URI'),
  method: { kind: 'MethodNotAlowed', description: 'method not allowed' } as Refusal,

  // §1.8: URL parameters
  parameterEmpty: (name: string): Refusal => bad(`Empty right-hand-side for URI param /${name}/`),
  charactersInParameter: bad('invalid character in URI parameter'),
  limitNotNumber: (text: string): Refusal => bad(`Bad pagination limit: /${text}/ [must be a positive integer number]`),
  limitTooHigh: (text: string, limitMax: number): Refusal => bad(`Bad pagination limit: /${text}/ [max: ${limitMax}]`),
  offsetNotNumber: (text: string): Refusal => bad(`Bad pagination offset: /${text}/ [must be a decimal number]`),
  options: bad('Invalid value for URI param /options/'),
  orderKeysTooMany: (count: number, countMax: number): Refusal =>
    bad(`number of keys in orderBy: ${count}, max supported: ${countMax}`),
  idAndIdPattern: bad('Incompatible parameters: id, IdPattern'),
  typeAndTypePattern: bad('Incompatible parameters: type, typePattern'),
  idPattern: bad('Invalid regex for entity idPattern'),
  typePattern: bad('Invalid regex for entity typePattern'),
  selectionPatternsTooMany: (countMax: number): Refusal =>
    bad(`number of regular expressions for ids and types: max supported: ${countMax}`),
  selectionPatternsTooLarge: (stepsMax: number): Refusal =>
    bad(`steps of all regular expressions for ids and types: max supported: ${stepsMax}`),

  // §3.1, §3.2: identifiers and values
  identifierCharacters: (place: IdentifierPlace): Refusal => bad(`Invalid characters in ${place}`),
  identifierTooShort: (place: IdentifierPlace): Refusal => bad(`${place} length: 0, min length supported: 1`),
  identifierTooLong: (place: IdentifierPlace, length: number, lengthMax: number): Refusal =>
    bad(`${place} length: ${length}, max length supported: ${lengthMax}`),
  /** `what`: of which there are more than the limit (limits.ts). */
  tooMany: (what: CountedThing, count: number, countMax: number): Refusal =>
    bad(`too many ${what}: ${count}, at most ${countMax}`),
  charactersInValue: bad('Invalid characters in attribute value'),
  charactersInMetadataValue: bad('Invalid characters in metadata value'),

  // §3.3: tenant
  vendorHeaders: (conflict: string) => bad(conflict),
  tenantCharacters: bad('bad character in tenant name - only underscore and alphanumeric characters are allowed'),
  tenantTooLong: (lengthMax: number): Refusal =>
    bad(`bad length - a tenant name can be max ${lengthMax} characters long`),

  // §3.4: service path
  pathNotAbsolute: bad('Only /absolute/ Service Paths allowed [a service path must begin with /]'),
  pathEmptyLevel: bad('empty component in ServicePath'),
  pathTooDeep: bad('too many components in ServicePath'),
  pathLevelTooLong: bad('component-name too long in ServicePath'),
  pathCharacters: bad('a component of ServicePath contains an illegal character'),
  pathsTooMany: bad('too many service paths - a maximum of ten service paths is allowed'),
  pathListInPatch: bad('more than one servicepath in patch update request is not allowed'),
  pathWildcardInPatch: bad('servicepath with wildcard # is not allowed in patch update request'),
  pathListInDelete: bad('more than one servicepath is not allowed in DELETE operation'),
  pathWildcardInDelete: bad('servicepath with wildcard # is not allowed in DELETE operation'),
  pathListInUpdate: bad('more than one service path in context update request'),
  pathWildcardInUpdate: bad('Bad Character in Service-Path'),

  // §4.3, §16: special types
  date: bad('date has invalid format'),
  expiryType: bad('error processing date expiration attribute, see log traces'),

  // §5: attributes and metadata
  attributeNotObject: bad('attribute must be a JSON object, unless keyValues option is used'),
  attributeUnknownKey: bad('unrecognized property for context attribute'),
  attributeTypeNotString: bad('invalid JSON type for attribute type'),
  attributeValueTwice: bad('duplicated value key in attribute'),
  metadataNotObject: bad('metadata not a JSON object'),
  metadataElementNotObject: bad('metadata must be a JSON object'),
  metadataUnknownKey: bad('invalid JSON field for attribute metadata'),
  metadataTypeNotString: bad('invalid JSON type for attribute metadata type'),
  attributeTwice: (name: string): Refusal => bad(`duplicated attribute /${name}/`),
  keyTwice: (key: string, path: string): Refusal => bad(`duplicated tag-name: /${key}/ in path: ${path}`),

  // §7.5: q and mq
  queryEmpty: bad('empty q'),
  statementEmpty: bad('empty q-item'),
  statementBlank: bad('empty q-item (only whitespace)'),
  statementWithoutLeft: bad('empty left-hand-side in q-item'),
  statementWithoutRight: bad('empty right-hand-side in q-item'),
  charactersInQueryPath: (language: 'q' | 'mq'): Refusal => bad(`invalid character found in URI param /${language}/`),
  charactersInFilter: bad('forbidden characters in String Filter'),
  forcedStringUnclosed: bad('non-terminated forced string'),
  forcedStringQuote: bad('quote in forced string'),
  valueKind: (kind: QueryValueKind, operator: QueryOperator): Refusal =>
    bad(`values of type /${kind}/ not supported for operator /${operator}/`),
  rangeOperator: bad('ranges only valid for equal and not equal ops'),
  rangeEmptyEnd: bad('empty item in range'),
  rangeMixed: bad('invalid range: types mixed'),
  rangeFromKind: bad('invalid data type for /range-from/'),
  rangeToKind: bad('invalid data type for /range-to/'),
  listOperator: bad('lists only valid for equal and not equal ops'),
  listEmptyItem: bad('empty item in list'),
  listItemKind: bad('invalid JSON value type in list'),
  filterPattern: (pattern: string): Refusal => bad(`error compiling filter regex: '${pattern}'`),
  metadataFilterUnary: bad('no metadata in right-hand-side of q-item'),
  metadataFilterWithoutMetadata: bad('no metadata name - not valid for metadata filters'),
  metadataFilterWithoutAttribute: bad('no attribute name - not valid for metadata filters'),
  // Ours: what the table leaves open.
  queryPathEmptyName: bad('empty name in path of q-item'),
  queryTooLong: (language: 'q' | 'mq', length: number, lengthMax: number): Refusal =>
    bad(`${language} length: ${length}, max length supported: ${lengthMax}`),
  statementsTooMany: (language: 'q' | 'mq', count: number, countMax: number): Refusal =>
    bad(`number of statements in ${language}: ${count}, max supported: ${countMax}`),
  queryPatternsTooMany: (language: 'q' | 'mq', countMax: number): Refusal =>
    bad(`number of regular expressions in ${language}: max supported: ${countMax}`),
  queryPatternsTooLarge: (language: 'q' | 'mq', stepsMax: number): Refusal =>
    bad(`steps of all regular expressions in ${language}: max supported: ${stepsMax}`),

  // §8.1-§8.3: locations
  locationSecond: {
    kind: 'NoResourceAvailable',
    description:
      'You cannot use more than one geo location attribute when creating an entity. ' +
      'Use ignoreType metadata if you want to add additional informative locations.',
  } as Refusal,
  geoJsonKind: bad('geo:json needs an object or null as value'),
  geoJson: bad('Wrong GeoJson'),
  /** `prefix` tells which attribute failed (§8.2): `''`, ` for new attribute` or ` for existing attribute`. */
  location: (prefix: '' | ' for new attribute' | ' for existing attribute', detail: string): Refusal =>
    bad(`error parsing location attribute${prefix}: ${detail}`),

  // §8.5, §8.6: geographical queries
  coordsWithoutGeometry: bad('Invalid query: URI param /coords/ used without /geometry/'),
  geometryWithoutCoords: bad('Invalid query: URI param /geometry/ used without /coords/'),
  georelWithoutGeometry: bad('Invalid query: URI param /georel/ used without /geometry/'),
  geoPartial: bad('partial geo expression: geometry, georel and coords have to be provided together'),
  geoQuery: (source: GeoQuerySource, problem: string): Refusal => bad(`${geoQueryPrefix[source]}${problem}`),

  // §10.2, §11, §12: entities and attributes
  entityIdKind: bad('Invalid JSON type for entity id'),
  entityTypeKind: bad('Invalid JSON type for entity type'),
  entityIdInPayload: bad('entity id specified in payload'),
  entityTypeInPayload: bad('entity type specified in payload'),
  entityNotFound: {
    kind: 'NotFound',
    description: 'The requested entity has not been found. Check type and id',
  } as Refusal,
  entityAmbiguous: {
    kind: 'TooManyResults',
    description: 'More than one matching entity. Please refine your query',
  } as Refusal,
  entityExists: { kind: 'Unprocessable', description: 'Already Exists' } as Refusal,
  attributeNotFound: { kind: 'NotFound', description: 'The entity does not have such an attribute' } as Refusal,
  attributesExist: (kind: 'Unprocessable' | 'PartialUpdate', entity: string, names: readonly string[]): Refusal => ({
    kind,
    description: `one or more of the attributes in the request already exist: ${entity} - [ ${names.join(', ')} ]`,
  }),
  attributesMissing: (kind: 'Unprocessable' | 'PartialUpdate', entity: string, names: readonly string[]): Refusal => ({
    kind,
    description: `do not exist: ${entity} - [ ${names.join(', ')} ]`,
  }),

  // §12.5: values as text
  textUnclosed: bad('Missing citation-mark at end of string'),
  textUnknown: bad('attribute value type not recognized'),

  // §15.4: an operator that does not fit the stored value. The status is fixed, the text is ours.
  operator: (detail: string): Refusal => ({ kind: 'InternalServerError', description: `Database Error (${detail})` }),

  // §18: types
  typeNotFound: { kind: 'NotFound', description: 'Entity type not found' } as Refusal,

  // §17: batches
  payloadNothingRelevant: bad('Invalid JSON payload, no relevant fields found'),
  payloadField: (name: string): Refusal => bad(`Unrecognized field in JSON payload: /${name}/`),
  payloadFieldMissing: (name: string): Refusal => bad(`Invalid JSON payload, mandatory field /${name}/ not found`),
  entitiesNotArray: bad('not a JSON array'),
  entitiesEmpty: bad('empty entities vector'),
  entityNotObject: bad('entity is not a JSON object'),
  idAndIdPatternInPayload: bad('both /id/ and /idPattern/ present'),
  typeAndTypePatternInPayload: bad('both /type/ and /typePattern/ present'),
  noId: bad('nor /id/ nor /idPattern/ present'),
  attributesInSelector: bad('no attributes allowed in Entity in this payload'),
  selectorKind: (name: string): Refusal => bad(`Invalid JSON type for entity ${name}`),
  listNotArray: (name: string): Refusal => bad(`the field /${name}/ must be a JSON array`),
  listNotStrings: (name: string): Refusal => bad(`only JSON Strings allowed in ${name} list`),
  batchAction: bad('invalid update action type: right ones are: append, appendStric, delete, replace, update'),
  batchIdPattern: { kind: 'NotImplemented', description: 'NotImplemented' } as Refusal,
  batch: (kind: 'NotFound' | 'Unprocessable' | 'PartialUpdate', description: string): Refusal => ({
    kind,
    description,
  }),
  subscriptionIdMissing: bad('invalid JSON payload, mandatory field /subscriptionId/ not found'),
  subscriptionIdKind: bad('/subscriptionId/ must be a JSON string'),
  notifiedDataNotArray: bad('notification field /data/ must be a JSON array'),
  notifiedItemNotObject: bad('notification data vector item must be a JSON object'),
  notifiedFormatUnsupported: (format: string): Refusal =>
    bad(`attribute render format /${format}/ not supported for notifications`),
  notifiedFormat: bad('invalid render format for notifications'),
  notifiedAlteration: bad(
    'invalid alteration type for notifications, accepted values: entityCreate, entityChange, entityUpdate, entityDelete',
  ),

  // §17.1 and subscriptions.md §3: fields of payloads, called as each text calls them
  fieldMissing: (name: string): Refusal => bad(`${name} is missing`),
  fieldEmpty: (name: string): Refusal => bad(`${name} is empty`),
  fieldNotObject: (name: string): Refusal => bad(`${name} is not an object`),
  fieldNotString: (name: string): Refusal => bad(`${name} is not a string`),
  fieldNotInteger: (name: string): Refusal => bad(`${name} is not an int`),
  fieldNotBoolean: (name: string): Refusal => bad(`${name} is not a bool`),
  charactersIn: (place: string): Refusal => bad(`forbidden characters in ${place}`),

  // subscriptions.md §2, §3, §12, §13
  ...documentRefusals,

  // operations.md §5.1, §5.2, §7.1: administration
  logConfigMissing: bad('log config missing'),
  logLevel: bad('invalid log level'),
  logSize: (name: string): Refusal => bad(`invalid ${name}, ${name} should be an integer number > 0`),
  traceLevels: bad('poorly formatted trace level string'),
  metricsOff: bad('metrics desactivated'),

  // Ours: limits that the interface does not name.
  subscriptionsTooMany: (max: number): Refusal => ({
    kind: 'Unprocessable',
    description: `there are ${max} subscriptions, and no room for more: delete some`,
  }),
  patternsTooCostly: (steps: number, stepsMax: number): Refusal => ({
    kind: 'Forbidden',
    description: `too many costly patterns: with this subscription one event may take ${steps} steps in the patterns of the tenant, max ${stepsMax}`,
  }),
  subscriptionTooLarge: (bytes: number, bytesMax: number): Refusal => ({
    kind: 'RequestEntityTooLarge',
    description: `subscription size: ${bytes}, max size supported: ${bytesMax}`,
  }),
  registrationsTooMany: (max: number): Refusal => ({
    kind: 'Unprocessable',
    description: `there are ${max} registrations, and no room for more: delete some`,
  }),
  registrationTooLarge: (bytes: number, bytesMax: number): Refusal => ({
    kind: 'RequestEntityTooLarge',
    description: `registration size: ${bytes}, max size supported: ${bytesMax}`,
  }),
  entityTooLarge: (bytes: number, bytesMax: number): Refusal => ({
    kind: 'RequestEntityTooLarge',
    description: `entity size: ${bytes}, max size supported: ${bytesMax}`,
  }),
  scanTooLarge: (rows: number, max: number): Refusal =>
    bad(`the query has to look into ${rows} entities, more than ${max}: narrow it by id, type or service path`),
  scanTooLong: (ms: number): Refusal => ({
    kind: 'Unavailable',
    description: `the query has taken longer than ${ms} ms: narrow it by id, type or service path`,
  }),
  pageTooDeep: bad('the page begins too deep in the list: narrow the query by id, type or service path'),
  /** Nobody knows how large it would have been: reading ends when it is too much. */
  answerTooLarge: (bytesMax: number): Refusal =>
    bad(
      `answer size: more than ${bytesMax} bytes, max size supported: ${bytesMax}, ask for fewer entities at a time with limit`,
    ),
  answersTooMany: {
    kind: 'Unavailable',
    description: 'the answers under way take all the memory that answers may have, try again later',
  } as Refusal,
  unreachable: (reason: string): Refusal => ({
    kind: 'Unavailable',
    description: `a part of the broker cannot be reached, nothing was done, try again later: ${reason}`,
  }),
  unanswered: (reason: string): Refusal => ({
    kind: 'Unavailable',
    description: `a part of the broker does not answer, try again later: ${reason}`,
  }),
  outcomeUnknown: (reason: string): Refusal => ({
    kind: 'Unavailable',
    description: `a part of the broker does not answer, whether the change was made is unknown: ${reason}`,
  }),
  /** `which` entities of a batch, and what became of the others, if there are any. */
  batchUnknown: (
    kind: 'Unavailable' | 'InternalServerError',
    which: string,
    reason: string,
    others: string | undefined,
  ): Refusal => ({
    kind,
    description: `the outcome is unknown for ${which}: ${reason}${others === undefined ? '' : `; ${others}`}`,
  }),
  /** `freeBytes`: above the reserve. */
  noRoom: (freeBytes: number, reservedBytes: number): Refusal => ({
    kind: 'InsufficientStorage',
    description: `no room on the disk of this node: ${megabytes(freeBytes)} MB free, ${megabytes(reservedBytes)} MB reserved`,
  }),
  unavailable: (detail: string): Refusal => ({ kind: 'Unavailable', description: detail }),
  failure: (detail: string): Refusal => ({ kind: 'InternalServerError', description: detail }),
} as const

const megabytes = (bytes: number): number => Math.max(0, Math.floor(bytes / 1_048_576))
