// The report of a recovery names what may be missing.

import t from 'tap'
import { reportInWords } from '../../src/process/recovery-report.js'

const directory = (path: string, minute: number, ...current: number[]) => ({
  path,
  behind: 1,
  lastMs: Date.UTC(2026, 0, 1, 12, minute),
  current: new Set(current),
})

const report = (...directories: ReturnType<typeof directory>[]): string =>
  reportInWords({ from: 'c1', to: 'c2', shards: [0, 1, 3], total: 4, directories })

t.test('every directory is listed, with its copies that continue and those that it has to fetch', async t => {
  const text = report(directory('/a', 5, 0, 1, 3), directory('/b', 5, 0, 1))
  t.match(text, 'cluster c1 is cluster c2 now, and continues with 3 of 4 shards.')
  t.match(
    text,
    '/a: 3 copies continue, and 1 are fetched from other nodes; its last change was at 2026-01-01T12:05:00.000Z',
  )
  t.match(text, '/b: 2 copies continue, and 1 are fetched from other nodes;')
  t.match(text, 'shard 3: only /a has the furthest copy')
  t.match(text, 'shard 2: empty from now on, since no directory has a copy')
  t.notMatch(text, /may be missing/)
})

t.test('a shard may lack changes if a directory goes on after those with the furthest copy of the shard', async t => {
  const text = report(directory('/a', 5, 0, 1), directory('/b', 9, 0, 3))
  t.match(
    text,
    'shard 1: changes between 2026-01-01T12:05:00.000Z and 2026-01-01T12:09:00.000Z may be missing, since only /b goes on until then',
  )
  t.notMatch(text, /shards? [03].*may be missing/)
})

t.test('with a single directory nothing is compared', async t => {
  t.notMatch(report(directory('/a', 5, 0, 1, 3)), /only \/a|may be missing/)
})
