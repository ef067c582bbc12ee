// A real etcd for tests, of one member or three, on ports of its own: Debian's `etcd-server`.
//
// Members can be killed, stopped (SIGSTOP), and started again on their data. All end with the test, or with the process
// that runs it, also when they are stopped.

import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Etcd3 } from 'etcd3'
import type { EtcdAddress } from '../../cluster/logs/etcd-options.js'
import { freePort, plainly, type Teardown, tempDir } from './broker-process.js'
import { root } from './project.js'

/** How long etcd may take to start and to find a leader. */
const startMsMax = 20_000

/** Characters kept of a member's output. */
const printedLengthMax = 2000

/** The reason to skip tests with etcd; false: etcd is there, or could be installed. */
export function noEtcd(): string | false {
  try {
    execFileSync(join(root, 'test/support/need-debian.sh'), ['etcd=etcd-server'], { stdio: 'ignore' })
    return false
  } catch {
    return 'etcd is not installed and could not be (test/support/need-debian.sh etcd=etcd-server says why)'
  }
}

export interface EtcdSetting {
  readonly members?: 1 | 3
  /** Further arguments of each member. */
  readonly args?: readonly string[]
  /** Clients use TLS, and authenticate with certificates of this authority. */
  readonly tls?: { readonly certFile: string; readonly keyFile: string }
  /** Where members keep their data, each in its own folder; when absent, a folder that is removed with the test. */
  readonly dataDir?: string
  /** The source of ports; when absent, any free ports. */
  readonly nextPort?: () => Promise<number>
}

/** Starts an etcd and waits until it answers. */
export async function startEtcd(t: Teardown, setting: EtcdSetting = {}): Promise<Etcd> {
  const { members = 1, tls, nextPort = freePort } = setting
  const addresses: Addresses[] = []
  for (let n = 0; n < members; n++) addresses.push({ name: `m${n}`, client: await nextPort(), peer: await nextPort() })
  const cluster = addresses.map(({ name, peer }) => `${name}=http://127.0.0.1:${peer}`).join(',')
  const started = addresses.map(one => new EtcdMemberProcess(t, one, cluster, setting))
  const etcd = new Etcd(started, tls !== undefined)
  await Promise.all(started.map(member => member.untilHealthy()))
  return etcd
}

interface Addresses {
  readonly name: string
  readonly client: number
  readonly peer: number
}

export class Etcd {
  readonly members: readonly EtcdMemberProcess[]
  private readonly secure: boolean

  constructor(members: readonly EtcdMemberProcess[], secure: boolean) {
    this.members = members
    this.secure = secure
  }

  /** The address of all members, or of those given. */
  address(members: readonly { readonly address: string }[] = this.members): EtcdAddress {
    return { members: members.map(({ address }) => address), secure: this.secure, user: undefined, password: undefined }
  }

  /** The leader among the members. */
  async leader(): Promise<EtcdMemberProcess> {
    for (const member of this.members) {
      if (!member.running) continue
      const client = new Etcd3({ hosts: `http://${member.address}` })
      const { header, leader } = await client.maintenance.status()
      client.close()
      if (header.member_id === leader) return member
    }
    throw new Error('no member leads')
  }
}

export class EtcdMemberProcess {
  readonly address: string
  private readonly command: readonly string[]
  private child!: ChildProcess
  private printed = ''
  private healthy: (() => void)[] = []

  constructor(
    t: Teardown,
    { name, client, peer }: Addresses,
    cluster: string,
    { args = [], tls, dataDir = tempDir(t) }: EtcdSetting,
  ) {
    const scheme = tls ? 'https' : 'http'
    this.address = `127.0.0.1:${client}`
    const options = {
      name,
      'data-dir': join(dataDir, `etcd-${name}`),
      'listen-client-urls': `${scheme}://${this.address}`,
      'advertise-client-urls': `${scheme}://${this.address}`,
      'listen-peer-urls': `http://127.0.0.1:${peer}`,
      'initial-advertise-peer-urls': `http://127.0.0.1:${peer}`,
      'initial-cluster': cluster,
      'initial-cluster-token': cluster,
      logger: 'zap',
      ...(tls && { 'cert-file': tls.certFile, 'key-file': tls.keyFile }),
    }
    this.command = ['etcd', ...Object.entries(options).map(([key, value]) => `--${key}=${value}`), ...args]
    // First, since teardowns run last to first: the process must end before its directory is removed.
    t.teardown(() => this.kill())
    this.start()
  }

  /** Starts the member, also again, on its data. */
  start(): void {
    this.child = spawn(...plainly(this.command), { stdio: ['ignore', 'pipe', 'pipe'] })
    const { child } = this
    alive.add(child)
    child.once('exit', () => alive.delete(child))
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.on('data', (text: Buffer) => {
        this.printed = (this.printed + text.toString()).slice(-printedLengthMax)
        if (/serving client traffic/.test(this.printed)) {
          for (const ready of this.healthy.splice(0)) ready()
        }
      })
    }
  }

  /** The id of the process that runs now, or ran last. */
  get pid(): number {
    return this.child.pid!
  }

  get running(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null
  }

  /** Resolves when the member reports that it serves clients: the cluster has a leader then. */
  async untilHealthy(): Promise<void> {
    let late: NodeJS.Timeout | undefined
    await new Promise<void>((resolve, reject) => {
      late = setTimeout(() => reject(new Error(`etcd does not start\n${this.printed}`)), startMsMax)
      this.child.once('error', reject)
      this.child.once('exit', code => reject(new Error(`etcd has ended with ${code}\n${this.printed}`)))
      this.healthy.push(resolve)
    }).finally(() => clearTimeout(late))
  }

  /** As `kill -9`; resolves when the member has ended. */
  async kill(): Promise<void> {
    if (!this.running) return
    const ended = once(this.child, 'exit')
    this.child.kill('SIGKILL')
    await ended
  }

  /** Starts the member again and waits until it serves. */
  async restart(): Promise<void> {
    this.printed = ''
    this.start()
    await this.untilHealthy()
  }

  /** Stops the member with SIGSTOP, without ending it, and returns when it is stopped. */
  stop(): void {
    this.child.kill('SIGSTOP')
    const beganMs = performance.now()
    while (!standsStill(this.child.pid!)) assert(performance.now() - beganMs < stopMsMax, 'it does not stop')
  }

  goOn(): void {
    this.child.kill('SIGCONT')
  }
}

const stopMsMax = 5000

/**
 * Whether no thread of a process runs any more. Where both cores are busy, some threads run on for a while, and answer.
 * Only Linux shows this state.
 */
function standsStill(pid: number): boolean {
  if (process.platform !== 'linux') return true
  return readdirSync(`/proc/${pid}/task`).every(thread => {
    const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'latin1')
    return stat.charAt(stat.lastIndexOf(')') + 2) === 'T'
  })
}

/** When the test process ends before its tests do, as by tap's own deadline, no member is left behind. */
const alive = new Set<ChildProcess>()
function killAll(): void {
  for (const child of alive) child.kill('SIGKILL')
}
process.on('exit', killAll)
process.prependOnceListener('SIGTERM', killAll)
process.prependOnceListener('SIGINT', killAll)
