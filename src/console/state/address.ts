// The address of a view: its name and parameters, in the part of the URL behind `#`, which a browser sends to no server.
//
// The whole state of a view is in it, so a link shows somebody else the same. The tenant and the service path belong to
// every view. A key never gets here.

import { Observable } from './observable.js'

export const viewNames = [
  'overview',
  'entities',
  'entity',
  'map',
  'types',
  'subscriptions',
  'subscription',
  'registrations',
  'cluster',
  'settings',
  'request',
] as const

export type ViewName = (typeof viewNames)[number]

export interface ViewAddress {
  readonly view: ViewName
  /** Empty texts are left out. */
  readonly parameters: Readonly<Record<string, string>>
}

/** Browsers refuse to change the URL with each repetition of a key. */
const writeMs = 200

const isViewName = (text: string): text is ViewName => viewNames.some(name => name === text)

export function parseAddress(hash: string): ViewAddress {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2)
  const parameters = Object.fromEntries(new URLSearchParams(query))
  return { view: isViewName(path) ? path : 'overview', parameters }
}

export function renderAddress({ view, parameters }: ViewAddress): string {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== '')).toString()
  return `#/${view}${query === '' ? '' : `?${query}`}`
}

export class AddressBar {
  readonly address: Observable<ViewAddress>
  private writing: ReturnType<typeof setTimeout> | undefined
  /** The hash of the URL as it was last read or written here. */
  private known = location.hash

  constructor() {
    this.address = new Observable(parseAddress(location.hash))
    addEventListener('hashchange', () => {
      clearTimeout(this.writing)
      this.known = location.hash
      if (renderAddress(this.address.value) !== location.hash) this.address.set(parseAddress(location.hash))
    })
  }

  /** The link to a view, in the same tenant and service path unless `parameters` name others. */
  link(view: ViewName, parameters: Readonly<Record<string, string>> = {}): string {
    const { tenant = '', path = '' } = this.address.value.parameters
    return renderAddress({ view, parameters: { tenant, path, ...parameters } })
  }

  open(view: ViewName, parameters: Readonly<Record<string, string>> = {}): void {
    location.hash = this.link(view, parameters)
  }

  /** Changes parameters of the present view. The way back leads past it, since a filter changes with each key. */
  change(parameters: Readonly<Record<string, string>>): void {
    const { view, parameters: before } = this.address.value
    this.address.set(parseAddress(renderAddress({ view, parameters: { ...before, ...parameters } })))
    clearTimeout(this.writing)
    this.writing = setTimeout(() => this.write(), writeMs)
  }

  private write(): void {
    // A person has followed a link, and the event about it comes soon.
    if (location.hash !== this.known) return
    history.replaceState(null, '', renderAddress(this.address.value))
    this.known = location.hash
  }
}
