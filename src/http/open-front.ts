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
import { openNodeFront } from './node-front.js'
import { loadUws, UwsMissing } from './uws-binary.js'
import { openUwsFront } from './uws-front.js'

/**
 * Opens the front named by `kind`; undefined: uws where its binary loads, else node with a warning. With `http1Port` it
 * opens two fronts.
 */
export async function openFront(
  kind: 'uws' | 'node' | undefined,
  options: FrontOptions,
  handler: FrontHandler,
  logger: Pick<Logger, 'info' | 'warn'>,
): Promise<Front> {
  const front = await openMain(kind, options, handler, logger)
  const { http1Port } = options
  if (http1Port === undefined) return front
  return new TwoFronts(front, await openNodeFront({ ...options, port: http1Port }, handler))
}

async function openMain(
  kind: 'uws' | 'node' | undefined,
  options: FrontOptions,
  handler: FrontHandler,
  logger: Pick<Logger, 'info' | 'warn'>,
): Promise<Front> {
  if (kind === 'node') return openNodeFront(options, handler)
  if (options.tls?.clients) {
    logger.info('serving with node:http, because uWebSockets.js cannot require certificates of clients')
    return openNodeFront(options, handler)
  }
  if (options.tls?.minVersion === '1.3') {
    logger.info('serving with node:http, because uWebSockets.js cannot leave out TLS 1.2')
    return openNodeFront(options, handler)
  }
  try {
    const front = await openUwsFront(options, handler)
    const { build, uncorrected } = await loadUws()
    logger.info(`serving with ${build}`)
    if (uncorrected !== undefined) logger.warn(`${bytesAreCut}: ${uncorrected}`)
    return front
  } catch (error) {
    if (kind === 'uws' || !(error instanceof UwsMissing)) throw error
    logger.warn(`${error.message}: serving with node:http, which is slower`)
    return openNodeFront(options, handler)
  }
}

/** The consequence when the binary could not be corrected (uws-addon.ts). */
const bytesAreCut =
  'uWebSockets.js cuts bytes outside ASCII off both ends of header values, so a request may select another tenant than it names' +
  ' (use -httpServer node, or a proxy that refuses such bytes)'

/**
 * The front at `-port`, and node:http at `-http1Port` (docs/operations/http-servers.md#http10). Both call one handler,
 * and each has the limits of its own options: `-maxConnections` counts for each listener. They start and stop together.
 */
class TwoFronts implements Front {
  http1Port: number | undefined

  constructor(
    private readonly front: Front,
    private readonly other: Front,
  ) {}

  get connections(): readonly OpenConnections[] {
    return [...this.front.connections, ...this.other.connections]
  }

  async listen(): Promise<number> {
    const port = await this.front.listen()
    try {
      this.http1Port = await this.other.listen()
    } catch (error) {
      await this.front.close(0)
      throw error
    }
    return port
  }

  /**
   * What the first front accepts is accepted by the other too: it makes the same check, and nothing else may fail.
   */
  renewTls(contents: TlsContents): void {
    this.front.renewTls(contents)
    this.other.renewTls(contents)
  }

  dismiss(): void {
    this.front.dismiss()
    this.other.dismiss()
  }

  async unlisten(): Promise<void> {
    await Promise.all([this.front.unlisten(), this.other.unlisten()])
  }

  async close(drainMs: number): Promise<CutOff | undefined> {
    // Both stop listening first, so that no answer sends a client from one port to the other.
    if (drainMs > 0) await this.unlisten()
    const [one, two] = await Promise.all([this.front.close(drainMs), this.other.close(drainMs)])
    if (!one || !two) return one ?? two
    return { connections: one.connections + two.connections, requests: one.requests + two.requests }
  }
}
