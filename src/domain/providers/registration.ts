// Registrations: who provides what, when everything in them has been read (subscriptions.md §12).
//
// Plain data, immutable; it changes by POST, PATCH and DELETE only. An expired one is kept and shown.
//
// Not here: JSON of clients to a registration (registration-parser.ts), the way back and the stored form (registration-json.ts), which
// request concerns which registration (provider-index.ts, forwarding.ts).

/** A registration as it is stored. */
export interface Registration {
  /** As those of subscriptions: 24 lower-case hexadecimal digits, increasing with creation. */
  readonly id: string
  /** Whose requests are forwarded; '' is the default tenant. */
  readonly tenant: string
  /** Where what is provided is looked for; never a wildcard. */
  readonly servicePath: string
  /** '' when there is none. */
  readonly description: string
  /** From when on nothing is forwarded; undefined: never. May lie in the past from the start. */
  readonly expiresMs: number | undefined
  readonly dataProvided: DataProvided
  readonly provider: Provider
  /** Shown, and without effect (§12.1). */
  readonly status: RegistrationStatus
}

export interface DataProvided {
  /** No element twice; empty: nothing is provided. */
  readonly entities: readonly ProvidedEntity[]
  /** No name twice; empty: all attributes, the whole entity. */
  readonly attrs: readonly string[]
}

/** Entities by id and type. Exactly one of `id` and `idPattern` is there. */
export interface ProvidedEntity {
  readonly id?: string | undefined
  /** Every id: the only pattern there is. */
  readonly idPattern?: '.*' | undefined
  /** undefined: any. */
  readonly type?: string | undefined
}

export interface Provider {
  /** What `/op/query` and `/op/update` are appended to; has passed `parseReceiverUrl`. */
  readonly url: string
  readonly supportedForwardingMode: ForwardingMode
  /** It speaks the interface's first version. */
  readonly legacyForwarding: boolean
}

/** Which requests a provider takes. */
export type ForwardingMode = 'all' | 'none' | 'query' | 'update'

export type RegistrationStatus = 'active' | 'inactive'
