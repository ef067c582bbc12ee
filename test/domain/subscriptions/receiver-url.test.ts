// URLs of receivers and their parts. Refused ones are in test/cases/subscription-refusals.ts.
import t from 'tap'
import { parseReceiverUrl } from '../../../src/domain/subscriptions/receiver-url.js'
import { wrongUrls } from '../../cases/subscription-refusals.js'
import { Random } from '../../support/random.js'
import { several } from '../../support/random-entity.js'

const parts = (url: string) => {
  const parsed = parseReceiverUrl(url)
  return parsed && [parsed.scheme, parsed.host, parsed.port, parsed.path].join(' ')
}

t.test('a URL has a scheme, a host, a port and a path', async t => {
  t.equal(parts('http://sink.example:8080/in/a?b#c'), 'http sink.example 8080 /in/a?b#c')
  t.equal(parts('http://my_host-1'), 'http my_host-1 80 /')
  t.equal(parts('https://127.0.0.1/'), 'https 127.0.0.1 443 /')
  t.equal(parts('https://[fe80::1]:65535/a'), 'https [fe80::1] 65535 /a')
  t.equal(parts('http://[::ffff:1.2.3.4]//é'), 'http [::ffff:1.2.3.4] 80 //é')
  t.equal(parts('http://[1:2:3:4:5:6:7:8]'), 'http [1:2:3:4:5:6:7:8] 80 /')
  t.equal(parts('http://[1::]'), 'http [1::] 80 /')
  t.equal(parts('http://1.2.3.4.example'), 'http 1.2.3.4.example 80 /')
  t.equal(parts('mqtt://h'), 'mqtt h 1883 /')
  t.equal(parts('mqtt://h:1'), 'mqtt h 1 /')
})

t.test('anything else is no URL', async t => {
  for (const url of wrongUrls) t.equal(parts(JSON.parse(`"${url}"`)), undefined, url)
})

t.test('a URL here is also one for the code that opens it', async t => {
  const random = Random.fromEnvironment()
  t.comment(`SEED=${random.seed}`)
  const pieces: [string, ...string[]] = [
    'http://',
    'https://',
    'a',
    'B-',
    '.',
    '1',
    '25',
    '255',
    '0',
    '0x',
    '[',
    ']',
    ':',
    '::',
    'f',
    '/',
    '%',
    '~',
    '_',
  ]
  let accepted = 0
  for (let left = 50_000; left > 0; left--) {
    const text =
      random.pick(['http://', 'https://', 'http://[', '']) + several(random, 0, 8, () => random.pick(pieces)).join('')
    const parsed = parseReceiverUrl(text)
    if (!parsed) continue
    accepted++
    if (!URL.canParse(text)) return t.fail(text)
    const { hostname, port } = new URL(text)
    if (hostname !== new URL(`http://${parsed.host}`).hostname) return t.fail(text)
    if (port !== '' && Number(port) !== parsed.port) return t.fail(text)
  }
  t.ok(accepted > 1_000, `${accepted} URLs`)
})
