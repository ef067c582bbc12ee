// Sockets that listen for other processes: how they begin, and how they end with those who have come.
//
// Not here: who may listen at a path of the file system (unix-socket.ts), what comes in.

import type { Server, Socket } from 'node:net'

/** How long streams and connections may take to end in peace. */
export const closeMs = 500

/** Listens at a place, as `address` names it. Fails with a sentence for the operator. */
export function begin(listener: Server, address: string, place: object): Promise<void> {
  return new Promise((resolve, reject) => {
    listener.once('error', error =>
      reject(new Error(`cannot listen on ${address}: ${error.message}`, { cause: error })),
    )
    listener.listen({ ...place, exclusive: true }, resolve)
  })
}

/** Lets nobody in any more, and resolves when all have gone: those who take too long are cut off. `onClosing` is called once nobody can come. */
export function end(listener: Server, sockets: ReadonlySet<Socket>, onClosing = (): void => {}): Promise<void> {
  return new Promise(resolve => {
    const impatient = setTimeout(() => {
      for (const socket of sockets) socket.destroy()
    }, closeMs)
    listener.close(() => {
      clearTimeout(impatient)
      resolve()
    })
    onClosing()
  })
}
