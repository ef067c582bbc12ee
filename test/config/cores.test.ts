// Cores that a process may use, over files as the kernel has them.

import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { availableCores } from '../../src/config/cores.js'
import { tempDir } from '../support/broker-process.js'

/** The kernel's files, and the usable cores of eight. */
const cases: readonly (readonly [what: string, files: Readonly<Record<string, string>>, cores: number])[] = [
  ['nothing, where there are no control groups', {}, 8],
  ['no limit', { 'proc/self/cgroup': '0::/a', 'sys/fs/cgroup/a/cpu.max': 'max 100000' }, 8],
  ['two and a half cores', { 'proc/self/cgroup': '0::/a', 'sys/fs/cgroup/a/cpu.max': '250000 100000' }, 2],
  ['a fifth of a core', { 'proc/self/cgroup': '0::/a', 'sys/fs/cgroup/a/cpu.max': '20000 100000' }, 1],
  ['more than there are', { 'proc/self/cgroup': '0::/a', 'sys/fs/cgroup/a/cpu.max': '1600000 100000' }, 8],
  [
    'less for the group above',
    {
      'proc/self/cgroup': '0::/slice/unit',
      'sys/fs/cgroup/slice/unit/cpu.max': '600000 100000',
      'sys/fs/cgroup/slice/cpu.max': '300000 100000',
    },
    3,
  ],
  ['the root of a container only', { 'proc/self/cgroup': '0::/../x', 'sys/fs/cgroup/cpu.max': '400000 100000' }, 4],
  [
    'a limit of version 1',
    {
      'proc/self/cgroup': '5:memory:/m\n4:cpu,cpuacct:/c\n0::/',
      'sys/fs/cgroup/cpu/c/cpu.cfs_quota_us': '200000\n',
      'sys/fs/cgroup/cpu/c/cpu.cfs_period_us': '100000\n',
    },
    2,
  ],
  [
    'no limit in version 1',
    {
      'proc/self/cgroup': '4:cpu,cpuacct:/c',
      'sys/fs/cgroup/cpu/c/cpu.cfs_quota_us': '-1\n',
      'sys/fs/cgroup/cpu/c/cpu.cfs_period_us': '100000\n',
    },
    8,
  ],
  ['what nobody can read', { 'proc/self/cgroup': '\n::\nx', 'sys/fs/cgroup/cpu.max': '' }, 8],
]

for (const [what, files, cores] of cases)
  t.test(`of eight cores and ${what}: ${cores}`, async t => {
    const root = tempDir(t)
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(root, path)), { recursive: true })
      writeFileSync(join(root, path), text)
    }
    t.equal(availableCores(root, 8), cores)
  })
