// Answers about the service itself: the page at /, entry point, version, health
// (docs/interface/requests.md#entry-point, docs/interface/administration.md#version).

import { refusals } from '../domain/refusal.js'
import type { Clock } from '../ports.js'
import { type EntryPage, entryPageHeaders, entryPageOf } from './entry-page.js'
import type { Reply } from './reply.js'
import type { Request } from './request.js'

export interface ProductFacts {
  readonly version: string
  /** Names and versions of the libraries, by the role that the fixed keys of the answer name. */
  readonly libraries: Readonly<Record<string, string>>
  readonly machine: string
  readonly runtime: string
}

/** The release of the reference with the same interface. Existing tools read it. */
const interfaceRelease = '3.12.0'

const entryPoint = JSON.stringify({
  entities_url: '/v2/entities',
  types_url: '/v2/types',
  subscriptions_url: '/v2/subscriptions',
  registrations_url: '/v2/registrations',
})

/** Keys of `libversions` that tools expect, each with the corresponding role here. */
const libraryRoles = {
  boost: 'regex',
  libcurl: 'client',
  libmosquitto: 'mqtt',
  libmicrohttpd: 'server',
  openssl: 'tls',
  rapidjson: 'json',
  mongoc: 'store',
  bson: 'none',
} as const

export interface DiskState {
  /** Writes are refused because the disk is short of space. */
  isShort(): boolean
  /** Copies of other nodes' shards wait because the disk is short of space. */
  copiesWait(): boolean
}

export class ServiceHandlers {
  private readonly startedMs: number
  private readonly entryPage: EntryPage
  private readonly disk: DiskState | undefined
  private readonly unready: () => string | undefined

  /**
   * `unready`: the reason, as a text, why some shards of the cluster cannot answer (docs/operations/cluster-health.md).
   */
  constructor(
    private readonly facts: ProductFacts,
    private readonly clock: Clock,
    private readonly isReady: () => boolean,
    disk?: DiskState,
    unready: () => string | undefined = () => undefined,
  ) {
    this.startedMs = clock.monoMs()
    this.entryPage = entryPageOf(facts.version)
    this.disk = disk
    this.unready = unready
  }

  /** `GET /`: JSON, or a page for browsers. `Vary` makes a cache keep the two apart. */
  root({ prefersHtml }: Request, reply: Reply): void {
    const { json, html } = this.entryPage
    const headers = ['Vary', 'Accept', ...entryPageHeaders]
    if (prefersHtml) reply.content(html, 'text/html; charset=utf-8', headers)
    else reply.content(json, 'application/json', headers)
  }

  readonly entryPoint = (_request: Request, reply: Reply): void => reply.json(entryPoint)

  /**
   * The answer that tools expect. With `options=libVersions` it adds our own version and libraries
   * (docs/interface/administration.md#version).
   */
  version({ parameters: { options } }: Request, reply: Reply): void {
    const { version, libraries, machine, runtime } = this.facts
    const libversions = Object.fromEntries(
      Object.entries(libraryRoles).map(([key, role]) => [key, libraries[role] ?? 'none']),
    )
    const orion = {
      version: interfaceRelease,
      uptime: uptime(this.clock.monoMs() - this.startedMs),
      git_hash: 'nogitversion',
      compile_time: 'nocompiletime',
      compiled_by: 'nobody',
      compiled_in: runtime,
      release_date: 'noreleasedate',
      machine,
      doc: '/v2',
      libversions,
    }
    const orrery = { version, runtime, libraries }
    reply.json(JSON.stringify(options.has('libVersions') ? { orion, orrery } : { orion }))
  }

  live(_request: Request, reply: Reply): void {
    reply.json('{"status":"live"}')
  }

  /** Whether the node takes requests. A node on a full disk still reads and deletes (docs/operations/full-disk.md). */
  ready(_request: Request, reply: Reply): void {
    const reason = this.unready()
    if (reason !== undefined) reply.refuse(refusals.notReady(reason))
    else if (this.disk?.copiesWait()) reply.refuse(refusals.copiesWait)
    else if (this.isReady())
      reply.json(this.disk?.isShort() ? '{"status":"ready","disk":"full"}' : '{"status":"ready"}')
    else reply.refuse(refusals.stopping)
  }
}

function uptime(ms: number): string {
  const seconds = Math.floor(ms / 1000)
  const days = Math.floor(seconds / 86_400)
  return `${days} d, ${Math.floor(seconds / 3600) % 24} h, ${Math.floor(seconds / 60) % 60} m, ${seconds % 60} s`
}
