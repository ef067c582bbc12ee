// Which HTTP front serves: the one that was asked for, or the best this platform has. And node:http besides, at
// `-http1Port`.
//
// uWebSockets.js is several times faster and comes as a binary for common platforms only. Where nobody has chosen, its
// absence costs a warning; where an operator has, it is an error: otherwise he would find out under load.
//
// Not here: how they serve (uws-front, node-front).

import type { Logger } from '../ports.js'
import type { Front, FrontHandler, FrontOptions } from './front.js'
import { openNodeFront } from './node-front.js'
import { loadedUws, UwsMissing } from './uws-binary.js'
import { openUwsFront } from './uws-front.js'

/** Opens the front named by `kind`; undefined: uws where its binary loads, else node with a warning. */
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
  if (options.tls?.minVersion === '1.3') {
    logger.info('serving with node:http, because uWebSockets.js cannot leave out TLS 1.2')
    return openNodeFront(options, handler)
  }
  try {
    const front = await openUwsFront(options, handler)
    logger.info(`serving with ${loadedUws()}`)
    return front
  } catch (error) {
    if (kind === 'uws' || !(error instanceof UwsMissing)) throw error
    logger.warn(`${error.message}: serving with node:http, which is slower`)
    return openNodeFront(options, handler)
  }
}

/**
 * The front at `-port`, and node:http at `-http1Port` (docs/operations/http-servers.md#http10). Both ask one handler,
 * and each has the limits of its own options: `-maxConnections` counts for each listener. They start and stop together.
 */
class TwoFronts implements Front {
  http1Port: number | undefined

  constructor(
    private readonly front: Front,
    private readonly other: Front,
  ) {}

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

  dismiss(): void {
    this.front.dismiss()
    this.other.dismiss()
  }

  async close(drainMs: number): Promise<void> {
    await Promise.all([this.front.close(drainMs), this.other.close(drainMs)])
  }
}
