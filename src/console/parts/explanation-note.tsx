// Why a subscription would notify of an entity, or would not.

import type { Explanation } from '../../domain/subscriptions/explanation.js'

export function ExplanationNote({ explanation }: { readonly explanation: Explanation }) {
  const { fires, reason, conditions } = explanation
  return (
    <div>
      <p>
        <strong>{fires ? 'An update can trigger it' : 'It does not trigger'}</strong>:{' '}
        <span class="wrap">{reason}</span>
      </p>
      <ul class="conditions">
        {conditions.map(({ condition, holds, text }) => (
          <li key={condition} class={holds ? 'holds' : 'fails'}>
            {holds ? '✓' : '✗'} {condition}: <span class="wrap">{text}</span>
          </li>
        ))}
      </ul>
    </div>
  )
}
