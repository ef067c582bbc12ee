// docs/operations/access-setups.md works as it is printed: its files are saved, and each command has the output on the
// page.
//
// Keycloak is stood in for by an OpenID provider that issues the same claims at the same paths (openid-provider.ts).
// Free ports replace 1026 and 8080 in both directions. The broker gets its port from the environment, so its command
// line is that of the page.

import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { freePort, tempDir } from '../support/broker-process.js'
import { readPage } from '../support/markdown.js'
import { main } from '../support/project.js'
import { Terminal } from '../support/terminal.js'
import { difference, filesOfPage, shows, transcriptOfPage } from '../support/transcript.js'
import { OpenIdProvider } from './openid-provider.js'
import { lacking } from './workspace.js'

t.setTimeout(400_000)

const page = 'docs/operations/access-setups.md'
const people = {
  ada: { secret: 'ada-secret', roles: ['city-operator', 'offline_access', 'default-roles-city'] },
  bob: { secret: 'bob-secret', roles: ['city-viewer'] },
}
const programs = { acme: { secret: 'acme-secret', roles: ['customer'], tenants: ['acme'] } }

t.test('the set-ups of access control work as they are printed', { skip: lacking || lackingCurl() }, async t => {
  const provider = await OpenIdProvider.start(t, people, programs)
  const ports = [
    ['1026', String(await freePort())],
    ['8080', new URL(provider.issuer).port],
  ] as const
  const real = (text: string): string => ports.reduce((all, [written, port]) => all.replaceAll(written, port), text)
  const written = (text: string): string =>
    ports.reduce((all, [written, port]) => all.replaceAll(`:${port}`, `:${written}`), text)

  const terminal = new Terminal(t)
  const folder = (await terminal.run('pwd')).trim()
  const bin = join(tempDir(t), 'bin')
  mkdirSync(bin)
  writeFileSync(join(bin, 'orrery'), `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n`)
  chmodSync(join(bin, 'orrery'), 0o755)
  await terminal.run(`PATH='${bin}':$PATH; export CTX_PORT=${ports[0][1]}`)

  const markdown = readPage(page)
  const files = filesOfPage(markdown)
  const steps = transcriptOfPage(markdown)
  t.ok(files.length >= 4 && steps.length >= 30, `${files.length} files, ${steps.length} commands`)
  for (const step of steps) {
    while (files[0] && files[0].line < step.line) {
      const { name, text } = files.shift()!
      writeFileSync(join(folder, name), real(text))
    }
    const output = written(await terminal.run(real(step.command), 60_000))
    if (shows(step, output)) t.pass(`${page}:${step.line} $ ${step.command.split('\n')[0]}`)
    else return void t.fail(`${page}:${step.line}`, { difference: difference(step, output, page) })
  }
  t.strictSame(files, [], 'each file has a command behind it')
})

function lackingCurl(): string | false {
  try {
    execFileSync('bash', ['-c', 'command -v curl && curl --help all | grep -e --json'], { stdio: 'pipe' })
    return false
  } catch {
    return 'bash or curl is missing, or curl is older than 7.82'
  }
}
