// Every code of a refusal, with its kind, its facts and its text.
//
// The texts are those of docs/interface/errors.md, in the spelling of NGSIv2 (`MethodNotAlowed`). A code is a promise
// to other builds: its meaning and its facts never change. A refusal that needs other facts gets a new code
// (refusal.ts).
//
// Not here: refusals themselves (refusal.ts), rules about documents (subscriptions/document-rules.ts).

import {
  type AnyRefusal,
  bad,
  num,
  type RefusalKind,
  type Rule,
  rule,
  ruleOfKinds,
  rulesOf,
  slot,
} from './refusal-kind.js'
import { documentRules } from './subscriptions/document-rules.js'

/** The places of an identifier, as the error texts name them (docs/interface/entities.md#identifiers). */
export type IdentifierPlace =
  | 'entity id'
  | 'entity type'
  | 'attribute name'
  | 'attribute type'
  | 'metadata name'
  | 'metadata type'

/** The things whose number is limited in one request or entity, as the error texts name them. */
export type CountedThing =
  | 'attributes'
  | 'metadata'
  | 'entities'
  | 'names'
  | 'positions'
  | 'values'
  | 'digits'
  | 'chunks'
  | 'watches'

/** The operators of a query, as the error texts name them (docs/interface/errors.md#queries). */
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

/** The kinds of values in a query, as the error texts name them (docs/interface/errors.md#queries). */
export type QueryValueKind = 'String' | 'Bool' | 'Number' | 'Null' | 'Date'

/** The source of a geographical query: URL parameters or the `expression` of a payload. */
export type GeoQuerySource = 'url' | 'payload'

/**
 * The owner of the location (docs/interface/geography.md#geojson): an attribute of a new entity, a new attribute, or an
 * existing one.
 */
export type LocationPrefix = '' | ' for new attribute' | ' for existing attribute'

/** The result of one entity of a batch (docs/interface/batch.md#outcome); null: the entity itself is missing. */
export type BatchPart = {
  /** Its label. */
  readonly entity: string
  readonly names: readonly string[] | null
}

const existingPhrase = 'one or more of the attributes in the request already exist: '
const missingPhrase = 'do not exist: '

const namesOf = (entity: string, names: readonly string[]): string => `${entity} - [ ${names.join(', ')} ]`

/** Later parts have no dash before "entity itself": existing clients expect it so. */
const partText = ({ entity, names }: BatchPart, index: number): string =>
  names ? namesOf(entity, names) : `${entity}${index === 0 ? ' -' : ''} [entity itself]`

const othersText = (others: 'none' | 'done' | AnyRefusal): string =>
  others === 'none'
    ? ''
    : `; ${others === 'done' ? 'the others were done' : `of the others, not all were done: ${refusalText(others)}`}`

/** The number of names that a text lists; it counts the rest. */
const namesMax = 10

const listed = (names: readonly string[]): string =>
  names.slice(0, namesMax).join(', ') + (names.length > namesMax ? ` and ${names.length - namesMax} more` : '')

const geo = slot((source: GeoQuerySource) =>
  source === 'url' ? 'Invalid query: ' : 'error parsing geo-query fields: ',
)('source')
const location = slot((prefix: LocationPrefix) => `error parsing location attribute${prefix}: `)('prefix')
const place = slot<IdentifierPlace>()('place')
const language = slot<'q' | 'mq'>()('language')
const megabytes = slot((bytes: number) => `${Math.max(0, Math.floor(bytes / 1_048_576))} MB`)

const parseError = rulesOf('ParseError')
const unprocessable = rulesOf('Unprocessable')
const forbidden = rulesOf('Forbidden')
const noStorage = rulesOf('InsufficientStorage')
const tooLarge = rulesOf('RequestEntityTooLarge')
const internal = rulesOf('InternalServerError')
const unavailable = rulesOf('Unavailable')
const unauthorized = rulesOf('Unauthorized')

export const refusalRules = {
  // docs/interface/requests.md#content-type: Content-Type
  noContentType: rule(
    'UnsupportedMediaType',
    'Content-Type header not used, default application/octet-stream is not supported',
  ),
  contentType: rulesOf('UnsupportedMediaType')`not supported content type: ${'type'}`,
  contentCoding: rulesOf('UnsupportedMediaType')`not supported content coding: ${'coding'}, supported: ${'supported'}`,
  contentTypeWithoutBody: bad(
    'Orion accepts no payload for GET/DELETE requests. HTTP header Content-Type is thus forbidden',
  ),

  // docs/interface/requests.md#accept: Accept
  acceptNothingKnown: rule('NotAcceptable', 'no acceptable mime-type in accept header'),
  acceptJson: rule('NotAcceptable', 'acceptable MIME types: application/json'),
  acceptTextForScalar: rule('NotAcceptable', 'accepted MIME types: text/plain'),
  acceptEmpty: bad('empty accept header'),
  acceptQWithoutEqual: bad('missing equal-sign after q in accept header'),
  acceptQWithoutValue: bad('qvalue in accept header is missing'),
  acceptQNotNumber: bad('qvalue in accept header is not a number'),

  // docs/interface/requests.md#bodies: body
  payloadTooLarge: tooLarge`payload size: ${num('bytes')}, max size supported: ${num('bytesMax')}`,
  /** The full length is unknown: reading ends at the limit. */
  payloadBeyond: rule(
    'RequestEntityTooLarge',
    ['bytesMax'],
    (bytesMax: number) => `payload size: more than ${bytesMax}, max size supported: ${bytesMax}`,
  ),
  payloadInflates: tooLarge`payload size: more than ${num('ratioMax')} times what was sent`,
  notInflated: parseError`Errors found in incoming ${'coding'} data`,
  lengthRequired: rule('ContentLengthRequired', 'Zero/No Content-Length in PUT/POST/PATCH request'),
  emptyPayload: bad('empty payload'),
  notJson: parseError('Errors found in incoming JSON buffer'),
  nestedTooDeep: parseError`attribute or metadata value has overpassed maximum nesting limit: ${num('depthMax')}`,

  // docs/interface/requests.md#paths, docs/interface/requests.md#methods: path and method
  unknownPath: bad('Service not found. Check your URL as probably it is wrong.'),
  pathElsewhere: rule('NotFound', 'Service not found at this port of the broker'),
  charactersInPath: bad('invalid character in URI'),
  method: rule('MethodNotAlowed', 'method not allowed'),

  // docs/interface/requests.md#url-parameters: URL parameters
  parameterEmpty: bad`Empty right-hand-side for URI param /${'name'}/`,
  charactersInParameter: bad('invalid character in URI parameter'),
  limitNotNumber: bad`Bad pagination limit: /${'text'}/ [must be a positive integer number]`,
  limitTooHigh: bad`Bad pagination limit: /${'text'}/ [max: ${num('limitMax')}]`,
  offsetNotNumber: bad`Bad pagination offset: /${'text'}/ [must be a decimal number]`,
  options: bad('Invalid value for URI param /options/'),
  orderKeysTooMany: bad`number of keys in orderBy: ${num('count')}, max supported: ${num('countMax')}`,
  idAndIdPattern: bad('Incompatible parameters: id, IdPattern'),
  typeAndTypePattern: bad('Incompatible parameters: type, typePattern'),
  idPattern: bad('Invalid regex for entity idPattern'),
  typePattern: bad('Invalid regex for entity typePattern'),
  selectionPatternsTooMany: bad`number of regular expressions for ids and types: max supported: ${num('countMax')}`,
  selectionPatternsTooLarge: bad`steps of all regular expressions for ids and types: max supported: ${num('stepsMax')}`,

  // docs/interface/entities.md#identifiers, docs/interface/entities.md#forbidden-characters: identifiers and values
  identifierCharacters: bad`Invalid characters in ${place}`,
  identifierTooShort: bad`${place} length: 0, min length supported: 1`,
  identifierTooLong: bad`${place} length: ${num('length')}, max length supported: ${num('lengthMax')}`,
  /** `what`: the thing whose number exceeds the limit (limits.ts). */
  tooMany: bad`too many ${slot<CountedThing>()('what')}: ${num('count')}, at most ${num('countMax')}`,
  charactersInValue: bad('Invalid characters in attribute value'),
  charactersInMetadataValue: bad('Invalid characters in metadata value'),

  // docs/interface/tenants-and-paths.md#tenants: tenant
  vendorHeaderTwice: bad`header ${'header'} is given more than once`,
  vendorHeadersDiffer: rule('BadRequest', ['name'], (name: string) => `headers Ctx-${name} and Fiware-${name} differ`),
  tenantCharacters: bad('bad character in tenant name - only underscore and alphanumeric characters are allowed'),
  tenantTooLong: bad`bad length - a tenant name can be max ${num('lengthMax')} characters long`,

  // docs/interface/tenants-and-paths.md#service-paths: service path
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

  // docs/interface/entities.md#special-types, docs/interface/entities.md#expiry: special types
  date: bad('date has invalid format'),
  expiryType: bad('error processing date expiration attribute, see log traces'),

  // docs/interface/entities.md#attributes: attributes and metadata
  attributeNotObject: bad('attribute must be a JSON object, unless keyValues option is used'),
  attributeUnknownKey: bad('unrecognized property for context attribute'),
  attributeTypeNotString: bad('invalid JSON type for attribute type'),
  attributeValueTwice: bad('duplicated value key in attribute'),
  metadataNotObject: bad('metadata not a JSON object'),
  metadataElementNotObject: bad('metadata must be a JSON object'),
  metadataUnknownKey: bad('invalid JSON field for attribute metadata'),
  metadataTypeNotString: bad('invalid JSON type for attribute metadata type'),
  attributeTwice: bad`duplicated attribute /${'name'}/`,
  keyTwice: bad`duplicated tag-name: /${'key'}/ in path: ${'path'}`,

  // docs/interface/errors.md#queries: q and mq
  queryEmpty: bad('empty q'),
  statementEmpty: bad('empty q-item'),
  statementBlank: bad('empty q-item (only whitespace)'),
  statementWithoutLeft: bad('empty left-hand-side in q-item'),
  statementWithoutRight: bad('empty right-hand-side in q-item'),
  charactersInQueryPath: bad`invalid character found in URI param /${language}/`,
  charactersInFilter: bad('forbidden characters in String Filter'),
  forcedStringUnclosed: bad('non-terminated forced string'),
  forcedStringQuote: bad('quote in forced string'),
  valueKind: bad`values of type /${slot<QueryValueKind>()('type')}/ not supported for operator /${slot<QueryOperator>()('operator')}/`,
  rangeOperator: bad('ranges only valid for equal and not equal ops'),
  rangeEmptyEnd: bad('empty item in range'),
  rangeMixed: bad('invalid range: types mixed'),
  rangeFromKind: bad('invalid data type for /range-from/'),
  rangeToKind: bad('invalid data type for /range-to/'),
  listOperator: bad('lists only valid for equal and not equal ops'),
  listEmptyItem: bad('empty item in list'),
  listItemKind: bad('invalid JSON value type in list'),
  filterPattern: bad`error compiling filter regex: '${'pattern'}'`,
  metadataFilterUnary: bad('no metadata in right-hand-side of q-item'),
  metadataFilterWithoutMetadata: bad('no metadata name - not valid for metadata filters'),
  metadataFilterWithoutAttribute: bad('no attribute name - not valid for metadata filters'),
  // Ours: cases that the table leaves open.
  queryPathEmptyName: bad('empty name in path of q-item'),
  queryTooLong: bad`${language} length: ${num('length')}, max length supported: ${num('lengthMax')}`,
  statementsTooMany: bad`number of statements in ${language}: ${num('count')}, max supported: ${num('countMax')}`,
  queryPatternsTooMany: bad`number of regular expressions in ${language}: max supported: ${num('countMax')}`,
  queryPatternsTooLarge: bad`steps of all regular expressions in ${language}: max supported: ${num('stepsMax')}`,

  // docs/interface/geography.md: locations
  locationSecond: rule(
    'NoResourceAvailable',
    'You cannot use more than one geo location attribute when creating an entity. ' +
      'Use ignoreType metadata if you want to add additional informative locations.',
  ),
  geoJsonKind: bad('geo:json needs an object or null as value'),
  geoJson: bad('Wrong GeoJson'),
  featuresMissing: bad`${location}features field not found in FeatureCollection`,
  featuresNotArray: bad`${location}features in FeatureCollection is not an array`,
  featuresEmpty: bad`${location}features in FeatureCollection has 0 items`,
  featuresTooMany: bad`${location}features in FeatureCollection has more than 1 item`,
  featureWithoutGeometry: bad`${location}geometry in Feature not found`,
  featureGeometryKind: bad`${location}geometry in Feature is not an object`,
  legacyLocationNotArray: bad`${location}geo:line, geo:box and geo:polygon needs array of strings as value`,
  legacyLocationElementKind: bad`${location}geo:line, geo:box and geo:polygon needs array of strings but some element is not a string`,
  legacyCoordinates: bad`${location}geo coordinates format error [see Orion user manual]: ${'given'}`,
  legacyLineCount: bad`${location}geo:line uses at least 2 coordinates`,
  legacyBoxCount: bad`${location}geo:box uses exactly 2 coordinates`,
  legacyBoxFlat: bad`${location}geo:box coordinates are not defining an actual box`,
  legacyPolygonCount: bad`${location}geo:polygon uses at least 4 coordinates`,
  legacyPolygonOpen: bad`${location}geo:polygon first and last coordinates must match`,

  // docs/interface/geography.md#queries, docs/interface/errors.md#geography: geographical queries
  coordsWithoutGeometry: bad('Invalid query: URI param /coords/ used without /geometry/'),
  geometryWithoutCoords: bad('Invalid query: URI param /geometry/ used without /coords/'),
  georelWithoutGeometry: bad('Invalid query: URI param /georel/ used without /geometry/'),
  geoPartial: bad('partial geo expression: geometry, georel and coords have to be provided together'),
  geometryWord: bad`${geo}error parsing geometry: Invalid selector in geometry specification`,
  geometryTwice: bad`${geo}error parsing geometry: geometry-type present more than once`,
  georelWord: bad`${geo}Invalid modifier in georel parameter`,
  georelTwice: bad`${geo}georel type present more than once`,
  distanceTwice: bad`${geo}${'modifier'} present more than once`,
  distanceNumber: bad`${geo}invalid number for ${'modifier'}`,
  distanceWithoutNear: bad`${geo}${'modifier'} erroneously used with georel /${'georel'}/`,
  nearWithoutDistance: bad`${geo}georel /near/ without either minDistance nor maxDistance`,
  nearWithoutPoint: bad`${geo}georel /near/ used with geometry different than point`,
  geometryOfCoveredBy: bad`${geo}${'geometry'} geometry cannot be used with coveredBy georel`,
  coordsPair: bad`${geo}invalid point in URI param /coords/`,
  coordsRange: bad`${geo}invalid coordinates`,
  coordsCount: bad`${geo}invalid number of coordinates for /${'geometry'}/`,
  polygonCount: bad`${geo}Too few coordinates for polygon`,
  polygonOpen: bad`${geo}First and last point in polygon not the same`,
  boxFlat: bad`${geo}box coordinates are not defining an actual box`,
  // Ours: the reference leaves these to its data store.
  polygonCrossed: bad`${geo}polygon crosses or touches itself`,
  coordsTooLong: bad`${geo}coords length: ${num('length')}, max length supported: ${num('lengthMax')}`,
  positionsTooMany: bad`${geo}coordinates in coords: ${num('count')}, max number supported: ${num('countMax')}`,

  // docs/interface/updates.md#create, docs/interface/updates.md#one-entity,
  // docs/interface/updates.md#single-attributes: entities and attributes
  entityIdKind: bad('Invalid JSON type for entity id'),
  entityTypeKind: bad('Invalid JSON type for entity type'),
  entityIdInPayload: bad('entity id specified in payload'),
  entityTypeInPayload: bad('entity type specified in payload'),
  entityNotFound: rule('NotFound', 'The requested entity has not been found. Check type and id'),
  entityAmbiguous: rule('TooManyResults', 'More than one matching entity. Please refine your query'),
  entityExists: unprocessable('Already Exists'),
  attributeNotFound: rule('NotFound', 'The entity does not have such an attribute'),
  attributesExist: ruleOfKinds(
    ['kind', 'entity', 'existing'],
    (_: 'Unprocessable' | 'PartialUpdate', entity: string, existing: readonly string[]) =>
      existingPhrase + namesOf(entity, existing),
  ),
  attributesMissing: ruleOfKinds(
    ['kind', 'entity', 'missing'],
    (_: 'Unprocessable' | 'PartialUpdate', entity: string, missing: readonly string[]) =>
      missingPhrase + namesOf(entity, missing),
  ),

  // docs/interface/updates.md#plain-values: values as text
  textUnclosed: bad('Missing citation-mark at end of string'),
  textUnknown: bad('attribute value type not recognized'),

  // docs/interface/updates.md#operators-that-do-not-fit: an operator that does not fit the stored value. The status is
  // fixed, the text is ours.
  operatorStored: internal`Database Error (${'operator'} needs ${'needed'} as stored value)`,
  operatorArgument: internal`Database Error (${'operator'} needs ${'needed'} as argument)`,
  operatorRange: internal`Database Error (${'operator'} yields a number out of range)`,
  operatorEach: internal`Database Error (${'operator'} takes nothing but $each)`,
  operatorEachKind: internal`Database Error (${'operator'} needs an array as argument of $each)`,
  operatorSetKind: internal('Database Error ($set needs an object as argument when $unset has one)'),
  operatorKeyTwice: internal`Database Error ($set and $unset both name ${'key'})`,

  // docs/interface/types.md: types
  typeNotFound: rule('NotFound', 'Entity type not found'),

  // docs/interface/batch.md: batches
  payloadNothingRelevant: bad('Invalid JSON payload, no relevant fields found'),
  payloadField: bad`Unrecognized field in JSON payload: /${'name'}/`,
  payloadFieldMissing: bad`Invalid JSON payload, mandatory field /${'name'}/ not found`,
  entitiesNotArray: bad('not a JSON array'),
  entitiesEmpty: bad('empty entities vector'),
  entityNotObject: bad('entity is not a JSON object'),
  idAndIdPatternInPayload: bad('both /id/ and /idPattern/ present'),
  typeAndTypePatternInPayload: bad('both /type/ and /typePattern/ present'),
  noId: bad('nor /id/ nor /idPattern/ present'),
  attributesInSelector: bad('no attributes allowed in Entity in this payload'),
  selectorKind: bad`Invalid JSON type for entity ${'name'}`,
  listNotArray: bad`the field /${'name'}/ must be a JSON array`,
  listNotStrings: bad`only JSON Strings allowed in ${'name'} list`,
  batchAction: bad('invalid update action type: right ones are: append, appendStric, delete, replace, update'),
  batchIdPattern: rule('NotImplemented', 'NotImplemented'),
  batch: ruleOfKinds(
    ['kind', 'what', 'parts'],
    (_: 'NotFound' | 'Unprocessable' | 'PartialUpdate', what: 'existing' | 'missing', parts: readonly BatchPart[]) =>
      (what === 'existing' ? existingPhrase : missingPhrase) + parts.map(partText).join(', '),
  ),
  subscriptionIdMissing: bad('invalid JSON payload, mandatory field /subscriptionId/ not found'),
  subscriptionIdKind: bad('/subscriptionId/ must be a JSON string'),
  notifiedDataNotArray: bad('notification field /data/ must be a JSON array'),
  notifiedItemNotObject: bad('notification data vector item must be a JSON object'),
  notifiedFormatUnsupported: bad`attribute render format /${'format'}/ not supported for notifications`,
  notifiedFormat: bad('invalid render format for notifications'),
  notifiedAlteration: bad(
    'invalid alteration type for notifications, accepted values: entityCreate, entityChange, entityUpdate, entityDelete',
  ),

  // docs/interface/batch.md#query and docs/interface/errors.md#subscriptions: fields of payloads, with the name that
  // each text uses
  fieldMissing: bad`${'name'} is missing`,
  fieldEmpty: bad`${'name'} is empty`,
  fieldNotObject: bad`${'name'} is not an object`,
  fieldNotString: bad`${'name'} is not a string`,
  fieldNotInteger: bad`${'name'} is not an int`,
  fieldNotBoolean: bad`${'name'} is not a bool`,
  charactersIn: bad`forbidden characters in ${'place'}`,

  // docs/interface/subscriptions.md#create, docs/interface/errors.md#subscriptions, docs/interface/registrations.md,
  // docs/interface/registrations.md#which-provider-is-asked
  ...documentRules,

  // docs/interface/administration.md#log-settings, docs/interface/administration.md#trace-levels,
  // docs/interface/administration.md#metrics-by-tenant: administration
  logConfigMissing: bad('log config missing'),
  logLevel: bad('invalid log level'),
  logSize: rule('BadRequest', ['name'], (name: string) => `invalid ${name}, ${name} should be an integer number > 0`),
  traceLevels: bad('poorly formatted trace level string'),
  metricsOff: bad('metrics desactivated'),

  // Ours: limits that the interface does not define.
  subscriptionsTooMany: unprocessable`there are ${num('max')} subscriptions, and no room for more: delete some`,
  patternsTooCostly: forbidden`too many costly patterns: with this subscription one event may take ${num('steps')} steps in the patterns of the tenant, max ${num('stepsMax')}`,
  subscriptionTooLarge: tooLarge`subscription size: ${num('bytes')}, max size supported: ${num('bytesMax')}`,
  registrationsTooMany: unprocessable`there are ${num('max')} registrations, and no room for more: delete some`,
  registrationTooLarge: tooLarge`registration size: ${num('bytes')}, max size supported: ${num('bytesMax')}`,
  entityTooLarge: tooLarge`entity size: ${num('bytes')}, max size supported: ${num('bytesMax')}`,
  scanTooLarge: bad`the query has to look into ${num('rows')} entities, more than ${num('max')}: narrow it by id, type or service path`,
  scanTooLong: unavailable`the query has taken longer than ${num('ms')} ms: narrow it by id, type or service path`,
  pageTooDeep: bad('the page begins too deep in the list: narrow the query by id, type or service path'),
  /** The full size is unknown: reading ends at the limit. */
  answerTooLarge: rule(
    'BadRequest',
    ['bytesMax'],
    (bytesMax: number) =>
      `answer size: more than ${bytesMax} bytes, max size supported: ${bytesMax}, ask for fewer entities at a time with limit`,
  ),
  answersTooMany: unavailable('the answers under way take all the memory that answers may have, try again later'),
  requestsTooMany: unavailable('too many requests are waiting, try again later'),
  /** The asked node does not own the shard, or not any more. Nothing has happened: ask again. */
  ownerChanging: unavailable(
    'a part of the broker cannot be reached, nothing was done, try again later: its owner is changing',
  ),
  unreachable: unavailable`a part of the broker cannot be reached, nothing was done, try again later: ${'reason'}`,
  unanswered: unavailable`a part of the broker does not answer, try again later: ${'reason'}`,
  outcomeUnknown: unavailable`a part of the broker does not answer, whether the change was made is unknown: ${'reason'}`,
  /** `unknown`: labels of entities, out of `count`. `others`: the result of the others, if there are any. */
  batchUnknown: ruleOfKinds(
    ['kind', 'unknown', 'count', 'reasons', 'others'],
    (
      _: 'Unavailable' | 'InternalServerError',
      unknown: readonly string[],
      count: number,
      reasons: readonly string[],
      others: 'none' | 'done' | AnyRefusal,
    ): string =>
      `the outcome is unknown for ${unknown.length} of ${count} entities (${listed(unknown)}): ${listed(reasons)}` +
      othersText(others),
  ),
  /** `freeBytes`: free bytes above the reserve. */
  noRoom: noStorage`no room on the disk of this node: ${megabytes('freeBytes')} free, ${megabytes('reservedBytes')} reserved`,
  auditUnwritable: unavailable('the audit log cannot be written: no request may change anything until it can'),
  stopping: unavailable('the node is stopping or its store has failed'),
  copiesWait: unavailable('the disk of this node is full: its copies wait for room'),
  /** `reason`: what the log engine has lost, compared with what this node knows. */
  notReady: unavailable`${'reason'}`,
  handingOver: unavailable('not all shards have found another owner yet'),
  failure: internal`${'reason'}`,

  // Ours: the console.
  consoleMissing: rule('NotFound', 'the console was not built (npm run build)'),
  consoleFile: rule('NotFound', 'there is no such file of the console'),
  /** `max`: bytes. */
  tileRange: bad`tiles are read by parts: Range has to be bytes=first-last within the file, of at most ${num('max')} bytes`,

  // Ours: streams (docs/interface/errors.md#streams).
  streamsOff: rule('NotFound', 'streams are off on this broker (-noStreams)'),
  streamsTooMany: unavailable`there are ${num('max')} streams, and no room for more: try again later`,
  filtersTooMany: unavailable`streams have ${num('max')} different filters, and no room for more: try again later`,
  acceptEvents: rule('NotAcceptable', 'acceptable MIME types: text/event-stream'),
  minInterval: bad`minInterval must be a whole number of milliseconds, at most ${num('max')}`,
  gather: bad`gather must be a whole number of milliseconds, at most ${num('max')}`,
  cursor: bad('from, or the header Last-Event-ID, is not a cursor of a stream'),
  streamScope: bad`the parameter ${'parameter'} and the header ${'header'} differ`,
  watchEntitiesTwice: bad('Incompatible parameters: entities, and id, type, idPattern or typePattern'),
  webSocketHandshake: bad('a WebSocket needs a Sec-WebSocket-Key, and Sec-WebSocket-Version 13'),
  foreignOrigin: forbidden`pages of ${'origin'} may not open a WebSocket here (-corsOrigin)`,
  socketMessage: bad('a message must be a JSON object with the member op, and no member twice'),
  socketOp: bad`unknown op: ${'op'}`,
  socketToken: bad`token must be a text of at most ${num('max')} characters`,
  socketBody: bad('body must be a JSON object, as of POST /v2/op/update'),
  watchId: bad`id must be a text of at most ${num('max')} characters`,
  watchTaken: bad`there is a watch ${'id'} on this connection`,
  watchUnknown: rule('NotFound', ['id'], (id: string) => `there is no watch ${id} on this connection`),
  updateRef: bad`ref must be a number, or a text of at most ${num('max')} characters`,
  updatesTooMany: unavailable`there are ${num('max')} updates without an answer on this connection`,
  updatesTooLarge: unavailable`the updates without an answer on this connection have more than ${num('max')} bytes`,
  watchExpressionTwice: bad('Incompatible parameters: expression, and q, mq, georel, geometry or coords'),

  // Ours: ngsi-proxy (docs/interface/errors.md#ngsi-proxy).
  eventSourceNotFound: rule('NotFound', 'there is no such event source'),
  callbackNotFound: rule('NotFound', 'there is no such callback'),
  eventSourcesTooMany: unavailable`there are ${num('max')} event sources, and no room for more: try again later`,
  callbacksTooMany: unavailable`there are ${num('max')} callbacks, and no room for more: try again later`,
  connectionId: bad('connection_id must be the id of an event source'),
  hostUnusable: bad('Host, or X-Forwarded-Host, must be a host with or without a port'),

  // Ours: backups (docs/operations/backup.md).
  backupOff: forbidden('backups are off: start with -backupKeyFile'),
  backupKey: forbidden('the key of -backupKeyFile is missing, or it is another one'),
  backupUnderWay: rule('Conflict', 'a backup is under way: wait until it has ended'),
  /** `reason`: the shards that cannot be asked. */
  backupIncomplete: unavailable`the backup would not have all shards: ${'reason'}`,

  // Ours: tenants (docs/operations/tenants.md). `tenant` is a name as operators see it.
  tenantNotFound: rule('NotFound', ['tenant'], (tenant: string) => `there is no tenant ${tenant}`),
  tenantNotConfirmed: bad`a deletion has to name the tenant twice: add the parameter confirm with the value ${'tenant'}`,
  tenantDeleting: unavailable`the tenant ${'tenant'} is being deleted, nothing was done, try again later`,
  tenantDeletionsTooMany: unavailable`${num('max')} tenants are being deleted, and no more at a time: try again later`,
  tenantsTooMany: bad`there are more than ${num('max')} tenants, too many for a list: ask for one by its name`,

  // Ours: access control (docs/interface/errors.md#access-control). `action` is what a rule would have to allow.
  /** `paths`: as the request names them. `tenant`: the name for operators. */
  actionNotAllowed: forbidden`not allowed: ${'action'} in ${'paths'} of tenant ${'tenant'}`,
  entityNotAllowed: forbidden`not allowed: ${'action'} of ${'entity'} in ${'paths'} of tenant ${'tenant'}`,
  attributeNotAllowed: forbidden`not allowed: ${'action'} of attribute ${'attribute'} of ${'entity'} in ${'paths'} of tenant ${'tenant'}`,
  /** The request also means attributes that it does not name. */
  attributesNotAllowed: forbidden`not allowed: ${'action'} of all attributes of ${'entity'} in ${'paths'} of tenant ${'tenant'}`,
  /** `filter`: the name of the parameter or the member that names the attribute. */
  filterNotAllowed: forbidden`not allowed: ${'filter'} on attribute ${'attribute'} in ${'paths'} of tenant ${'tenant'}`,
  brokerNotAllowed: forbidden`not allowed: ${'action'} of this broker`,
  proofMissing: unauthorized('no key, token or certificate was shown'),
  proofMalformed: unauthorized('the key or token is malformed'),
  proofExpired: unauthorized('the key, token or certificate has expired'),
  /** It says no more: the reason would help to find a proof that fits. */
  proofUnknown: unauthorized('the key, token or certificate is not known here'),
  proofsDiffer: bad('the request shows two different proofs'),
  verificationsTooMany: unavailable('too many tokens are being verified, try again later'),
  issuerKeysMissing: unavailable('the keys of the issuer of the token are missing, try again later'),
  /** `what`: the quota. */
  quotaUsedUp: rule(
    'QuotaExceeded',
    ['tenant', 'max', 'what'],
    (tenant: string, max: number, what: string) => `tenant ${tenant} may have ${max} ${what}`,
  ),
  /** `seconds`: until the request may be allowed. */
  rateUsedUp: rule(
    'TooManyRequests',
    ['tenant', 'max', 'seconds'],
    (tenant: string, max: number, seconds: number) =>
      `tenant ${tenant} may make ${max} requests in a second: try again in ${seconds} s`,
  ),
  /** A fault of the access file, with its line and place. It is no answer to a client. */
  accessFile: bad`${'fault'}`,

  // Ours: lines of an export (docs/operations).
  badLine: bad`${'problem'}`,

  /** A refusal from another build, with a code that this build does not know: its kind, code and text. */
  unknownCode: ruleOfKinds(['kind', 'name', 'text'], (_: RefusalKind, _name: string, text: string) => text),
} as const satisfies Record<string, Rule>

/** The rules at compile time. */
export type RefusalRules = typeof refusalRules
export type RefusalCode = keyof RefusalRules

/** The text of a refusal for humans, not yet HTML-escaped. */
export function refusalText(refusal: AnyRefusal): string {
  const { names, text }: Rule = refusalRules[refusal.code as RefusalCode]
  return (text as (...facts: unknown[]) => string)(
    ...names.map(name => (refusal as unknown as Record<string, unknown>)[name]),
  )
}
