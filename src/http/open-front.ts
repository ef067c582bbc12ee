// Chooses the HTTP front: the configured one, or the best that this platform has.
//
// uWebSockets.js is several times faster, and its binary exists only for common platforms. Without a configured choice,
// its absence causes a warning. With a configured choice it is an error: otherwise the operator would notice only under
// load.
//
// Not here: the fronts themselves (uws-front, node-front).

import type { Logger } from '../ports.js'
import type { CutOff } from './drain.js'
import type { Front, FrontHandler, FrontOptions, OpenConnections, TlsContents } from './front.js'
import { loadUws, UwsMissing } from './uws-binary.js'
import { openUwsFront } from './uws-front.js'

/** The front for operators: with a port, limits and paths of its own. */
export interface AdminFront {
  readonly options: FrontOptions
  readonly handler: FrontHandler
}

type Kind = 'uws' | 'node' | undefined

/**
 * Loads the binary that `openFront` will need, which takes 0.1 s of the event loop. A failure of that is reported when
 * the front is opened.
 */
export async function loadForFront(kind: Kind, options: Pick<FrontOptions, 'tls'>): Promise<void> {
  if (kind !== 'node' && whyNode(options) === undefined) await loadUws().catch(() => {})
}

/** Why uws cannot serve these options; undefined: it can. */
function whyNode({ tls }: Pick<FrontOptions, 'tls'>): string | undefined {
  if (tls?.clients) return 'uWebSockets.js cannot require certificates of clients'
  return tls?.minVersion === '1.3' ? 'uWebSockets.js cannot leave out TLS 1.2' : undefined
}

/**
 * Opens the front named by `kind`; undefined: uws where its binary loads, else node with a warning. With `http1Port` or
 * `admin` it opens several fronts.
 */
export async function openFront(
  kind: Kind,
  options: FrontOptions,
  handler: FrontHandler,
  logger: Pick<Logger, 'info' | 'warn'>,
  admin?: AdminFront,
): Promise<Front> {
  const front = await openMain(kind, options, handler, logger)
  const { http1Port: port } = options
  if (port === undefined && !admin) return front
  const http1 = port === undefined ? undefined : await openNode({ ...options, port }, handler)
  return new SeveralFronts(front, http1, admin && (await openNode(admin.options, admin.handler)))
}

async function openMain(
  kind: Kind,
  options: FrontOptions,
  handler: FrontHandler,
  logger: Pick<Logger, 'info' | 'warn'>,
): Promise<Front> {
  if (kind === 'node') return openNode(options, handler)
  const reason = whyNode(options)
  if (reason !== undefined) {
    logger.info(`serving with node:http, because ${reason}`)
    return openNode(options, handler)
  }
  try {
    const front = await openUwsFront(options, handler)
    const { build, uncorrected } = await loadUws()
    logger.info(`serving with ${build}`)
    if (uncorrected !== undefined) logger.warn(`${consequences}: ${uncorrected}`)
    return front
  } catch (error) {
    if (kind === 'uws' || !(error instanceof UwsMissing)) throw error
    logger.warn(`${error.message}: serving with node:http, which is slower`)
    return openNode(options, handler)
  }
}

/** Loads node:http's front, with its WebSockets, only where it serves. */
async function openNode(options: FrontOptions, handler: FrontHandler): Promise<Front> {
  const { openNodeFront } = await import('./node-front.js')
  return openNodeFront(options, handler)
}

const socketsAreCut = 'uWebSockets.js may cut off a WebSocket that has just been opened'
const bytesAreCut =
  'uWebSockets.js cuts bytes outside ASCII off both ends of header values, so a request may select another tenant than it names' +
  ' (use -httpServer node, or a proxy that refuses such bytes)'

/** The consequences when the binary is not corrected (uws-addon.ts). */
const consequences =
  process.platform === 'linux' && process.arch !== 'x64' ? socketsAreCut : `${bytesAreCut}; ${socketsAreCut}`

/**
 * The front at `-port`, and node:http at `-http1Port` (docs/operations/http-servers.md#http10) and at `-adminPort`
 * (docs/interface/administration.md#the-port-for-operators). Each has the limits of its own options: `-maxConnections`
 * counts for each listener. They start and stop together.
 */
class SeveralFronts implements Front {
  http1Port: number | undefined
  adminPort: number | undefined
  private readonly all: readonly Front[]

  constructor(
    private readonly main: Front,
    private readonly http1: Front | undefined,
    private readonly admin: Front | undefined,
  ) {
    this.all = [main, http1, admin].filter(front => front !== undefined)
  }

  get connections(): readonly OpenConnections[] {
    return this.all.flatMap(({ connections }) => connections)
  }

  async listen(): Promise<number> {
    const port = await this.main.listen()
    try {
      this.http1Port = await this.http1?.listen()
      this.adminPort = await this.admin?.listen()
    } catch (error) {
      await this.close(0)
      throw error
    }
    return port
  }

  /**
   * What the first front accepts is accepted by the others too: they make the same check, and nothing else may fail.
   */
  renewTls(contents: TlsContents): void {
    for (const front of this.all) front.renewTls(contents)
  }

  dismiss(): void {
    for (const front of this.all) front.dismiss()
  }

  async unlisten(): Promise<void> {
    await Promise.all(this.all.map(front => front.unlisten()))
  }

  async close(drainMs: number): Promise<CutOff | undefined> {
    // All stop listening first, so that no answer sends a client from one port to another.
    if (drainMs > 0) await this.unlisten()
    const closed = await Promise.all(this.all.map(front => front.close(drainMs)))
    const cutOffs = closed.filter(cutOff => cutOff !== undefined)
    if (cutOffs.length === 0) return undefined
    const sum = (countOf: (cutOff: CutOff) => number): number => cutOffs.reduce((all, one) => all + countOf(one), 0)
    return { connections: sum(({ connections }) => connections), requests: sum(({ requests }) => requests) }
  }
}
