// Every example of docs/interface works as the page shows it.
//
// A shell runs each command of a page's console blocks, and its output must be as printed on the page. All pages share
// one broker and run at the same time; each page has a shell and a tenant of its own. A page that names tenants itself
// begins in the default tenant. The port 1026 is replaced by that of the broker, 8081 and 8082 by free ones, in both
// directions. INTERFACE_PAGE names a single page to run.
//
// Not here: the notation (support/transcript.ts), the tour of the README (tour.test.ts).

import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { freePort, startBroker } from '../support/broker-process.js'
import { root } from '../support/project.js'
import { Terminal } from '../support/terminal.js'
import { difference, type Step, shows, transcriptOfPage } from '../support/transcript.js'

const folder = 'docs/interface'
const pages = readdirSync(join(root, folder)).filter(name => name === (process.env.INTERFACE_PAGE ?? name))

t.test('every example of docs/interface has the result on its page', { skip: lacking() }, async t => {
  const broker = await startBroker(t, { args: ['-multiservice', '-durability', 'os'] })
  const ports = [
    ['1026', String(broker.port)],
    ['8081', String(await freePort())],
    ['8082', String(await freePort())],
  ] as const
  const run = async (page: string, steps: readonly Step[]): Promise<void> => {
    const terminal = new Terminal(t)
    const isTenantNamed = steps.some(({ command }) => command.includes("'Ctx-Service:"))
    const tenant = page.replace('.md', '').replaceAll('-', '_')
    if (!isTenantNamed) await terminal.run(`echo 'header = "Ctx-Service: ${tenant}"' >> .curlrc`)
    for (const step of steps) {
      const command = ports.reduce((text, [written, real]) => text.replaceAll(written, real), step.command)
      const shown = await terminal.run(command)
      const output = ports.reduce((text, [written, real]) => text.replaceAll(`:${real}`, `:${written}`), shown)
      if (shows(step, output)) t.pass(`${page}:${step.line} $ ${step.command.split('\n')[0]}`)
      else return void t.fail(`${page}:${step.line} $ ${step.command}`, { difference: difference(step, output, page) })
    }
  }
  const transcripts = pages.map(
    page => [page, transcriptOfPage(readFileSync(join(root, folder, page), 'utf8'))] as const,
  )
  t.ok(
    transcripts.some(([, steps]) => steps.length > 0),
    'there are examples',
  )
  await Promise.all(transcripts.filter(([, steps]) => steps.length > 0).map(([page, steps]) => run(page, steps)))
})

function lacking(): string | false {
  try {
    execFileSync('bash', ['-c', 'command -v curl && curl --help all | grep -e --json'], { stdio: 'pipe' })
    return false
  } catch {
    return 'bash or curl is missing, or curl is older than 7.82'
  }
}
