// The program on LevelDB, also where RocksDB loads. A directory stays with the store that made it, so this makes a
// LevelDB directory first. `ORRERY_MAIN=dist/test/support/level-main.js npm run conformance` runs the conformance cases
// that way.

import { systemChance } from '../../src/clock.js'
import { readConfig } from '../../src/config/config.js'
import { runProgram } from '../../src/process/program.js'
import { openDataDirectory, recordStore } from '../../src/storage/data-directory.js'

const reading = readConfig(process.argv.slice(2), process.env)
if (reading.kind === 'run') {
  const directory = openDataDirectory(reading.config.store.directory, { shards: 256, spread: 16 }, () =>
    systemChance.uuid(),
  )
  if (directory.store === undefined) recordStore(directory, 'level')
}
await runProgram()
