// Log and settings: the log of the process and its statistics, and the options with which it was started.

import type { ConsoleRequest } from '../interface/console-request.js'
import { FilterField } from '../parts/filter-field.js'
import { CountNote, CurlNote, Problem } from '../parts/notes.js'
import { isAtOtherPort, OperatorsNote } from '../parts/operators-note.js'
import type { ConsoleParts } from '../state/console-parts.js'
import { useValue } from '../state/observable.js'
import { useReading } from '../state/reading.js'
import { LogPart } from './log-settings.js'
import { StatisticsPart } from './statistics.js'

interface OptionShape {
  readonly name: string
  readonly value: string
  readonly source: string
}

const request: ConsoleRequest = { method: 'GET', path: 'admin/settings' }

export function SettingsView({ client, bar }: ConsoleParts) {
  const { filter = '', given = '' } = useValue(bar.address).parameters
  const { json, problem } = useReading<{ readonly options: readonly OptionShape[] }>(client, request)
  const title = <h1 id="view-title">Log and settings</h1>
  if (isAtOtherPort(problem))
    return (
      <section aria-labelledby="view-title">
        {title}
        <OperatorsNote path={request.path} />
        <CurlNote client={client} request={request} />
      </section>
    )
  const options = json?.options ?? []
  const wanted = filter.toLowerCase()
  const shown = options.filter(
    ({ name, value, source }) =>
      `-${name} ${value}`.toLowerCase().includes(wanted) && (given === '' || source !== 'default'),
  )
  return (
    <section aria-labelledby="view-title">
      {title}
      <LogPart client={client} />
      <StatisticsPart client={client} />
      <h2>Settings</h2>
      <p class="quiet">
        The options of the start, as <code>orrery config check</code> prints them. They hold until the next start.
      </p>
      <Problem problem={problem} />
      <div class="filters">
        <FilterField label="Option or value" value={filter} onChange={value => bar.change({ filter: value })} isFirst />
        <label class="tick">
          <input
            type="checkbox"
            checked={given !== ''}
            onChange={({ currentTarget }) => bar.change({ given: currentTarget.checked ? '1' : '' })}
          />
          Without defaults
        </label>
        <CountNote shown={shown.length} total={json && options.length} what="options" />
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-label="Table of options">
        <table>
          <thead>
            <tr>
              <th scope="col">Option</th>
              <th scope="col">Value</th>
              <th scope="col">From</th>
            </tr>
          </thead>
          <tbody>
            {shown.map(({ name, value, source }) => (
              <tr key={name}>
                <th scope="row">-{name}</th>
                <td class="wrap value">{value}</td>
                <td class={source === 'default' ? 'quiet' : 'wrap'}>{source}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <CurlNote client={client} request={request} />
    </section>
  )
}
