// `deploy/three-nodes.sh`, as a newcomer uses it: it prints when all nodes are ready, the commands that it prints work,
// and Ctrl-C ends everything.

import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import t from 'tap'
import { accepts, freePort, tempDir } from '../support/broker-process.js'
import { noEtcd } from '../support/etcd.js'
import { root } from '../support/project.js'

const waitMsMax = 120_000
t.setTimeout(3 * waitMsMax)

const run = promisify(execFile)

/** A base port such that all ports that the script derives from it are free. */
async function freeBase(): Promise<number> {
  while (true) {
    const base = await freePort()
    if (base > 50_000) continue
    const all = [base, base + 1, base + 2, base + 6000, base + 6001, base + 6002, base + 1358, base + 1359]
    if (!(await Promise.all(all.map(accepts))).includes(true)) return base
  }
}

t.test('three nodes start, answer for each other, survive the loss of one, and end', { skip: noEtcd() }, async t => {
  const folder = join(tempDir(t), 'data')
  const base = await freeBase()
  const script = spawn(join(root, 'deploy/three-nodes.sh'), [folder, String(base)], {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  t.teardown(() => {
    if (script.exitCode === null) process.kill(-script.pid!, 'SIGKILL')
  })
  let printed = ''
  for (const output of [script.stdout, script.stderr]) output.on('data', text => (printed += text))
  const until = async (what: string, holds: () => unknown): Promise<void> => {
    const untilMs = performance.now() + waitMsMax
    while (!(await holds())) {
      if (performance.now() > untilMs || script.exitCode !== null) throw new Error(`${what}:\n${printed}`)
      await pause(100)
    }
  }
  await until('all nodes are ready', () => printed.includes('Ctrl-C ends all of them.'))

  const commands = printed.split('\n').filter(line => line.startsWith('  '))
  t.equal(commands.length, 5)
  const [create, read, kill, readAgain, status] = commands.map(command => command.trim())
  const shell = (command = ''): Promise<string> =>
    run('bash', ['-c', command], { cwd: root }).then(({ stdout }) => stdout)
  await shell(create)
  t.match(await shell(read), /"id":"lamp"/)
  await shell(kill)
  await until('another node has taken over', async () => (await shell(readAgain).catch(() => '')).includes('"lamp"'))
  t.match(await shell(status), /node1/)

  script.kill('SIGINT')
  const [code] = await once(script, 'exit')
  t.equal(code, 0)
  for (const port of [base, base + 1, base + 2, base + 1358]) t.notOk(await accepts(port), `nothing listens on ${port}`)
  t.ok(existsSync(folder), 'a directory that was named stays')
})
