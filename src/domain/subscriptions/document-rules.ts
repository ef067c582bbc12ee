// The rules of refusals of subscriptions and registrations, and of forwarded requests, with the texts of
// docs/interface/subscriptions.md.

import { bad, num, rule, slot } from '../refusal-kind.js'
import { withoutSecretEntries, withoutUserinfo } from './secrets.js'

/** An entity, by its label, with its attributes that were not updated. */
type LeftPart = { readonly entity: string; readonly names: readonly string[] }

const leftText = (left: readonly LeftPart[]): string =>
  `Some of the following attributes were not updated: { ${left.map(({ entity, names }) => `${entity} : [${names.join(', ')}]`).join(', ')} }`

/** A provider that has refused a request at this URL, with the status of its answer. */
export type ProviderRefusal = { readonly url: string; readonly status: number }

/** The number of providers that a text lists; it counts the rest. */
const providersNamedMax = 10

function refusedText(providers: readonly ProviderRefusal[]): string {
  const named = providers
    .slice(0, providersNamedMax)
    .map(({ url, status }) => `${withoutUserinfo(withoutSecretEntries(url))} ${status}`)
  const more = providers.length - named.length
  return `; providers answered: ${named.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

export const documentRules = {
  // docs/interface/subscriptions.md#create: operations on subscriptions
  subscriptionPaths: bad('max one service-path allowed for subscriptions'),
  subscriptionNotFound: rule('NotFound', 'The requested subscription has not been found. Check id'),
  subscriptionIdLength: bad`Invalid subscription ID: bad length - ${num('length')} chars expected`,
  subscriptionIdCharacters: bad('Invalid subscription ID: invalid char in ID string'),
  // Ours.
  notificationUrlDenied: bad`notification url is not allowed here: ${slot(withoutUserinfo)('url')}`,
  providerUrlDenied: bad`provider url is not allowed here: ${'url'}`,
  /** `field`: the field with the mask. */
  maskForOtherReceiver: bad`a masked value is kept for the same scheme, host and port only, give the value itself: ${'field'}`,
  explainWithoutEntity: bad('URI param /entity/ is missing: options explain is about one stored entity'),

  // docs/interface/registrations.md#updates-to-providers: updates that are forwarded
  partlyForwarded: rule('PartlyForwarded', ['left'], leftText),
  // Ours: the same with the providers that refused (docs/interface/forwarding.md).
  partlyForwardedAndRefused: rule(
    'PartlyForwarded',
    ['left', 'providers'],
    (left: readonly LeftPart[], providers: readonly ProviderRefusal[]) => leftText(left) + refusedText(providers),
  ),
  entityRefusedByProviders: rule(
    'NotFound',
    ['providers'],
    (providers: readonly ProviderRefusal[]) =>
      `The requested entity has not been found. Check type and id${refusedText(providers)}`,
  ),

  // docs/interface/registrations.md: registrations
  registrationNotFound: rule('NotFound', 'The requested registration has not been found. Check id'),
  payloadNotObject: bad('not a JSON object'),
  descriptionKind: bad('invalid description'),
  fieldMissingInPayload: bad`the field /${'name'}/ is missing in payload`,
  fieldNotFoundIn: bad`/${'parent'}/ must contain a field /${'name'}/`,
  fieldNotJsonObject: bad`/${'name'}/ must be a JSON object`,
  dataProvidedEmpty: bad('/dataProvided/ is empty'),
  providerEmpty: bad('/provider/ empty'),
  providedIdPattern: rule('NotImplemented', 'Unsupported idPattern'),
  providedTypePattern: rule('NotImplemented', 'typePattern is not supported'),
  /** `problem` ends the sentence. */
  providerUrl: rule(
    'BadRequest',
    ['problem'],
    (problem: 'must be a JSON string' | 'cannot be the empty string' | 'is invalid') =>
      `/url/ field of /http/ ${problem}`,
  ),
  forwardingModeKind: bad('/supportedForwardingMode/ must be a JSON string'),
  forwardingMode: bad('invalid value of /supportedForwardingMode/'),
  legacyForwarding: bad('the field /legacyForwarding/ must be a boolean'),
  registrationExpires: bad('the field /expires/ has an invalid format'),
  registrationStatusKind: bad('/status/ must be a string'),
  registrationStatus: bad('invalid value for /status/'),

  // docs/interface/errors.md#subscriptions: simple fields, subject
  descriptionTooLong: bad('max description length exceeded'),
  noSubject: bad('no subject for subscription specified'),
  noNotification: bad('no notification for subscription specified'),
  expires: bad('expires has an invalid format'),
  status: bad('status is not valid: it has to be either active, inactive or oneshot'),
  noSubjectEntities: bad('no subject entities specified'),
  subjectEntitiesNotArray: bad('/entities/ is not an array'),
  subjectEntityWithoutId: bad('/entities/ vector item does not have /id/ nor /idPattern/'),
  subjectEntityBothIds: bad('/entities/ vector item has both /id/ and /idPattern/'),
  subjectEntityBothTypes: bad('/entities/ element has both /type/ and /typePattern/'),
  subjectEntityTooLong: rule(
    'BadRequest',
    ['field'],
    (field: 'id' | 'type') => `max ${field} length exceeded in /entities/ vector item /${field}/`,
  ),

  // docs/interface/errors.md#subscriptions: lists of names, condition
  nameNotString: bad`only JSON Strings allowed in string vector /${'list'}/`,
  nameEmpty: bad`empty string found in string vector /${'list'}/`,
  nameTwice: bad`duplicated item /${'name'}/ in array`,
  alterationType: bad`unknown subscription alterationType: ${'name'}`,

  // docs/interface/errors.md#subscriptions: notification
  transportTwice: bad('only one of http, httpCustom, mqtt or mqttCustom is allowed'),
  attrsAndExceptAttrs: bad('http notification has attrs and exceptAttrs'),
  coveredWithoutList: bad('covered true cannot be used if notification attributes list is empty'),
  attrsFormat: bad(
    'invalid attrsFormat, accepted values: ' +
      'legacy, normalized, simplifiedNormalized, keyValues, simplifiedkeyValues, values',
  ),
  maxFailsLimit: bad('maxFailsLimit must be greater than zero'),

  // docs/interface/errors.md#subscriptions: HTTP transports, custom payloads
  httpUrl: bad('Invalid URL parsing notification url'),
  httpCustomUrl: bad('invalid custom /url/'),
  httpUrlIsMqtt: bad('mqtt URL cannot be used in http notifications'),
  timeoutRange: bad`timeout field must be an integer between 0 and ${num('max')}`,
  httpMethod: bad('unknown method httpCustom notification'),
  customBodyTwice: bad(
    'only one of payload, json or ngsi fields accepted at the same time in httpCustom or mqttCustom',
  ),
  customJson: bad('json fields in httpCustom or mqttCustom must be object or array'),
  customMetadata: bad('metadata are not allowed in ngsi field in custom notifications'),
  customNestedTooDeep: bad`attribute or metadata value has overpassed maximum nesting limit: ${num('depthMax')}`,

  // docs/interface/errors.md#subscriptions: MQTT transports
  mqttUrl: bad('invalid mqtt /url/'),
  mqttUrlIsHttp: bad('http or https URL cannot be used in mqtt notifications'),
  mqttUrlPath: bad('path cannot be used in mqtt url, use topic instead'),
  mqttLogin: bad('you must use user and passwd fields simultaneously'),
  mqttQos: bad('mqtt qos field must be an integer in the 0 to 2 range'),
  mqttTopicEmpty: bad('empty mqtt field /topic/'),
  mqttTopicWildcard: bad('+ and # are not allowed in mqtt field /topic/'),
} as const
