// The names of certificates, compared with what OpenSSL prints.

import { execFileSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { shownCertificate } from '../../src/access/certificate.js'
import { tempDir } from '../support/broker-process.js'

const folder = tempDir(t)

/** A certificate with this subject, as a file. */
function made(subject: string, otherNames = ''): string {
  const path = join(folder, 'cert.pem')
  const words = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-utf8', '-multivalue-rdn']
  const names = otherNames === '' ? [] : ['-addext', `subjectAltName=${otherNames}`]
  const files = ['-keyout', join(folder, 'key.pem'), '-out', path]
  execFileSync('openssl', ['req', '-x509', ...words, '-subj', subject, ...names, ...files], { stdio: 'ignore' })
  return path
}

const printed = (path: string): string =>
  execFileSync('openssl', ['x509', '-in', path, '-noout', '-subject', '-nameopt', 'RFC2253'], { encoding: 'utf8' })
    .replace(/^subject=/, '')
    .replace(/\n$/, '')

const namesOf = (path: string) => shownCertificate(new X509Certificate(readFileSync(path)))

for (const subject of [
  '/O=City/CN=gateway-9',
  '/CN=gateway-9',
  '/C=ES/ST=North/L=Old Town/O=City of X/OU=Meters/CN=gateway-9',
  '/O=City, Inc./CN=a"b<c>d;e',
  '/O=City\\+Land/CN=a\\\\b',
  '/O=City/OU=Meters+CN=gateway-9',
  '/O=A\\+B+OU=C/CN=x \\+ y',
  '/O= City /CN=#7',
  '/O=Málaga/CN=水道',
  '/DC=example/DC=city/UID=7/CN=gateway-9/emailAddress=ops@city.example',
])
  t.test(`the subject ${subject} is as OpenSSL prints it`, async t => {
    const path = made(subject)
    t.equal(namesOf(path).subject, printed(path))
    t.strictSame(namesOf(path).otherNames, [])
  })

t.test('other names are those of kinds that the file may have, in their order', async t => {
  const path = made('/CN=a', 'DNS:gateway,URI:spiffe://city/gateway,IP:127.0.0.1,email:a@b.example,DNS:*.city.example')
  t.match(namesOf(path), {
    subject: 'CN=a',
    otherNames: ['DNS:gateway', 'URI:spiffe://city/gateway', 'DNS:*.city.example'],
  })
})

t.test('a name in quotes does not become several names', async t => {
  const subjectAltName = 'URI:"https://a/, DNS:admin", DNS:b, DNS:"c\\"d"'
  const { otherNames } = shownCertificate({ subject: '', subjectAltName, validTo: '' })
  t.strictSame(otherNames, ['URI:https://a/, DNS:admin', 'DNS:b', 'DNS:c"d'])
})

t.test('it ends when the certificate does', async t => {
  const { endsMs } = namesOf(made('/CN=a'))
  const daysLeft = (endsMs - Date.now()) / 86_400_000
  t.ok(daysLeft > 29.9 && daysLeft <= 30, `${daysLeft} days, as openssl makes it`)
})
