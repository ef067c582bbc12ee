// A cluster in the place of a broker, for the runner of the conformance cases: `-port N -dataDir DIR ARGS…` starts an
// etcd and three nodes with ARGS, all below DIR, and spreads what arrives on the port over them in turn.
//
// The other brokers of a case, which play context providers or another broker that is notified, are single ones: the
// runner says in CONF_ROLE (`--env-case`) which of them it starts. So of a case with several brokers the one that it
// tests is a cluster.
//
// It begins with nothing, whatever is in DIR: no case of its groups starts a broker again, and the runner does when a
// wipe has failed.
//
// With CONFORMANCE_NODES=1 it is one broker, for the cases that share it, which spares most of the time; all others
// have brokers of their own.
//
// All processes stay in the group of this one, which is how the runner ends them. Their ports are above that which was
// given, by so much that no case has them: clusters come and go by the hundred, and a port that the system gives to
// anybody may be gone before it is used.

import { mkdirSync, rmSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { listensNobody, startBroker } from '../support/broker-process.js'
import { HttpClient } from '../support/http-client.js'
import { main } from '../support/project.js'
import { startThreeNodes } from '../support/three-nodes.js'
import { spread } from './spread.js'
import { warmUp, wipe } from './wipe.js'

/** Between the port of a cluster and the first of its processes' ports. */
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

/** Ports that nobody listens on, each later than the one before. */
function portsFrom(first: number): () => Promise<number> {
  let next = first
  return async () => {
    while (!(await listensNobody(next))) next++
    return next++
  }
}
