// The nodes that ought to keep each shard, as the members and the takeovers change.

import t from 'tap'
import { Keepers } from '../../../cluster/replication/keepers.js'

const shards = 8
const names = ['a', 'b', 'c']
const view = names.map(name => ({ name, domain: '', isJoined: name !== 'c' }))
const all = Array.from({ length: shards }, (_, shard) => shard)

function keepersWhere(owners: (string | undefined)[]): Keepers {
  const keepers = new Keepers({ shards, spread: 4, replicas: 2, presentOwner: shard => owners[shard] })
  keepers.setView(view)
  return keepers
}

t.test('each shard has an owner and a standby among the nodes that have joined', async t => {
  const keepers = keepersWhere([])
  for (const shard of all) t.same([...keepers.of(shard)].sort(), ['a', 'b'])
  t.equal(all.filter(shard => keepers.of(shard)[0] === 'a').length, shards / 2)
})

t.test('a takeover makes its node the one that ought to own the shard, within its share', async t => {
  const owners: (string | undefined)[] = all.map(() => 'a')
  const keepers = keepersWhere(owners)
  const [kept] = all.filter(shard => keepers.of(shard)[0] === 'a')
  owners[kept!] = 'b'
  keepers.noteTakeover()
  t.equal(keepers.of(kept!)[0], 'b')
  t.equal(all.filter(shard => keepers.of(shard)[0] === 'b').length, shards / 2)
})

t.test('all nodes keep the register, and one that has joined owns it', async t => {
  const keepers = keepersWhere([])
  t.same([...keepers.of(shards)].sort(), names)
  t.not(keepers.of(shards)[0], 'c')
})
