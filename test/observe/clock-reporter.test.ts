// Lines and the alarm for operators about the clock of a node.

import t from 'tap'
import type { ClockStatus } from '../../src/messages/cluster-status.js'
import { ClockReporter } from '../../src/observe/clock-reporter.js'

const status = (state: ClockStatus['state'], aheadMs = 0): ClockStatus => ({ state, aheadMs, skewMaxMs: 500 })

t.test('a wrong clock is one alarm from its begin to its end, and a line when it becomes unsafe', async t => {
  const lines: string[] = []
  let isActive = false
  const reporter = new ClockReporter(
    { warn: line => lines.push(line) },
    {
      raise: (kind, _, detail) => {
        isActive = true
        lines.push(`raise ${kind}: ${detail}`)
      },
      release: kind => {
        if (isActive) lines.push(`release ${kind}`)
        isActive = false
      },
    },
  )
  const looks = [
    status('unknown'),
    status('close', 20),
    status('apart', -700),
    status('apart', -800),
    status('unsafe', -2300),
    status('apart', -450),
    status('close', 10),
    status('unknown'),
    status('apart', 0),
  ]
  for (const look of looks) reporter.onClock(look)
  const where = '(docs/operations/cluster.md#clocks)'
  t.strictSame(lines, [
    `raise ClusterClockError: the clock of this node is 0.7 s behind the clocks of the others ${where}`,
    'cluster: the clock of this node is 2.3 s behind the clocks of the others, and the node takes no shards until it is within 500 ms',
    'cluster: the clocks of the nodes differ by more than 500 ms, and no majority of them agrees on the time',
    'release ClusterClockError',
    `raise ClusterClockError: the clocks of the nodes differ by more than 500 ms, and no majority of them agrees on the time ${where}`,
  ])
})
