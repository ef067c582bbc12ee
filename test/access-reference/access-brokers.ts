// The kinds of brokers that a campaign runs against, and the change of their access file.
//
// A broker starts with a file that allows every client everything, since the nodes of a cluster are asked for their
// state while they start. Each later file has a key of its own without rules. When every process accepts that key, the
// file is in use. Not here: requests and answers (access-campaign).

import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type BrokerProcess, startBroker, type Teardown, tempDir } from '../support/broker-process.js'
import { HttpClient } from '../support/http-client.js'
import { startThreeNodes } from '../support/three-nodes.js'
import { type AccessFile, openFile, secretOf } from './random-access-file.js'

export const brokerKinds = ['one process', 'two workers', 'three nodes'] as const

export type BrokerKind = (typeof brokerKinds)[number]

export interface JudgedBroker {
  readonly kind: BrokerKind
  readonly withAccess: boolean
  /** One for each node. */
  readonly urls: readonly string[]
  /** Puts a file into use; `probe`: the name of its key without rules. */
  useFile(file: AccessFile, probe: string): Promise<void>
}

/** So many new connections in a row have to accept the key: each goes to any of the workers. */
const acceptedMin = 24
const fileWaitMsMax = 20_000

/** Starts brokers. `withAccess`: false for brokers without the option, which allow everything. */
export async function startJudged(
  t: Teardown,
  kind: BrokerKind,
  seed: number,
  withAccess: boolean,
): Promise<JudgedBroker> {
  const folder = tempDir(t)
  const path = join(folder, 'access.json')
  writeFileSync(path, JSON.stringify(openFile(seed)))
  const args = ['-multiservice', ...(withAccess ? ['-access', path] : [])]
  const brokers = await start(t, kind, folder, args)
  const urls = brokers.map(({ baseUrl }) => baseUrl)
  let files = 0
  const useFile = async (file: AccessFile, probe: string) => {
    if (!withAccess) return
    writeFileSync(`${path}.new`, JSON.stringify(file))
    renameSync(`${path}.new`, path)
    // Every other file is found by the broker itself.
    if (files++ % 2 === 0) for (const broker of brokers) hangUp(broker)
    await untilAccepted(urls, secretOf(seed, probe))
    for (const broker of brokers) broker.takeOutput()
  }
  return { kind, withAccess, urls, useFile }
}

async function start(t: Teardown, kind: BrokerKind, folder: string, args: readonly string[]) {
  if (kind === 'three nodes') return startThreeNodes(t, { folder, args })
  return [await startBroker(t, { args: kind === 'one process' ? args : [...args, '-workers', '2'] })]
}

const hangUp = ({ child }: BrokerProcess): boolean => child.kill('SIGHUP')

async function untilAccepted(urls: readonly string[], secret: string): Promise<void> {
  const untilMs = performance.now() + fileWaitMsMax
  for (const url of urls)
    for (let accepted = 0; accepted < acceptedMin; ) {
      const client = new HttpClient(url)
      const { status } = await client.get('/version', { 'X-Api-Key': secret })
      client.close()
      if (performance.now() > untilMs) throw new Error(`the new access file is not in use after ${fileWaitMsMax} ms`)
      accepted = status === 200 ? accepted + 1 : 0
      if (accepted === 0) await pause(50)
    }
}
