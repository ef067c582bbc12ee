// The tour in README.md works as it is printed.
//
// A shell runs every command of the tour against a broker that was started for it, and the output must be as printed in
// the README. The broker listens on a free port, which replaces `localhost:1026` in both directions; another free one
// replaces port 8081 of the reader's receiver. The notation is described in support/transcript.ts.

import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { freePort, startBroker } from '../support/broker-process.js'
import { root } from '../support/project.js'
import { Terminal } from '../support/terminal.js'
import { difference, shows, transcript } from '../support/transcript.js'

const readme = process.env.TOUR_FILE ?? join(root, 'README.md')

t.test('every command of the tour has the output in the README', { skip: lacking() }, async t => {
  const steps = transcript(readFileSync(readme, 'utf8'), 'tour') ?? []
  t.ok(
    steps.length > 0,
    `README.md has a tour of ${steps.length} commands, between <!-- tour:start --> and <!-- tour:end -->`,
  )
  const broker = await startBroker(t)
  const here = `localhost:${broker.port}`
  const receiver = String(await freePort())
  const terminal = new Terminal(t)
  for (const step of steps) {
    const output = await terminal.run(step.command.replaceAll('localhost:1026', here).replaceAll('8081', receiver))
    const shown = output.replaceAll(here, 'localhost:1026')
    if (shows(step, shown)) t.pass(`README.md:${step.line} $ ${step.command.split('\n')[0]}`)
    else return void t.fail(`README.md:${step.line} $ ${step.command}`, { difference: difference(step, shown) })
  }
})

function lacking(): string | false {
  if (!existsSync(readme)) return 'there is no README.md'
  try {
    execFileSync('bash', ['-c', 'command -v curl'], { stdio: 'pipe' })
    return false
  } catch {
    return 'bash or curl is missing'
  }
}
