// A broker on one machine: its processes, by their metrics, and what its settings say about them.

import type { ConsoleClient } from '../interface/console-client.js'
import type { ConsoleRequest } from '../interface/console-request.js'
import { readWorkers } from '../interface/worker-samples.js'
import { CountNote, CurlNote, Moment, Problem } from '../parts/notes.js'
import { bytesText, number, secondsText } from '../parts/value-text.js'
import { useAgainLater } from '../state/again-later.js'
import { useReading } from '../state/reading.js'

const request: ConsoleRequest = { method: 'GET', path: 'metrics' }

export function WorkersPart({ client }: { readonly client: ConsoleClient }) {
  const reading = useReading(client, request)
  useAgainLater(reading)
  const { text, problem } = reading
  const workers = text === undefined ? [] : readWorkers(text)
  const isOne = workers.length === 1
  return (
    <>
      <p>
        This broker is no node of a cluster: it runs on one machine
        {workers.length > 0 && `, ${isOne ? 'as a single process' : `as ${number(workers.length)} workers`}`}.{' '}
        {isOne ? 'The process owns all shards.' : 'Each worker owns a part of the shards.'} With <code>-workers</code>{' '}
        more processes share the work, and with <code>-clusterListen</code> it becomes a node.
      </p>
      <Problem problem={problem} />
      <div class="scroll" tabIndex={0} role="region" aria-label="Processes">
        <table>
          <thead>
            <tr>
              <th scope="col">Worker</th>
              <th scope="col">Memory</th>
              <th scope="col">Processor time</th>
              <th scope="col">Of one core, since its start</th>
              <th scope="col">Open files</th>
              <th scope="col">Started</th>
            </tr>
          </thead>
          <tbody>
            {workers.map(({ worker, startedS, cpuS, residentBytes, openFiles }) => (
              <tr key={worker}>
                <th scope="row">{worker === '' ? 'the only process' : worker}</th>
                <td>{residentBytes === undefined ? '–' : bytesText(residentBytes)}</td>
                <td>{cpuS === undefined ? '–' : secondsText(cpuS)}</td>
                <td>{shareText(cpuS, startedS)}</td>
                <td>{openFiles === undefined ? '–' : number(openFiles)}</td>
                <td>
                  <Moment time={startedS === undefined ? undefined : new Date(startedS * 1000).toISOString()} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <CountNote
        shown={workers.length}
        total={text === undefined ? undefined : workers.length}
        what={isOne ? 'process' : 'processes'}
      />
      <CurlNote client={client} request={request} />
    </>
  )
}

function shareText(cpuS: number | undefined, startedS: number | undefined): string {
  if (cpuS === undefined || startedS === undefined) return '–'
  const seconds = Math.max(1, Date.now() / 1000 - startedS)
  return `${number((100 * cpuS) / seconds, 1)} %`
}
