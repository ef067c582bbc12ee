// The access file on disk: how it is read at the start, and the effect of changes. Files are real, time is not.

import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { AccessSource } from '../../src/access/access-source.js'
import { readUsable } from '../../src/access/access-text.js'
import type { JsonObject } from '../../src/domain/json.js'
import { tempDir } from '../support/broker-process.js'
import { FakeClock } from '../support/fake-clock.js'
import { signingKey } from '../support/identity-provider.js'

const fileOf = (role: string): JsonObject => ({ anonymous: [role], roles: { [role]: [] } })

/** A source whose file has the role `first`. */
function watching(t: Test, name = 'access.json', text = JSON.stringify(fileOf('first'))) {
  const folder = tempDir(t)
  const path = join(folder, name)
  writeFileSync(path, text)
  const clock = new FakeClock()
  const lines: string[] = []
  const log = (line: string): number => lines.push(line.replaceAll(folder, ''))
  const source = new AccessSource(path, {
    clock,
    logger: { info: line => log(`INFO ${line}`), error: line => log(`ERROR ${line}`) },
  })
  t.teardown(() => source.stop())
  const received: unknown[] = []
  source.on(file => received.push(file.anonymous))
  source.begin()
  return {
    folder,
    path,
    clock,
    source,
    lines,
    received,
    put: (members: JsonObject): void => writeFileSync(path, JSON.stringify(members)),
    /** The next regular look. */
    async next(): Promise<void> {
      clock.advance(1_000)
      await source.looked
    },
  }
}

t.test('a start without a usable file is refused with the reason', async t => {
  const folder = tempDir(t)
  const given = { clock: new FakeClock(), logger: { info: () => {}, error: () => {} } }
  const refusalOf = (name: string, text?: string | Buffer): string => {
    const path = join(folder, name)
    if (text !== undefined) writeFileSync(path, text)
    try {
      new AccessSource(path, given)
      return 'no refusal'
    } catch (error) {
      return (error as Error).message.replaceAll(folder, '')
    }
  }
  t.match(refusalOf('none.json'), /^the access file \/none\.json: ENOENT/)
  t.equal(
    refusalOf('a.json', '{"anonymous":\n["gest"]}'),
    'the access file /a.json: line 2: anonymous: names the role "gest", which is not in roles',
  )
  t.equal(
    refusalOf('a.yaml', 'anonymous:\n  - gest\n'),
    'the access file /a.yaml: line 2: anonymous: names the role "gest", which is not in roles',
  )
  t.match(refusalOf('a', '{"anonymous"'), /^the access file \/a: line 1: /)
  t.match(refusalOf('b.json', Buffer.from([0x7b, 0xff, 0x7d])), /is not UTF-8$/)
  mkdirSync(join(folder, 'd.json'))
  t.match(refusalOf('d.json'), /is no file$/)
  const issuer = { issuer: 'i', audience: 'a', jwksFile: 'keys.json', algorithms: ['ES256'] }
  t.match(
    refusalOf('k.json', JSON.stringify({ issuers: [issuer] })),
    /^the access file \/k\.json: issuers\[0\]\.jwksFile: ENOENT/,
  )
  writeFileSync(join(folder, 'keys.json'), '{}')
  t.equal(refusalOf('k.json'), 'the access file /k.json: issuers[0].jwksFile: there is no member "keys" with a list')
  writeFileSync(join(folder, 'keys.json'), JSON.stringify({ keys: [(await signingKey('ES256', 'a')).jwk] }))
  t.equal(refusalOf('k.json'), 'no refusal', 'its path begins at the folder of the file')
})

t.test('a start uses the file that was checked before, unless it has changed since', async t => {
  const path = join(tempDir(t), 'access.json')
  const given = { clock: new FakeClock(), logger: { info: () => {}, error: () => {} } }
  writeFileSync(path, JSON.stringify(fileOf('first')))
  const checked = readUsable(path)
  if (!checked.ok) return t.fail('it is refused')
  t.equal(new AccessSource(path, given, checked.value).file, checked.value.file)
  t.strictSame(structuredClone(checked.value), checked.value, 'it reaches another thread as it is')
  writeFileSync(path, JSON.stringify(fileOf('another')))
  t.strictSame(new AccessSource(path, given, checked.value).file.anonymous, ['another'])
})

for (const [name, text] of [
  ['access.yaml', 'anonymous: [first]\nroles: {first: []}\n'],
  ['access.yml', 'anonymous: [first]\nroles: {first: []}\n'],
  ['access', '# a comment\nanonymous: [first]\nroles: {first: []}\n'],
  ['access.conf', ' \n{"anonymous": ["first"], "roles": {"first": []}}'],
  ['access.json', '\ufeff{"anonymous": ["first"], "roles": {"first": []}}'],
] as const)
  t.test(`${name} is read by its name or its first character`, async t => {
    t.strictSame(watching(t, name, text).source.file.anonymous, ['first'])
  })

t.test('a change is read when the file was left alone from one look to the next', async t => {
  const { source, put, next, received, lines } = watching(t)
  await next()
  t.equal(source.generation, 1)
  put(fileOf('second'))
  await next()
  t.strictSame(source.file.anonymous, ['first'])
  put(fileOf('third!'))
  await next()
  t.strictSame(source.file.anonymous, ['first'], 'it is being written')
  await next()
  t.strictSame(source.file.anonymous, ['third!'])
  t.match(source.numbers(), { generation: 2, reloads: 1, reloadFailures: 0 })
  t.strictSame(received, [['third!']])
  t.strictSame(lines, ['INFO access: the file /access.json was read again, and is in use'])
  await next()
  await next()
  t.equal(source.generation, 2, 'once')
})

t.test('a change right after the start is not missed', async t => {
  const { source, put, next } = watching(t)
  put(fileOf('second'))
  await next()
  await next()
  t.strictSame(source.file.anonymous, ['second'])
})

t.test('a symbolic link that leads to another file is a change', async t => {
  const { folder, source, path, next } = watching(t)
  writeFileSync(join(folder, 'other.json'), JSON.stringify(fileOf('other')))
  symlinkSync('other.json', join(folder, 'link'))
  renameSync(join(folder, 'link'), path)
  await next()
  await next()
  t.strictSame(source.file.anonymous, ['other'])
})

t.test('a wrong file changes nothing, and is reported once with line and reason', async t => {
  const { source, path, put, next, received, lines } = watching(t)
  writeFileSync(path, '{\n"anonymous": ["gest"]\n}')
  for (let looks = 0; looks < 5; looks++) await next()
  t.strictSame(source.file.anonymous, ['first'])
  t.strictSame(lines, [
    'ERROR access: the new file /access.json is not used, the old one stays in use: line 2: anonymous: names the role "gest", which is not in roles',
  ])
  t.match(source.numbers(), { generation: 1, reloadFailures: 1 })
  rmSync(path)
  for (let looks = 0; looks < 5; looks++) await next()
  t.match(lines.at(-1), /^ERROR .*: ENOENT/)
  t.match(source.numbers(), { generation: 1, reloadFailures: 2 })
  put(fileOf('second'))
  await next()
  await next()
  t.strictSame(received, [['second']])
})

t.test('SIGHUP reads it at once, also when it seems unchanged', async t => {
  const { source, path, put, next, lines } = watching(t)
  put(fileOf('second'))
  t.equal(source.readAgain(), true)
  t.strictSame(source.file.anonymous, ['second'])
  t.equal(source.readAgain(), true)
  t.equal(source.generation, 3)
  await next()
  await next()
  t.equal(source.generation, 3, 'the looks do not read it again')
  writeFileSync(path, '{')
  t.equal(source.readAgain(), false)
  t.equal(source.readAgain(), false)
  t.equal(lines.filter(line => line.startsWith('ERROR')).length, 2, 'each time it is asked')
  t.strictSame(source.file.anonymous, ['second'])
})

t.test('a new file waits for its files of keys', async t => {
  const { folder, source, put, next, lines } = watching(t)
  const issuer = { issuer: 'i', audience: 'a', jwksFile: 'keys.json', algorithms: ['ES256'] }
  put({ ...fileOf('second'), issuers: [issuer] })
  for (let looks = 0; looks < 4; looks++) await next()
  t.strictSame(source.file.anonymous, ['first'])
  t.equal(lines.length, 1)
  t.match(lines[0], /^ERROR .*: issuers\[0\]\.jwksFile: ENOENT/)
  writeFileSync(join(folder, 'keys.json'), JSON.stringify({ keys: [(await signingKey('ES256', 'a')).jwk] }))
  await next()
  t.strictSame(source.file.anonymous, ['second'])
  t.match(source.numbers(), { reloads: 1, reloadFailures: 1 })
})

t.test('it stops, also in the middle of a look', async t => {
  const { source, clock, put, received } = watching(t)
  put(fileOf('second'))
  clock.advance(1_000)
  source.stop()
  await source.looked
  t.equal(clock.waiting, 0)
  clock.advance(10_000)
  t.equal(source.readAgain(), false)
  t.strictSame(received, [])
})
