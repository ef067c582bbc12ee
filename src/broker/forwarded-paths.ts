// Finds out which of two possible paths a provider serves (docs/interface/forwarding.md).
//
// A provider that answers 404 at the first path may serve the other one. Only a 404 without an error of the interface
// counts as a wrong path. An update that a provider has handled must not be sent again, because a part of it may have
// been executed.
//
// A path that has served once is known: each answer from there is the provider's own, and the other path is not tried.
// The process forgets a known path after `pathKnownMs`, or when the registration from which it was learned changes.
// Each process learns for itself.
//
// Not here: the list of paths (domain/providers/registration.ts).

import { isObject, type Json } from '../domain/json.js'
import { operationBases, type Pathless, type Registration } from '../domain/providers/registration.js'
import type { Clock, ProviderAnswer } from '../ports.js'

/** The limit of providers whose path is known. The one that was learned first is forgotten first. */
export const knownPathsMax = 1_000

/** How long a path is known. Raising it saves one request to a provider in that time, and notices a change later. */
export const pathKnownMs = 10 * 60_000

interface Known {
  readonly base: string
  readonly registration: Registration
  readonly untilMs: number
}

export class ForwardedPaths {
  /** By the URL of the provider, in the order in which they were learned. */
  private readonly known = new Map<string, Known>()

  constructor(
    private readonly clock: Pick<Clock, 'monoMs'>,
    private readonly pathless: Pathless,
  ) {}

  /** The base URL at which a provider is asked, and the other one if the answer `isFromElsewhere`. */
  basesOf(registration: Registration): readonly [first: string, other?: string] {
    const { url } = registration.provider
    const known = this.known.get(url)
    if (!known) return operationBases(url, this.pathless)
    const isChanged = known.registration.id === registration.id && known.registration !== registration
    if (!isChanged && this.clock.monoMs() < known.untilMs) return [known.base]
    this.known.delete(url)
    return operationBases(url, this.pathless)
  }

  /** Notes the base at which the provider has served a request. */
  learn(registration: Registration, base: string): void {
    const { url } = registration.provider
    if (this.known.has(url)) return
    if (this.known.size >= knownPathsMax)
      for (const first of this.known.keys()) {
        this.known.delete(first)
        break
      }
    this.known.set(url, { base, registration, untilMs: this.clock.monoMs() + pathKnownMs })
  }
}

/** Whether the provider has not handled a request: it was sent to a path that the provider does not serve. */
export const isFromElsewhere = (answer: ProviderAnswer): boolean =>
  answer.kind === 'answered' && answer.status === 404 && !isOfProvider(answer.body)

/** Larger bodies are not parsed: no router writes so much about an unknown path. */
const lookedBytesMax = 64 * 1024

/**
 * Whether the body of a 404 is the provider's own answer: entities, or an error with a name of one word. `NotFound` is
 * such a name, and so is `DEVICE_NOT_FOUND` of an IoT agent. Routers of web frameworks write HTML, a text, nothing, or
 * JSON with words: `Not Found`.
 */
function isOfProvider(body: Buffer): boolean {
  if (body.length > lookedBytesMax) return true
  const json = parse(body)
  if (Array.isArray(json)) return true
  return isObject(json) && [json.error, json.name].some(name => typeof name === 'string' && /^\S+$/.test(name))
}

function parse(body: Buffer): Json | undefined {
  try {
    return JSON.parse(body.toString())
  } catch {
    return undefined
  }
}
