// `orrery demo` as a process: started, and ended with its test.

import { spawn } from 'node:child_process'
import { BrokerProcess, freePort, plainly, type Teardown, tempDir, untilReady } from './broker-process.js'
import { main } from './project.js'

export interface DemoProcess {
  readonly demo: BrokerProcess
  readonly port: number
  /** The folder in which it makes temporary directories. */
  readonly temporary: string
}

/** Starts the command and does not wait. */
export async function spawnDemo(t: Teardown, args: readonly string[] = []): Promise<DemoProcess> {
  const [port, temporary] = [await freePort(), tempDir(t)]
  const words = plainly([process.execPath, main, 'demo', '-port', String(port), ...args])
  const child = spawn(...words, {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
    env: { ...process.env, TMPDIR: temporary },
  })
  const demo = new BrokerProcess(child, port, '')
  t.teardown(() => demo.kill('SIGKILL'))
  return { demo, port, temporary }
}

/** Starts the command and waits until the city is there. */
export async function startDemo(t: Teardown, args: readonly string[] = []): Promise<DemoProcess> {
  const started = await spawnDemo(t, args)
  await untilReady(started.demo, 60_000)
  return started
}
