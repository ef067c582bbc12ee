// The choice among the members of an etcd: the troubles of each are remembered.

import t from 'tap'
import { MemberHealth } from '../../../cluster/logs/etcd-health.js'

t.test('without trouble the next member is chosen', async t => {
  const health = new MemberHealth(3)
  t.strictSame(
    [0, 1, 2].map(from => health.best(from)),
    [0, 1, 2],
  )
})

t.test('a member in trouble is passed over, also later, until the others have had later trouble', async t => {
  const health = new MemberHealth(3)
  health.noteTrouble(1, 100)
  t.equal(health.best(1), 2)
  health.noteTrouble(2, 200)
  t.equal(health.best(1), 0)
  health.noteTrouble(0, 300)
  t.equal(health.best(0), 1)
})
