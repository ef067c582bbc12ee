// The command line of export and import.

import t from 'tap'
import { type MoveOrder, readArguments, type Verb } from '../../src/move/arguments.js'
import { summary } from '../../src/move/command.js'

function order(verb: Verb, words: string, env: Record<string, string> = {}): MoveOrder {
  const reading = readArguments(verb, words.split(' ').filter(Boolean), env)
  if (reading.kind === 'run') return reading.order
  throw new Error(JSON.stringify(reading))
}

t.test('an export is of the data directory, to standard output', async t => {
  t.match(order('export', ''), {
    from: { kind: 'directory', path: './data' },
    to: { kind: 'file', path: '-' },
    selection: { tenants: undefined, paths: undefined },
  })
  t.match(order('export', '-dataDir /d --to=x.ndjson'), {
    from: { path: '/d' },
    to: { kind: 'file', path: 'x.ndjson' },
  })
  t.match(order('export', '', { CTX_DATA_DIR: '/e' }), { from: { path: '/e' } })
})

t.test('an import is of standard input, into the data directory', async t => {
  t.match(order('import', ''), {
    from: { kind: 'file', path: '-' },
    to: { kind: 'directory', path: './data' },
    workers: undefined,
  })
  t.match(order('import', '-file - -workers 3 -overwrite -skipBad'), { workers: 3, overwrites: true, skipsBad: true })
})

t.test('a broker may be on either side, with tenants and paths', async t => {
  t.match(
    order('import', '--from http://h:1026 --tenant City --tenant x --path /a --path /b/c -token T --to https://i/base'),
    {
      from: { kind: 'broker', url: 'http://h:1026' },
      to: { kind: 'broker', url: 'https://i/base' },
      selection: { tenants: ['city', 'x'], paths: ['/a', '/b/c'] },
      token: 'T',
    },
  )
  t.match(order('export', '-from http://h -to f'), { from: { kind: 'broker' }, to: { kind: 'file', path: 'f' } })
})

const refused: readonly (readonly [verb: Verb, words: string, why: RegExp])[] = [
  ['export', '-overwrite', /overwrite/],
  ['export', 'x', /x/],
  ['import', '-from h:1', /-from: "h:1" is not a URL with http or https/],
  ['import', '-from http://u:p@h', /is not a URL/],
  ['import', '-to http://h?x', /is not a URL/],
  ['import', '-file a -from http://h', /-file: excludes -from/],
  ['import', '-dataDir a -to http://h', /-dataDir: excludes -to/],
  ['export', '-dataDir a -from http://h', /-dataDir: excludes -from/],
  ['import', '-workers 0', /-workers: "0" is not auto, or a whole number from 1 to 64/],
  ['import', '-tenant a-b', /-tenant: /],
  ['import', '-path a', /-path: /],
  ['import', '-path /a/#', /-path: "\/a\/#" is not one path/],
  ['import', '-file', /file/],
]
for (const [verb, words, why] of refused)
  t.test(`refused: ${verb} ${words}`, async t => {
    const reading = readArguments(verb, words.split(' '), {})
    t.match(reading, { kind: 'refuse', lines: [new RegExp(`^Usage: orrery ${verb} `), ''] })
    t.match(reading.kind === 'refuse' && reading.lines.at(-1), why, 'what is wrong stands last')
  })

t.test('the last sentence reports the outcome of all items', async t => {
  const none = { written: 0, replaced: 0, same: 0, kept: 0, bad: 0, unselected: 0 }
  const tally = {
    entity: { written: 5, replaced: 2, same: 3, kept: 4, bad: 1, unselected: 6 },
    registration: none,
    subscription: { ...none, written: 1 },
  }
  t.equal(
    summary(tally, 'import'),
    'imported 7 entities (2 of them in the place of others, 3 were there already and are equal, 4 are there already and differ: they stay (-overwrite replaces them), 1 failed, 6 were not selected), 0 registrations, 1 subscriptions',
  )
})
