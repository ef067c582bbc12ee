// Addresses, as operators and other nodes may write them.

import t from 'tap'
import { hostPort, isAddress, isBareAddress, isLocal } from '../../../cluster/asks/address.js'

t.test('an address has a host and a port, or is a path', async t => {
  for (const address of ['10.0.0.1:7000', 'node-0.cluster:1', '[::1]:65535', 'a_b:80', 'unix:/run/x']) {
    t.ok(isAddress(address), address)
  }
  t.strictSame(hostPort('[fe80::1]:7000'), { host: 'fe80::1', port: 7000 })
})

t.test('nothing else is', async t => {
  const none = ['', 'a', ':1', 'a:', 'a:x', 'a:0', 'a:65536', '::1:80', '[::1]', 'a b:1', 'dns:///a:1', 'dns:a:1']
  for (const address of [...none, 'unix:x', 'unix:', `unix:/${'x'.repeat(400)}`, `${'x'.repeat(254)}:1`, 'a:1\n']) {
    t.notOk(isAddress(address), address)
  }
})

t.test('a bare socket is one without gRPC only', async t => {
  t.ok(isBareAddress('socket:/run/x') && !isAddress('socket:/run/x'))
  for (const address of [
    'unix:/run/x',
    'socket:x',
    'socket:',
    '/run/x',
    '10.0.0.1:7000',
    `socket:/${'x'.repeat(400)}`,
  ]) {
    t.notOk(isBareAddress(address), address)
  }
})

t.test('only addresses that other machines cannot reach are local', async t => {
  for (const address of ['unix:/x', '127.0.0.1:0', '127.9.9.9:1', 'localhost:1', '[::1]:1']) {
    t.ok(isLocal(address), address)
  }
  for (const address of ['0.0.0.0:1', '[::]:1', '10.0.0.1:1', '127.0.0.1.example:1', 'localhost.example:1', 'none']) {
    t.notOk(isLocal(address), address)
  }
})
