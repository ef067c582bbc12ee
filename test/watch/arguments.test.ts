// The command line of `orrery watch`, and the message that it becomes.

import t from 'tap'
import { readWatchArguments, type WatchOrder, watchMessage } from '../../src/watch/arguments.js'

function order(words: readonly string[], env: Record<string, string> = {}): WatchOrder {
  const reading = readWatchArguments(words, env)
  if (reading.kind === 'run') return reading.order
  throw new Error(reading.lines.join('\n'))
}

const messageOf = (line: string, from?: string) => JSON.parse(watchMessage(order(line.split(' ')), from))

t.test('without words it watches everything of the broker of this machine', async t => {
  const all = order([])
  t.match(all, { format: 'json', hasSnapshot: false, from: undefined, headers: [] })
  t.equal(all.url.href, 'http://localhost:1026/')
  t.equal(watchMessage(all, undefined), '{"op":"watch","id":"watch"}')
  t.equal(watchMessage(all, '1.a'), '{"op":"watch","id":"watch","from":"1.a"}')
})

const messages: readonly (readonly [line: string, members: Record<string, unknown>])[] = [
  ['-type Room,Lamp', { type: 'Room,Lamp' }],
  ['--id a,b', { entities: [{ id: 'a' }, { id: 'b' }] }],
  [
    '--id a,b -type R,L -q x',
    {
      entities: [
        { id: 'a', type: 'R' },
        { id: 'a', type: 'L' },
        { id: 'b', type: 'R' },
        { id: 'b', type: 'L' },
      ],
      q: 'x',
    },
  ],
  ['--id a -typePattern R.*', { entities: [{ id: 'a', typePattern: 'R.*' }] }],
  ['-idPattern ^R -typePattern=L.*', { idPattern: '^R', typePattern: 'L.*' }],
  ['-q temperature>25;on -mq a.b==1', { q: 'temperature>25;on', mq: 'a.b==1' }],
  [
    '-georel near;maxDistance:100 -geometry point -coords -33.4,-70.6',
    { georel: 'near;maxDistance:100', geometry: 'point', coords: '-33.4,-70.6' },
  ],
  ['-coords=-33.4,1', { coords: '-33.4,1' }],
  ['-attrs a,b -metadata c -conditionAttrs d', { attrs: 'a,b', metadata: 'c', conditionAttrs: 'd' }],
  ['-alterationTypes entityCreate -minInterval 500', { alterationTypes: 'entityCreate', minInterval: 500 }],
  ['-gather 200', { gather: 200 }],
  ['-snapshot -leave -sysAttrs', { options: ['snapshot', 'leave', 'sysAttrs'] }],
  ['-format keyValues -onlyChangedAttrs', { options: ['keyValues', 'onlyChangedAttrs'] }],
  ['-format table', { attrs: '*,servicePath', options: ['keyValues', 'snapshot', 'leave'] }],
  ['-format table -attrs a', { attrs: 'a,servicePath', options: ['keyValues', 'snapshot', 'leave'] }],
]
for (const [line, members] of messages)
  t.test(`the message of ${line}`, async t => {
    t.strictSame(messageOf(line), { op: 'watch', id: 'watch', ...members })
  })

t.test('a table has a snapshot, and so has a watch that wants one', async t => {
  t.equal(order(['-format', 'table']).hasSnapshot, true)
  t.equal(order(['-snapshot']).hasSnapshot, true)
})

t.test('scope and token are headers in both vocabularies, as those of an export', async t => {
  t.strictSame(order(['-tenant', 'City', '-path', '/a/#', '-token', 'T0']).headers, [
    ['Ctx-Service', 'city'],
    ['Fiware-Service', 'city'],
    ['Ctx-ServicePath', '/a/#'],
    ['Fiware-ServicePath', '/a/#'],
    ['X-Auth-Token', 'T0'],
    ['Authorization', 'Bearer T0'],
  ])
  t.strictSame(order(['-header', 'X-Key:  a b', '--header=Y: z']).headers, [
    ['X-Key', 'a b'],
    ['Y', 'z'],
  ])
})

t.test('certificates are those of the other commands', async t => {
  t.strictSame(order(['-insecureNotif']).tls, { insecure: true, caFile: undefined })
  t.strictSame(order([], { CTX_NOTIF_CA_FILE: '/e' }).tls, { insecure: false, caFile: '/e' })
  t.strictSame(order(['-notifCaFile', '/f'], { CTX_NOTIF_CA_FILE: '/e' }).tls, { insecure: false, caFile: '/f' })
})

const refused: readonly (readonly [words: readonly string[], why: string])[] = [
  [['-tpye', 'a'], '--tpye: unknown option; did you mean --type?'],
  [['-type'], '--type: needs a value'],
  [['-type', '-q', 'a'], '--type: needs a value'],
  [['-type='], '--type: needs a value'],
  [['-snapshot=yes'], '--snapshot: takes no value'],
  [['-format', 'tabel'], '--format: "tabel" is not json, keyValues or table; did you mean table?'],
  [['-format', 'table', '-from', 'x'], '--from: excludes --format table'],
  [['-format', 'table', '-onlyChangedAttrs'], '--onlyChangedAttrs: excludes --format table'],
  [['-gather', '-1'], '--gather: "-1" is not a whole number of milliseconds'],
  [['-minInterval', '1s'], '--minInterval: "1s" is not a whole number of milliseconds'],
  [['-url', 'localhost:1026'], '--url: "localhost:1026" is not a URL with http or https'],
  [['-url', 'http://h/?a'], '--url: "http://h/?a" is not a URL with http or https'],
  [['-path', '/a,/b'], '--path: "/a,/b" is not one path'],
  [['-id', 'a', '-idPattern', 'b'], '--idPattern: excludes --id'],
  [['-type', 'a', '-typePattern', 'b'], '--typePattern: excludes --type'],
  [
    ['-id', Array(50).fill('a').join(), '-type', Array(21).fill('b').join()],
    '--id: with --type it names 1050 entities, and a watch has at most 1000',
  ],
  [['-header', 'Upgrade: x'], '--header: Upgrade belongs to the connection itself'],
]
for (const [words, why] of refused)
  t.test(`refused: ${words.join(' ')}`, async t => {
    const reading = readWatchArguments(words, {})
    t.match(reading, { kind: 'refuse', lines: [/^Usage: orrery watch /, ''] })
    t.equal(reading.kind === 'refuse' && reading.lines.at(-1), why)
  })

const secrets: readonly (readonly string[])[] = [
  ['-header', 'Authorization', 'Bearer', 'SECRET'],
  ['-header', 'Authorization:', 'Bearer SECRET'],
  ['-header', 'no colon SECRET'],
  ['-header', 'X: SECRET\r\nY: z'],
  ['-token', 'SECRET\n'],
  ['-url', 'http://u:SECRET@h'],
  ['-url', 'http://u:SECRET@h:99999'],
  ['-tenant', 'a-b', '-token', 'SECRET'],
]
for (const words of secrets)
  t.test(`a refusal shows no secret: ${JSON.stringify(words)}`, async t => {
    const reading = readWatchArguments(words, {})
    t.equal(reading.kind, 'refuse')
    t.notMatch(JSON.stringify(reading), /SECRET/)
  })
