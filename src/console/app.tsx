// The frame of the console: where the person is (tenant, service path, view), who asks, and whether the broker is there.

import { useEffect, useState } from 'preact/hooks'
import type { BrokerReach } from './interface/console-client.js'
import { Dialog } from './parts/dialog.js'
import type { ViewName } from './state/address.js'
import { type OfferedAction, useAllowances } from './state/allowances.js'
import type { ConsoleParts } from './state/console-parts.js'
import { useValue } from './state/observable.js'
import type { ProofHolder } from './state/proof.js'
import { scopeOf } from './state/scope.js'
import { ClusterView } from './views/cluster.js'
import { EntitiesView } from './views/entities.js'
import { EntityView } from './views/entity.js'
import { OverviewView } from './views/overview.js'
import { RegistrationsView } from './views/registrations.js'
import { RequestView } from './views/request.js'
import { SettingsView } from './views/settings.js'
import { SubscriptionView } from './views/subscription.js'
import { SubscriptionsView } from './views/subscriptions.js'
import { TypesView } from './views/types.js'

interface Navigated {
  readonly view: ViewName
  readonly name: string
  /** Views that belong to it as well. */
  readonly also?: ViewName
  /** The action that rules have to allow; undefined: reading, which every view needs. */
  readonly needs?: OfferedAction
}

const navigation: readonly Navigated[] = [
  { view: 'overview', name: 'Overview', needs: 'metrics' },
  { view: 'entities', name: 'Entities', also: 'entity' },
  { view: 'types', name: 'Types' },
  { view: 'subscriptions', name: 'Subscriptions', also: 'subscription', needs: 'subscribe' },
  { view: 'registrations', name: 'Registrations', needs: 'register' },
  { view: 'cluster', name: 'Cluster', needs: 'admin' },
  { view: 'settings', name: 'Log and settings', needs: 'admin' },
  { view: 'request', name: 'Try it' },
]

const viewOf = {
  overview: OverviewView,
  entities: EntitiesView,
  entity: EntityView,
  types: TypesView,
  subscriptions: SubscriptionsView,
  subscription: SubscriptionView,
  registrations: RegistrationsView,
  cluster: ClusterView,
  settings: SettingsView,
  request: RequestView,
} as const satisfies Record<ViewName, unknown>

/** `/` leads to the first filter of a view. */
function onSlash(event: KeyboardEvent): void {
  if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey) return
  const { target } = event
  if (target instanceof HTMLElement && target.closest('input, textarea, select, dialog')) return
  const first = document.querySelector<HTMLElement>('[data-filter="first"]')
  if (!first) return
  event.preventDefault()
  first.focus()
}

export function App({ holder, ...parts }: ConsoleParts & { readonly holder: ProofHolder }) {
  const { client, bar } = parts
  const address = useValue(bar.address)
  const reach = useValue(client.reach)
  const asksForProof = useValue(client.asksForProof)
  const scope = scopeOf(address)
  const allowed = useAllowances(client, scope)
  const [showsKey, setShowsKey] = useState(false)
  useEffect(() => {
    addEventListener('keydown', onSlash)
    return () => removeEventListener('keydown', onSlash)
  }, [])
  const { view } = address
  const View = viewOf[view]
  const current = navigation.find(one => one.view === view || one.also === view)
  useEffect(() => {
    document.title = `${current?.name ?? ''} – Orrery console`
  }, [current])
  return (
    <>
      <header class="bar">
        <a class="brand" href={bar.link('overview')}>
          Orrery
        </a>
        <nav aria-label="Views">
          {navigation
            .filter(({ needs }) => needs === undefined || allowed.has(needs))
            .map(one => (
              <a key={one.view} href={bar.link(one.view)} aria-current={one === current ? 'page' : undefined}>
                {one.name}
              </a>
            ))}
        </nav>
        <ScopeForm
          key={JSON.stringify(scope)}
          tenant={scope.tenant}
          path={scope.servicePath}
          onChange={(tenant, path) => bar.open(view === 'entity' ? 'entities' : view, { tenant, path })}
        />
        <button type="button" onClick={() => setShowsKey(true)}>
          {useValue(holder.proof) === '' ? 'Key…' : 'Key shown…'}
        </button>
      </header>
      <ReachBar reach={reach} />
      {asksForProof && (
        <div class="notice" role="alert">
          The broker asks who you are: show a key or a token that it knows.{' '}
          <button type="button" onClick={() => setShowsKey(true)}>
            Show a key
          </button>
        </div>
      )}
      <main class={reach.kind === 'gone' ? 'stale' : ''}>
        <View {...parts} />
      </main>
      {showsKey && <KeyDialog holder={holder} onClose={() => setShowsKey(false)} />}
    </>
  )
}

function ScopeForm({
  tenant,
  path,
  onChange,
}: {
  readonly tenant: string
  readonly path: string
  readonly onChange: (tenant: string, path: string) => void
}) {
  const [text, setText] = useState({ tenant, path })
  const submit = (event: Event): void => {
    event.preventDefault()
    onChange(text.tenant, text.path)
  }
  return (
    <form class="scope" onSubmit={submit}>
      <label>
        Tenant
        <input
          size={10}
          value={text.tenant}
          placeholder="default"
          onInput={({ currentTarget }) => setText({ ...text, tenant: currentTarget.value })}
        />
      </label>
      <label>
        Service path
        <input
          size={10}
          value={text.path}
          placeholder="/#"
          onInput={({ currentTarget }) => setText({ ...text, path: currentTarget.value })}
        />
      </label>
      <button type="submit">Go</button>
    </form>
  )
}

function ReachBar({ reach }: { readonly reach: BrokerReach }) {
  if (reach.kind === 'reached') return null
  return (
    <div class="gone" role="alert">
      The broker does not answer since {new Date(reach.sinceMs).toLocaleTimeString()}. What you see is from before. The
      page goes on by itself when the broker is back.
    </div>
  )
}

function KeyDialog({ holder, onClose }: { readonly holder: ProofHolder; readonly onClose: () => void }) {
  const [proof, setProof] = useState('')
  const [isKept, setIsKept] = useState(holder.isKept)
  const show = (event: Event): void => {
    event.preventDefault()
    holder.show(proof.trim(), isKept)
    onClose()
  }
  const forget = (): void => {
    holder.show('', false)
    onClose()
  }
  return (
    <Dialog title="Key or token" onClose={onClose}>
      <form onSubmit={show}>
        <div class="fields">
          <label class="wide">
            Key or token
            <input
              required
              type="password"
              autocomplete="off"
              value={proof}
              onInput={({ currentTarget }) => setProof(currentTarget.value)}
            />
          </label>
          <label class="check">
            <input
              type="checkbox"
              checked={isKept}
              onChange={({ currentTarget }) => setIsKept(currentTarget.checked)}
            />
            Keep it until this tab is closed
          </label>
        </div>
        <p class="quiet">Otherwise the page forgets it when it is loaded again. It is sent to this broker alone.</p>
        <div class="buttons">
          <button type="submit" class="main">
            Show it to the broker
          </button>
          <button type="button" onClick={forget}>
            Forget it
          </button>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  )
}
