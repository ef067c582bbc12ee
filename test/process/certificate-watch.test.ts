// Files of certificates that change on disk: which pairs are taken, which are refused and reported once, and which
// cause a warning. Files are real, time is not.

import { execFileSync } from 'node:child_process'
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSecureContext } from 'node:tls'
import t, { type Test } from 'tap'
import { CertificateWatch } from '../../src/process/certificate-watch.js'
import { FakeClock } from '../support/fake-clock.js'

const dayMs = 24 * 60 * 60 * 1000
const made = mkdtempSync(join(tmpdir(), 'certificate-watch-'))
t.teardown(() => rmSync(made, { recursive: true, force: true }))

const names = ['first', 'second', 'third'] as const
type Name = (typeof names)[number]

const keyOf = (name: Name): string => join(made, `${name}.key`)
const certOf = (name: Name): string => join(made, `${name}.pem`)

for (const name of names) {
  const files = ['-keyout', keyOf(name), '-out', certOf(name)]
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  execFileSync('openssl', ['req', '-x509', ...curve, '-days', '30', '-subj', `/O=City/CN=${name}`, ...files], {
    stdio: 'ignore',
  })
}

/** A watch over the pair `key` and `cert` of a folder. Its user takes a pair if it makes a server. */
function watching(t: Test, wallMs = Date.now()) {
  const folder = mkdtempSync(join(made, 'watched-'))
  const [key, cert] = [join(folder, 'key'), join(folder, 'cert')]
  const put = (name: Name): void => {
    copyFileSync(keyOf(name), key)
    copyFileSync(certOf(name), cert)
  }
  put('first')
  const clock = new FakeClock(wallMs)
  const lines: string[] = []
  const log = (line: string): number => lines.push(line.replaceAll(folder, ''))
  const watch = new CertificateWatch([{ use: 'https', files: { key, cert }, shown: 'cert' }], {
    clock,
    logger: { info: line => log(`INFO ${line}`), warn: line => log(`WARN ${line}`) },
  })
  t.teardown(() => watch.stop())
  let taken = 0
  watch.on('https', ({ key, cert }) => {
    createSecureContext({ key, cert })
    taken++
  })
  watch.begin()
  return {
    folder,
    key,
    cert,
    put,
    clock,
    watch,
    lines,
    get taken() {
      return taken
    },
    /** Advances the time to the next look, and waits for the look. */
    async next(): Promise<void> {
      clock.advance(1_000)
      await watch.looked
    },
  }
}

t.test('a new pair is taken with the next look, and named in the log', async t => {
  const watched = watching(t)
  await watched.next()
  t.strictSame([watched.taken, watched.lines], [0, []], 'nothing has changed')
  watched.put('second')
  await watched.next()
  t.equal(watched.taken, 1)
  const [line, ...others] = watched.lines
  t.match(
    line,
    /^INFO -key, -cert read again: new connections get subject O=City, CN=second, notAfter 20\d\d-\S+Z, SHA-256 (\w\w:){31}\w\w$/,
  )
  t.strictSame(others, [])
  await watched.next()
  t.equal(watched.taken, 1)
  t.match(watched.watch.numbers(), [{ use: 'https', renewed: 1, refused: 0 }])
})

t.test('a key and its certificate may be written one after the other', async t => {
  const watched = watching(t)
  copyFileSync(keyOf('second'), watched.key)
  await watched.next()
  t.strictSame([watched.taken, watched.lines], [0, []], 'the other one may be on its way')
  copyFileSync(certOf('second'), watched.cert)
  await watched.next()
  t.equal(watched.taken, 1)
  t.match(watched.lines, [/^INFO .*CN=second/])
})

t.test('a pair that does not fit is refused with one warning, until it fits', async t => {
  const watched = watching(t)
  copyFileSync(keyOf('second'), watched.key)
  for (let looks = 0; looks < 5; looks++) await watched.next()
  const refusal =
    /^WARN -key, -cert: the new content is not used, the old goes on for new connections: .*key values mismatch/
  t.match(watched.lines, [refusal])
  t.equal(watched.lines.length, 1)
  await watched.watch.look()
  t.equal(watched.lines.length, 1, 'also on SIGHUP')
  t.match(watched.watch.numbers(), [{ renewed: 0, refused: 1 }])
  watched.put('third')
  await watched.next()
  t.equal(watched.taken, 1)
  t.match(watched.lines[1], /^INFO .*CN=third/)
  copyFileSync(keyOf('second'), watched.key)
  await watched.watch.look()
  t.match(watched.lines[2], refusal, 'SIGHUP does not wait for the next look')
  t.match(watched.watch.numbers(), [{ renewed: 1, refused: 2 }])
})

t.test('a file that cannot be read is refused with its option and the reason', async t => {
  const cases: readonly [says: string, break_: (path: string) => void, reason: RegExp][] = [
    ['missing', path => rmSync(path), /: -key: ENOENT/],
    [
      'a folder',
      path => {
        rmSync(path)
        mkdirSync(path)
      },
      /: -key: \/key is no file$/,
    ],
    [
      'too long',
      path => writeFileSync(path, Buffer.alloc(5 * 1024 * 1024)),
      /: -key: \/key has more than 4194304 bytes$/,
    ],
    ['empty', path => writeFileSync(path, ''), /: /],
  ]
  for (const [says, break_, reason] of cases) {
    const watched = watching(t)
    break_(watched.key)
    await watched.watch.look()
    t.match(watched.lines, [reason], says)
    rmSync(watched.key, { recursive: true, force: true })
    watched.put('first')
    await watched.next()
    t.strictSame([watched.taken, watched.lines.length], [0, 1], 'what is there again is in use already')
    watched.put('second')
    await watched.next()
    t.equal(watched.taken, 1, says)
  }
})

t.test('no line has anything of a key', async t => {
  const watched = watching(t)
  writeFileSync(watched.key, '-----BEGIN PRIVATE KEY-----\nc2VjcmV0c2VjcmV0\n-----END PRIVATE KEY-----\n')
  await watched.watch.look()
  t.equal(watched.lines.length, 1)
  t.notMatch(watched.lines[0], /c2Vjcm|secret|PRIVATE/)
})

t.test('a symbolic link that leads elsewhere is a change, as Kubernetes and certbot make it', async t => {
  const watched = watching(t)
  for (const name of ['first', 'second'] as const) {
    mkdirSync(join(watched.folder, name))
    copyFileSync(keyOf(name), join(watched.folder, name, 'key'))
    copyFileSync(certOf(name), join(watched.folder, name, 'cert'))
  }
  symlinkSync('first', join(watched.folder, 'data'))
  for (const file of ['key', 'cert']) {
    rmSync(join(watched.folder, file))
    symlinkSync(join('data', file), join(watched.folder, file))
  }
  await watched.next()
  t.equal(watched.taken, 0, 'the content is the same')
  symlinkSync('second', join(watched.folder, 'data.new'))
  renameSync(join(watched.folder, 'data.new'), join(watched.folder, 'data'))
  await watched.next()
  t.equal(watched.taken, 1)
})

t.test('a change without a user is taken as soon as there is one', async t => {
  const watched = watching(t)
  const folder = watched.folder
  const clock = new FakeClock()
  const files = { key: watched.key, cert: watched.cert }
  const logger = { info: () => {}, warn: () => {} }
  const late = new CertificateWatch([{ use: 'https', files, shown: 'cert' }], { clock, logger })
  late.begin()
  watched.put('second')
  clock.advance(1_000)
  await late.looked
  let taken = 0
  late.on('https', () => taken++)
  clock.advance(1_000)
  await late.looked
  t.equal(taken, 1, folder)
  late.stop()
})

t.test('a touch is no change, and a stopped watch takes nothing', async t => {
  const watched = watching(t)
  utimesSync(watched.cert, 1, 1)
  await watched.next()
  t.strictSame([watched.taken, watched.lines], [0, []])
  watched.put('second')
  watched.watch.stop()
  await watched.watch.look()
  await watched.next()
  t.strictSame([watched.taken, watched.lines], [0, []])
})

t.test('14 days before its end a certificate is warned of, once a day, until there is another one', async t => {
  // The certificate was made for 30 days.
  const watched = watching(t, Date.now() + 15.5 * dayMs)
  await watched.next()
  t.strictSame(watched.lines, [])
  watched.clock.advance(dayMs)
  await watched.watch.looked
  await watched.next()
  t.match(watched.lines, [/^WARN -cert: the certificate in \/cert ends on 20\d\d-\S+Z, in 13 days$/])
  for (let looks = 0; looks < 3; looks++) await watched.next()
  t.equal(watched.lines.length, 1)
  watched.clock.advance(dayMs)
  await watched.watch.looked
  await watched.next()
  t.match(watched.lines[1], /, in 12 days$/)
  watched.clock.advance(13 * dayMs)
  await watched.watch.looked
  await watched.next()
  t.match(watched.lines.at(-1), /^WARN -cert: the certificate in \/cert has ended on 20\d\d/)
  const { length } = watched.lines
  watched.put('second')
  await watched.next()
  t.match(watched.lines.slice(length), [/^INFO .*CN=second/, /^WARN .* has ended on/], 'the new one has ended as well')
})

t.test('one that has ended at the start has been warned of by the checks before it', async t => {
  const watched = watching(t, Date.now() + 40 * dayMs)
  await watched.next()
  t.strictSame(watched.lines, [])
})
