// The process: reads the configuration, starts a node, says when it is ready, and ends it on a signal or a failure.
//
// Exit status: 0 after a signal, once everything acknowledged is on disk; 1 when the options are wrong, when the node could not start, or
// when it had to end because the disk failed.

import { systemChance, systemClock } from './clock.js'
import { type Config, readConfig, version } from './config.js'
import { type RunningNode, type Surroundings, startNode } from './node.js'
import { openLogger } from './telemetry/logger.js'

/** What a test puts between the parts of the node; nothing in earnest. */
export type Seams = Pick<Surroundings, 'between' | 'betweenRecords'>

/** Runs the program of this process, from its command line to its exit. */
export async function runProgram(seams: Seams = {}): Promise<void> {
  const reading = readConfig(process.argv.slice(2), process.env)
  switch (reading.kind) {
    case 'print':
      process.stdout.write(`${reading.text}\n`)
      break
    case 'refuse':
      process.stderr.write(`${[...reading.lines, '', reading.usage].join('\n')}\n`)
      process.exitCode = 1
      break
    case 'run':
      await run(reading, seams)
  }
}

type Run = Extract<ReturnType<typeof readConfig>, { kind: 'run' }>

async function run({ config, warnings, commandLine, fromEnv }: Run, seams: Seams): Promise<void> {
  const logger = openLogger({ level: config.logLevel })
  for (const line of [commandLine, ...fromEnv]) logger.info(line)
  for (const line of warnings) logger.warn(line)

  let node: RunningNode | undefined
  let ending = false
  const end = async (status: number): Promise<void> => {
    if (ending) return
    ending = true
    try {
      await node?.stop()
    } catch (error) {
      logger.error(`Runtime Error (stopping: ${(error as Error).message})`)
      status = 1
    }
    process.exit(status)
  }
  const fail = (error: Error): void => {
    logger.fatal(`Fatal Error (${error.message})`)
    process.stderr.write(`orrery: ${error.message}\n`)
  }

  try {
    node = await startNode(config, {
      ...seams,
      clock: systemClock,
      chance: systemChance,
      logger,
      onFailure: error => {
        fail(new Error(`the store has failed, nothing more is taken: ${error.message}`))
        void end(1)
      },
    })
  } catch (error) {
    fail(error as Error)
    process.exit(1)
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      logger.info(`orrery exiting due to receiving a signal (${signal})`)
      void end(0)
    })
  }
  logger.info('Startup completed')
  process.stdout.write(`${readyLine(config, node)}\n`)
}

function readyLine(config: Config, node: RunningNode): string {
  const scheme = config.http.tls ? 'https' : 'http'
  const { directory, durability } = config.store
  const host = config.http.host ?? 'localhost'
  const address = host.includes(':') ? `[${host}]` : host
  return `Orrery ${version} is ready at ${scheme}://${address}:${node.port} (data in ${directory}, ${node.store}, ${durability})`
}
