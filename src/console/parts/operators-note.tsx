// What to do when a path of operators is not at this port (docs/interface/administration.md#the-port-for-operators). Of
// a path without a name in it, 404 means just that.

import type { RequestProblem } from '../interface/console-client.js'

export const isAtOtherPort = (problem: RequestProblem | undefined): boolean => problem?.status === 404

export function OperatorsNote({ path }: { readonly path: string }) {
  return (
    <p class="notice" role="status">
      <code>/{path}</code> is at the port for operators of this broker (<code>-adminPort</code>), and the console is at
      the port for clients. Ask it with <code>curl</code> from a machine that reaches that port; without{' '}
      <code>-adminLocalIp</code> that is the machine of the broker itself, at <code>127.0.0.1</code>.
    </p>
  )
}
