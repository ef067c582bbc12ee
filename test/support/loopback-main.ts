// The program with everything that passes between broker and shards sent through its bytes: whoever drives it proves
// that nothing unserialisable slips in. `ORRERY_MAIN=dist/test/support/loopback-main.js npm run conformance` runs the
// conformance cases that way.

import { runProgram } from '../../src/process/program.js'
import { Loopback } from './loopback.js'

await runProgram({ wrapShards: shards => new Loopback(shards) })
