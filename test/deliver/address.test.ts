// URLs of receivers in parts (docs/interface/subscriptions.md#urls), and the names of receivers.

import t from 'tap'
import { httpAddress, mqttAddress } from '../../src/deliver/address.js'
import { post, publication } from './messages.js'

const good: readonly (readonly [url: string, receiver: string, path: string])[] = [
  ['http://host', 'http://host:80', '/'],
  ['https://host', 'https://host:443', '/'],
  ['http://host/', 'http://host:80', '/'],
  ['HTTP://Host.Example:8080/A/../b', 'http://host.example:8080', '/A/../b'],
  ['http://10.0.0.1:65535/x?y=z', 'http://10.0.0.1:65535', '/x?y=z'],
  ['http://[::1]:9/x', 'http://[::1]:9', '/x'],
  ['http://[2001:DB8::1]', 'http://[2001:db8::1]:80', '/'],
  ['http://host?q=1', 'http://host:80', '/?q=1'],
  ['http://host/x#fragment', 'http://host:80', '/x'],
  ['http://my_service.local:1/', 'http://my_service.local:1', '/'],
  ['http://bücher.example/ü', 'http://xn--bcher-kva.example:80', '/%C3%BC'],
]

const bad = [
  '',
  'host',
  'http:/host',
  'http://',
  'http:///path',
  'http://:80',
  'ftp://host',
  'mqtt://host',
  'http://host:',
  'http://host:/p',
  'http://host:0',
  'http://host:65536',
  'http://host:80a',
  'http://a:b:80',
  'http://user:secret@host',
  'http://user@host',
  'http://[::1',
  'http://[::g]',
  'http://[1.2.3.4]',
  'http://ho st',
  'http://ho\nst/',
  'http://host,other/',
  `http://${'a'.repeat(254)}`,
  '//host/',
]

t.test('a URL is taken apart', async t => {
  for (const [url, receiver, path] of good) {
    const address = httpAddress(post(url))
    t.same([address?.receiver, address?.path], [receiver, path], url)
  }
})

t.test('a malformed URL has no address', async t => {
  for (const url of bad) t.equal(httpAddress(post(url)), undefined, JSON.stringify(url))
})

t.test('an MQTT broker has its own default ports, and no HTTP URL names one', async t => {
  t.match(mqttAddress(publication('mqtt://host')), { receiver: 'mqtt://host:1883', port: 1883 })
  t.match(mqttAddress(publication('mqtts://host/')), { receiver: 'mqtts://host:8883', port: 8883 })
  t.equal(mqttAddress(publication('http://host')), undefined)
})

t.test('brokers with other credentials are other receivers, and no name contains a password', async t => {
  const nameOf = (user: string, password: string) =>
    mqttAddress(publication('mqtt://host', { login: { user, passwd: password } }))!.receiver
  const names = [
    nameOf('a', 'bc'),
    nameOf('ab', 'c'),
    nameOf('a', 'bd'),
    mqttAddress(publication('mqtt://host'))!.receiver,
  ]
  t.equal(new Set(names).size, 4)
  t.equal(nameOf('a', 'bc'), names[0])
  t.notMatch(nameOf('a', 'verysecret'), /verysecret/)
})
