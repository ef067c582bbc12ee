// The program with all requests and replies between broker and shards sent through their bytes. A run of it proves that
// they contain nothing unserialisable. `ORRERY_MAIN=dist/test/support/loopback-main.js npm run conformance` runs the
// conformance cases that way.

import { runProgram } from '../../src/process/program.js'
import { Loopback } from './loopback.js'

await runProgram({ wrapShards: shards => new Loopback(shards) })
