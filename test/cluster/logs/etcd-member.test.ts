// The connection to one member of etcd that cannot be reached: it is replaced after a while, and no request that was
// about to use it is harmed.

import t from 'tap'
import { EtcdMember } from '../../../cluster/logs/etcd-member.js'
import { completeEtcdOptions } from '../../../cluster/logs/etcd-options.js'
import { freePort } from '../../support/broker-process.js'
import { FakeClock } from '../../support/fake-clock.js'

const range = { key: Buffer.from('a') }

t.test('a request that is about to use a stuck connection fails, and does not throw', async t => {
  const clock = new FakeClock()
  const options = completeEtcdOptions({})
  const name = `127.0.0.1:${await freePort()}`
  const address = { members: [name], secure: false, user: undefined, password: undefined }
  const member = new EtcdMember(name, address, clock, options)
  const ask = (): Promise<string> =>
    new Promise(resolve => member.call('range', range, failure => resolve(failure?.reason ?? 'answered')))
  t.not(await ask(), 'answered', 'the connection is not there')
  const early = ask()
  // From this moment on the connection counts as stuck, while the request is between its choice and its use.
  clock.advance(options.connectMs + 1)
  const late = ask()
  t.not(await early, 'answered')
  t.not(await late, 'answered')
  member.close()
})
