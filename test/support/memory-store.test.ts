// The memory store keeps the contract, and breaks down when a test asks it to.

import t from 'tap'
import { commit, storeContract } from '../storage/store-contract.js'
import { MemoryStore } from './memory-store.js'

storeContract(t, { open: async () => new MemoryStore() })

t.test('after a breakdown every commit fails with the same error, and reads go on', async t => {
  const store = new MemoryStore()
  await commit(store, batch => batch.put(Buffer.from('a'), Buffer.from('1')))
  const cause = new Error('no space left on device')
  store.breakDown(cause)
  const failures: Error[] = []
  for (let i = 0; i < 2; i++) {
    await commit(store, batch => batch.put(Buffer.from('b'), Buffer.from('2'))).catch(error => failures.push(error))
  }
  t.equal(failures.length, 2)
  t.equal(failures[0], failures[1])
  t.equal(failures[0]?.cause, cause)
  t.equal(store.get(Buffer.from('a'))?.toString(), '1')
  t.equal(store.get(Buffer.from('b')), undefined)
  await store.close()
})
