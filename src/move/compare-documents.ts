// Compares a subscription or registration of the target with the one that an import brings.
//
// Their content is what their owner wrote: all but the id, the status, and what was counted of notifications. The
// status is compared by itself, since it changes while a subscription works: a one-shot that has fired at the target is
// no other one, nor is a subscription that has expired.
//
// A running broker shows no secrets, and numbers with nine decimals. So the content is there in two forms: as it is
// shown, and in full. A mask that came from a running broker stands for any secret.
//
// Not here: entities (compare.ts), which document of a running broker it is (present-documents.ts).

import { canonical, type JsonObject } from '../domain/json.js'
import { renderRegistration } from '../domain/providers/registration.js'
import { noProgress } from '../domain/subscriptions/subscription.js'
import { renderSubscription } from '../domain/subscriptions/subscription-json.js'
import { storedStatus } from '../domain/subscriptions/subscription-status.js'
import { hasMask } from '../domain/subscriptions/transport-parser.js'
import { subscriptionJson } from './lines.js'
import type { MovedDocument } from './moved.js'

/** The content as a running broker shows it: a text that is equal exactly when the contents are. */
export const shownContent = (document: MovedDocument): string =>
  contentIn(
    document.kind === 'registration'
      ? renderRegistration(document.registration)
      : renderSubscription(document.subscription, noProgress, Number.NEGATIVE_INFINITY),
  )

/** The content in full precision, with its secrets. */
const fullContent = (document: MovedDocument): string =>
  document.kind === 'registration' ? shownContent(document) : contentOf(subscriptionJson(document.subscription))

const contentIn = (shown: string): string => contentOf(JSON.parse(shown))

function contentOf({ id: _, status: __, ...content }: JsonObject): string {
  return canonical(content)
}

/** Whether a document has more than a running broker shows of it. */
export const hasHidden = (document: MovedDocument): boolean => fullContent(document) !== shownContent(document)

/** The status as it stands, without an expiry. */
export const statusOf = (document: MovedDocument): string =>
  document.kind === 'registration'
    ? document.registration.status
    : storedStatus(document.subscription, document.progress)

/** Whether a status that a broker shows is the wanted one, or what has become of it. */
export const isSameStatus = (wanted: string, shown: string): boolean =>
  shown === wanted || shown === 'expired' || shown === 'failed' || (wanted === 'oneshot' && shown === 'inactive')

/** Whether a document of a data directory equals, but for its id, the one that an import brings. */
export function isSameDocument(wanted: MovedDocument, there: MovedDocument): boolean {
  if (pathOf(wanted) !== pathOf(there) || !isSameStatus(statusOf(wanted), statusOf(there))) return false
  const isMasked = wanted.kind === 'subscription' && hasMask(wanted.subscription.notification.transport)
  const content = isMasked ? shownContent : fullContent
  return content(wanted) === content(there)
}

const pathOf = (document: MovedDocument): string =>
  document.kind === 'registration' ? document.registration.servicePath : document.subscription.servicePath
