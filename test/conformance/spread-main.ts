// A cluster in the place of a broker, for the runner of the conformance cases: `-port N -dataDir DIR ARGS…` starts an
// etcd and three nodes with ARGS, all below DIR, and passes the connections on the port to them in turn.
//
// Other brokers of a case, such as context providers, are single nodes; the runner names each in CONF_ROLE
// (`--env-case`). The cluster begins empty, even if DIR has files: its cases restart no broker, and the runner does
// only after a failed wipe. With CONFORMANCE_NODES=1 it is one broker, for the cases that share it, which saves most of
// the time.
//
// All processes stay in the group of this one, because the runner ends the group. Their ports are so far above the
// given one that no case has them. Ports of the system would not do: another process may take such a port before it is
// used.

import { mkdirSync, rmSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { listensNobody, startBroker } from '../support/broker-process.js'
import { HttpClient } from '../support/http-client.js'
import { main } from '../support/project.js'
import { startThreeNodes } from '../support/three-nodes.js'
import { spread } from './spread.js'
import { warmUp, wipe } from './wipe.js'

/** From the port of a cluster to the first port of its processes. */
const portsAbove = 2000

const role = process.env.CONF_ROLE
const isOne = process.env.CONFORMANCE_NODES === '1'
if (role === undefined || (role === 'CB' && !isOne)) await startShared()
else await import(pathToFileURL(main).href)

async function startShared(): Promise<void> {
  const [, port, , folder, ...args] = process.argv.slice(2)
  if (port === undefined || folder === undefined) throw new Error('usage: -port N -dataDir DIR ARGS…')
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const endings: (() => unknown)[] = []
  const t = { teardown: (run: () => unknown) => void endings.unshift(run) }
  const nextPort = portsFrom(Number(port) + portsAbove)
  const nodes = isOne
    ? [await startBroker(t, { dataDir: folder, port: await nextPort(), args, sharesGroup: true })]
    : await startThreeNodes(t, { folder, args, sharesGroup: true, nextPort })
  const ports = nodes.map(node => node.port)
  const clients = nodes.map(({ baseUrl }) => new HttpClient(baseUrl))
  await warmUp(clients)
  await spread(Number(port), ports, () => wipe(clients))
  const first = await Promise.race(nodes.map(async node => ({ node, ...(await node.exited) })))
  console.error(`a node has ended (${first.signal ?? first.code})\n${first.node.printed()}`)
  for (const end of endings) await end()
  process.exit(1)
}

/** Returns free ports, each higher than the one before. */
function portsFrom(first: number): () => Promise<number> {
  let next = first
  return async () => {
    while (!(await listensNobody(next))) next++
    return next++
  }
}
