// The store over LevelDB keeps the contract.

import t from 'tap'
import { openLevelStore } from '../../src/storage/level-store.js'
import { storeContract } from './store-contract.js'

storeContract(t, {
  open: (directory, durability) => openLevelStore(directory, { durability, memoryBytes: 8 * 1024 * 1024 }),
  onDisk: { module: new URL('../../src/storage/level-store.js', import.meta.url), opener: 'openLevelStore' },
})
