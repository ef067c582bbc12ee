// The program, with all that is asked of shards going through bytes (loopback.ts). Same options, same ready line, same exit status.
//
//     ORRERY_MAIN=dist/test/support/loopback-main.js npm run conformance
//
// Not here: what main.ts does besides running (help and version are printed, wrong options are refused, in short).

import { systemChance, systemClock } from '../../src/clock.js'
import { readConfig } from '../../src/config.js'
import { startNode } from '../../src/node.js'
import { openLogger } from '../../src/telemetry/logger.js'
import { Loopback } from './loopback.js'

const reading = readConfig(process.argv.slice(2), process.env)
if (reading.kind !== 'run') {
  const lines = reading.kind === 'print' ? [reading.text] : [...reading.lines, '', reading.usage]
  const out = reading.kind === 'print' ? process.stdout : process.stderr
  out.write(`${lines.join('\n')}\n`)
  process.exit(reading.kind === 'print' ? 0 : 1)
}

const { config, commandLine, fromEnv, warnings } = reading
const logger = openLogger({ level: config.logLevel })
for (const line of [commandLine, ...fromEnv]) logger.info(line)
for (const line of warnings) logger.warn(line)

const end = (status: number): void => {
  const stopped = node ? node.stop() : Promise.resolve()
  stopped.then(
    () => process.exit(status),
    () => process.exit(1),
  )
}
const fail = (error: Error): void => {
  logger.fatal(`Fatal Error (${error.message})`)
  process.stderr.write(`orrery: ${error.message}\n`)
}

const node = await startNode(config, {
  clock: systemClock,
  chance: systemChance,
  logger,
  onFailure: error => {
    fail(error)
    end(1)
  },
  between: shards => new Loopback(shards),
}).catch((error: Error) => {
  fail(error)
  process.exit(1)
})

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => end(0))
logger.info('Startup completed')
process.stdout.write(`Orrery over loopback is ready at port ${node.port} (data in ${config.store.directory})\n`)
