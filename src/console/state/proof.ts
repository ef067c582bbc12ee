// The key or token with which the page asks: in memory, or in `sessionStorage` if the person wants that.

import { Observable } from './observable.js'

const storageName = 'orrery.proof'

export class ProofHolder {
  /** An empty text: none is shown. */
  readonly proof = new Observable(sessionStorage.getItem(storageName) ?? '')

  /** Whether the person is asked for another one: the dialog for it is open. */
  readonly isAsked = new Observable(false)

  get isKept(): boolean {
    return sessionStorage.getItem(storageName) !== null
  }

  /** `isKept`: until the tab is closed, also when the page is loaded again. */
  show(proof: string, isKept: boolean): void {
    if (isKept && proof !== '') sessionStorage.setItem(storageName, proof)
    else sessionStorage.removeItem(storageName)
    this.proof.set(proof)
  }
}
