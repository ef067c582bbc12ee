// The cluster as one node sees it: members, shards with their owners, moves, the log engine; drains and resumes the node.
//
// Not here: a process without a cluster (workers.tsx).

import { useState } from 'preact/hooks'
import type { ConsoleClient, RequestProblem } from '../interface/console-client.js'
import type { ConsoleRequest } from '../interface/console-request.js'
import { Question } from '../parts/dialog.js'
import { CountNote, CurlNote, Problem } from '../parts/notes.js'
import { isAtOtherPort, OperatorsNote } from '../parts/operators-note.js'
import { ShardGrid } from '../parts/shard-grid.js'
import { number } from '../parts/value-text.js'
import { useAgainLater } from '../state/again-later.js'
import { type ClusterShape, movesOf, needsAttention } from '../state/cluster-shapes.js'
import type { ConsoleParts } from '../state/console-parts.js'
import { useValue } from '../state/observable.js'
import { useReading } from '../state/reading.js'
import { WorkersPart } from './workers.js'

/** Shards that are listed one by one. */
const listedMax = 50

const request: ConsoleRequest = { method: 'GET', path: 'cluster' }

export function ClusterView({ client, bar }: ConsoleParts) {
  const { owner = '' } = useValue(bar.address).parameters
  const reading = useReading<ClusterShape>(client, request)
  useAgainLater(reading)
  const { json: cluster, problem, again } = reading
  // A process without a cluster does not know the path.
  const isAlone = problem?.status === 400
  return (
    <section aria-labelledby="view-title">
      <h1 id="view-title">Cluster</h1>
      {isAtOtherPort(problem) && <OperatorsNote path={request.path} />}
      {!isAlone && !isAtOtherPort(problem) && <Problem problem={problem} />}
      {isAlone && <WorkersPart client={client} />}
      {cluster && !isAlone && (
        <>
          <Facts cluster={cluster} />
          <Orders client={client} cluster={cluster} onDone={again} />
          <Members cluster={cluster} />
          <h2>Shards</h2>
          <ShardGrid
            shards={cluster.shards}
            owners={cluster.members.map(({ name }) => name)}
            chosen={owner}
            onChoose={name => bar.change({ owner: name === owner ? '' : name })}
          />
          <Attention cluster={cluster} />
        </>
      )}
      {!isAlone && <CurlNote client={client} request={request} />}
    </section>
  )
}

/** What the state of the log engine means. */
const logText: Readonly<Record<string, string>> = {
  lost: 'it has lost records that this node knows',
  full: 'it takes no writes, because its quota is exceeded',
  away: 'it does not answer, or takes no writes',
}

function Facts({ cluster: { node, cluster, isJoined, log, health, shards } }: { readonly cluster: ClusterShape }) {
  const isReady = health.state === 'ready'
  const engine = log.state === 'lost' ? logText.lost : logText[health.state]
  const copies = shards.filter(({ copy }) => copy === 'owned' || copy === 'following').length
  const lag = Math.max(0, ...shards.map(one => one.lag))
  const moves = [...movesOf(shards)]
  return (
    <dl class="facts">
      <dt>Seen by node</dt>
      <dd>
        <strong>{node}</strong>, which {isJoined ? 'takes shards' : 'takes no shards: it is drained'}
      </dd>
      <dt>Cluster</dt>
      <dd>{cluster}</dd>
      <dt>Health</dt>
      <dd class={isReady ? 'good' : 'bad'}>
        {isReady ? '✓ ready' : `✗ ${health.state}: ${health.reason ?? ''} (${number(health.shards.length)} shards)`}
      </dd>
      <dt>etcd</dt>
      <dd class={engine === undefined ? 'good' : 'bad'}>
        {engine === undefined ? '✓ it takes records and has all that this node knows' : `✗ ${engine}`}
      </dd>
      <dt>Copies here</dt>
      <dd>
        {number(copies)} of {number(shards.length)} shards, the furthest {number(lag)} records behind
      </dd>
      <dt>Moves under way</dt>
      <dd>{moves.length === 0 ? 'none' : moves.map(([move, count]) => `${move}: ${number(count)}`).join(', ')}</dd>
    </dl>
  )
}

type Order = 'drain' | 'resume'

function Orders({
  client,
  cluster: { node, isJoined, members },
  onDone,
}: {
  readonly client: ConsoleClient
  readonly cluster: ClusterShape
  readonly onDone: () => void
}) {
  const [asked, setAsked] = useState<Order | undefined>(undefined)
  const [underWay, setUnderWay] = useState(false)
  const [problem, setProblem] = useState<RequestProblem | undefined>(undefined)
  const owned = members.find(({ name }) => name === node)?.owned ?? 0
  const others = members.filter(one => one.name !== node && one.isJoined).length
  const carryOut = async (order: Order): Promise<void> => {
    setAsked(undefined)
    setUnderWay(true)
    const answer = await client.ask({ method: order === 'drain' ? 'POST' : 'DELETE', path: 'cluster/drain' })
    setUnderWay(false)
    setProblem(answer.ok ? undefined : answer.problem)
    onDone()
  }
  return (
    <>
      <Problem problem={problem} />
      <div class="buttons">
        <button type="button" disabled={underWay} onClick={() => setAsked(isJoined ? 'drain' : 'resume')}>
          {isJoined ? `Drain ${node}…` : `Resume ${node}…`}
        </button>
        <button type="button" onClick={onDone}>
          Read again
        </button>
        <span role="status" class="quiet">
          {underWay && 'The node moves shards…'}
        </span>
      </div>
      {asked === 'drain' && (
        <Question
          title={`Drain node ${node}?`}
          text={`It gives its ${number(owned)} shards to ${number(others)} other nodes and takes none until it is resumed. It still answers requests. Shards without another node stay where they are.`}
          verb="Drain"
          onYes={() => void carryOut('drain')}
          onNo={() => setAsked(undefined)}
        />
      )}
      {asked === 'resume' && (
        <Question
          title={`Resume node ${node}?`}
          text="It takes its part of the shards again."
          verb="Resume"
          onYes={() => void carryOut('resume')}
          onNo={() => setAsked(undefined)}
        />
      )}
    </>
  )
}

function Members({ cluster: { node, members } }: { readonly cluster: ClusterShape }) {
  return (
    <>
      <h2>Members</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label="Members">
        <table>
          <thead>
            <tr>
              <th scope="col">Node</th>
              <th scope="col">Status</th>
              <th scope="col">Shards</th>
              <th scope="col">Requests/s</th>
              <th scope="col">Takes shards</th>
              <th scope="col">Domain</th>
              <th scope="col">Address</th>
              <th scope="col">Protocol</th>
              <th scope="col">Unreadable messages</th>
              <th scope="col">Clock ahead</th>
            </tr>
          </thead>
          <tbody>
            {members.map(
              ({ name, status, owned, load, isJoined, domain, address, protocol, undecodable, clockAheadMs }) => (
                <tr key={name}>
                  <th scope="row" class="wrap">
                    {name}
                    {name === node && <span class="quiet"> (asked)</span>}
                  </th>
                  <td>{status}</td>
                  <td>{number(owned)}</td>
                  <td>{load === undefined ? '–' : number(load)}</td>
                  <td>{isJoined ? 'yes' : 'no'}</td>
                  <td class="wrap">{domain || '–'}</td>
                  <td class="wrap">{address}</td>
                  <td>{protocol ?? '–'}</td>
                  <td>{number(undecodable)}</td>
                  <td>{clockAheadMs === undefined ? '–' : `${number(clockAheadMs)} ms`}</td>
                </tr>
              ),
            )}
          </tbody>
        </table>
      </div>
      <CountNote shown={members.length} total={members.length} what="nodes" />
    </>
  )
}

/** Shards to look at. */
function Attention({ cluster: { shards } }: { readonly cluster: ClusterShape }) {
  const found = shards.filter(needsAttention)
  const shown = found.slice(0, listedMax)
  if (found.length === 0) return <p class="quiet">Every shard has its owner, and every copy here is up to date.</p>
  return (
    <>
      <h3>Shards to look at</h3>
      <div class="scroll" tabIndex={0} role="region" aria-label="Shards to look at">
        <table>
          <thead>
            <tr>
              <th scope="col">Shard</th>
              <th scope="col">Owner</th>
              <th scope="col">Moves to</th>
              <th scope="col">Copy here</th>
              <th scope="col">Records behind</th>
            </tr>
          </thead>
          <tbody>
            {shown.map(({ shard, owner, next, copy, lag }) => (
              <tr key={shard}>
                <th scope="row">{shard}</th>
                <td>{owner ?? 'none'}</td>
                <td>{next ?? '–'}</td>
                <td>{copy}</td>
                <td>{number(lag)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <CountNote shown={shown.length} total={found.length} what="shards" />
    </>
  )
}
