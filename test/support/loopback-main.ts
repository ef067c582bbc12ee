// The program with everything that passes between broker, shards and log sent through its bytes: whoever drives it proves that nothing
// unserialisable slips in. `ORRERY_MAIN=dist/test/support/loopback-main.js npm run conformance` runs the conformance cases that way.

import { runProgram } from '../../src/process/program.js'
import { decodeRecord, encodeRecord } from '../../src/shard/turn/record.js'
import { Loopback } from './loopback.js'

await runProgram({
  between: shards => new Loopback(shards),
  betweenRecords: record => decodeRecord(encodeRecord(record)),
})
