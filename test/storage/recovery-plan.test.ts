// The plan of a recovery in its file, and a directory that has one.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { placementDefault } from '../../src/domain/scope.js'
import { DataDirectoryError, openDataDirectory, recordCluster } from '../../src/storage/data-directory.js'
import { readPlan, removePlan, writePlan } from '../../src/storage/recovery-plan.js'
import { tempDir } from '../support/broker-process.js'

const position = (sequence: number) => ({ sequence, epoch: 3, hash: Buffer.alloc(16, sequence) })
const plan = {
  ...{ mark: 'mark', from: 'c1', to: 'c2' },
  positions: new Map([
    [0, [position(7)]],
    [256, [position(9), position(2)]],
  ]),
}

t.test('a plan is read as it was written, and is gone when it is removed', async t => {
  const path = tempDir(t)
  t.equal(readPlan(path), undefined)
  writePlan(path, plan)
  t.strictSame(readPlan(path), plan)
  removePlan(path)
  removePlan(path)
  t.equal(readPlan(path), undefined)
})

t.test('a damaged plan, or one of another version, is refused', async t => {
  const path = tempDir(t)
  const file = join(path, 'cluster-recover.json')
  for (const text of ['{', '{}', '{"version":2,"positions":[]}', '{"version":1}']) {
    writeFileSync(file, text)
    t.throws(() => readPlan(path), { name: 'DataDirectoryError', message: /cluster-recover\.json that cannot be read/ })
  }
})

t.test('no broker opens a directory with a plan, and the cluster that it names afterwards is the new one', async t => {
  const path = tempDir(t)
  const wanted = (id: string) => ({ ...placementDefault, cluster: { id } })
  const directory = openDataDirectory(path, wanted('c1'), () => 'an-id')
  writePlan(path, plan)
  t.throws(() => openDataDirectory(path, wanted('c1'), () => 'x'), DataDirectoryError)
  recordCluster(directory, 'c2')
  t.throws(() => openDataDirectory(path, wanted('c2'), () => 'x'), /is part of a recovery that has not ended/)
  removePlan(path)
  t.match(
    openDataDirectory(path, wanted('c2'), () => 'x'),
    { id: 'an-id', cluster: { id: 'c2' } },
  )
})
