// The allowed and denied targets of one source: the options, or the access file (docs/operations/egress.md#patterns).
//
// A list of allowed targets that is empty allows all: it is the caller that denies link-local addresses then.

import { BlockList, isIP } from 'node:net'
import type { AccessEgress } from '../../domain/access/access-file.js'
import { type EgressPattern, parseEgressPattern } from '../../domain/subscriptions/receiver-url.js'
import { familyOf } from './addresses.js'

interface Rule {
  readonly pattern: EgressPattern
  /** Set for a pattern of a network. */
  readonly block: BlockList | undefined
}

export class TargetLists {
  private readonly allow: readonly Rule[]
  private readonly deny: readonly Rule[]

  /** Throws an error with a sentence when a pattern is invalid. */
  constructor({ allow, deny }: AccessEgress) {
    this.allow = allow.map(ruleOf)
    this.deny = deny.map(ruleOf)
  }

  /** Whether there is a list of allowed targets. */
  get namesAllowed(): boolean {
    return this.allow.length > 0
  }

  /** Whether a name may be used that is not resolved yet: an address may still be denied. */
  allowsName(host: string, port: number): boolean {
    if (this.deny.some(rule => matches(rule, host, port, undefined))) return false
    if (!this.namesAllowed) return true
    return this.allow.some(rule => rule.block !== undefined || matches(rule, host, port, undefined))
  }

  /** `host`: as the URL names it; it may be the address. */
  allowsAddress(host: string, port: number, address: string): boolean {
    if (this.deny.some(rule => matches(rule, host, port, address))) return false
    return !this.namesAllowed || this.allow.some(rule => matches(rule, host, port, address))
  }
}

function ruleOf(text: string): Rule {
  const pattern = parseEgressPattern(text)
  if (!pattern) throw new Error(`not a host, host:port, address or network: ${text}`)
  if (pattern.kind === 'host') return { pattern, block: undefined }
  const block = new BlockList()
  block.addSubnet(pattern.address, pattern.bits, pattern.family)
  return { pattern, block }
}

function matches({ pattern, block }: Rule, host: string, port: number, address: string | undefined): boolean {
  if (pattern.port !== undefined && pattern.port !== port) return false
  if (pattern.kind === 'host') return pattern.labels.source === '^' || (isIP(host) === 0 && pattern.labels.test(host))
  return address !== undefined && block!.check(address, familyOf(address))
}
