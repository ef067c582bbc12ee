// A sender whose library takes its time to load: it is loaded when a message is sent or likely for the first time.

import type { Message } from '../domain/subscriptions/message.js'
import type { OnSent, Sendable, Sender, SenderStats } from './sender.js'

export class LazySender<M extends Message = Message> implements Sender<M> {
  private readonly load: () => Promise<Sender<M>>
  private loading: Promise<Sender<M>> | undefined
  private loaded: Sender<M> | undefined
  private isClosed = false

  constructor(load: () => Promise<Sender<M>>) {
    this.load = load
  }

  // [hot] Once per try.
  /** Messages that come before it is loaded are sent then, in their order. */
  send(job: Sendable<M>, onSent: OnSent): void {
    if (this.loaded) this.loaded.send(job, onSent)
    else this.whenLoaded(sender => sender.send(job, onSent))
  }

  prepare(message: M): void {
    this.whenLoaded(sender => sender.prepare(message))
  }

  stats(): SenderStats {
    return this.loaded?.stats() ?? { connections: 0 }
  }

  close(): void {
    this.isClosed = true
    this.loaded?.close()
  }

  private whenLoaded(run: (sender: Sender<M>) => void): void {
    this.loading ??= this.load().then(sender => {
      this.loaded = sender
      return sender
    })
    void this.loading.then(sender => {
      if (!this.isClosed) run(sender)
      else sender.close()
    })
  }
}
