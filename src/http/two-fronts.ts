// Two listeners of one program: the front at `-port`, and node:http at `-http1Port` (docs/operations/http-servers.md#http10).
//
// Both ask one handler, and each has the limits of its own options: `-maxConnections` counts for each listener. They start and stop together.

import type { Front } from './front.js'

export class TwoFronts implements Front {
  http1Port: number | undefined
  private readonly front: Front
  private readonly other: Front

  constructor(front: Front, other: Front) {
    this.front = front
    this.other = other
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

  dismiss(): void {
    this.front.dismiss()
    this.other.dismiss()
  }

  async close(drainMs: number): Promise<void> {
    await Promise.all([this.front.close(drainMs), this.other.close(drainMs)])
  }
}
