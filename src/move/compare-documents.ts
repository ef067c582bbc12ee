// Compares a subscription or registration of the target with the one that an import brings.
//
// Their content is the part that their owner wrote: all but the id, the status, and the counters of notifications. The
// status is compared by itself, since it changes while a subscription works. A one-shot that was triggered at the
// target is still the same subscription, and so is one that has expired.
//
// A running broker shows no secrets, and numbers with nine decimals. So there are two forms of the content: as it is
// shown, and in full. A mask that came from a running broker matches any secret.
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

/** The content as a running broker shows it: two texts are equal exactly when the contents are. */
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

/** Whether a document has more content than a running broker shows. */
export const hasHidden = (document: MovedDocument): boolean => fullContent(document) !== shownContent(document)

/** The stored status, without an expiry. */
export const statusOf = (document: MovedDocument): string =>
  document.kind === 'registration'
    ? document.registration.status
    : storedStatus(document.subscription, document.progress)

/** Whether a status that a broker shows is the wanted one, or one that follows from it. */
export const isSameStatus = (wanted: string, shown: string): boolean =>
  shown === wanted || shown === 'expired' || shown === 'failed' || (wanted === 'oneshot' && shown === 'inactive')

/** Whether a document of a data directory equals the one that an import brings, except for its id. */
export function isSameDocument(wanted: MovedDocument, there: MovedDocument): boolean {
  if (pathOf(wanted) !== pathOf(there) || !isSameStatus(statusOf(wanted), statusOf(there))) return false
  const isMasked = wanted.kind === 'subscription' && hasMask(wanted.subscription.notification.transport)
  const content = isMasked ? shownContent : fullContent
  return content(wanted) === content(there)
}

const pathOf = (document: MovedDocument): string =>
  document.kind === 'registration' ? document.registration.servicePath : document.subscription.servicePath
