// Maps each command of the table in config/commands.ts to the function that runs it, and runs the called one.
//
// With a word that asks for help it prints the usage instead. The modules that a command needs are loaded when it runs.

import { type CommandName, commandNames, usageOf, usageOfGroup } from '../config/commands.js'
import { didYouMean } from '../config/nearest.js'
import type { Divide } from '../move/command.js'

/** Values that a command may need from the program that runs it. */
export interface CommandGiven {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly divide: Divide
}

/** Runs a command with the words behind its name; returns the exit status. */
type Run = (words: readonly string[], given: CommandGiven) => Promise<number>

const runners: Readonly<Record<CommandName, Run>> = {
  'config check': async (words, { env }) => (await import('./config-check.js')).runConfigCheck(words, env),
  export: async (words, { env, divide }) => (await import('../move/command.js')).runMove('export', words, env, divide),
  import: async (words, { env, divide }) => (await import('../move/command.js')).runMove('import', words, env, divide),
  backup: async (words, { env }) => (await import('../move/backup-command.js')).runBackup(words, env),
  restore: async (words, { env }) => (await import('./restore.js')).runRestore(words, env),
  watch: async (words, { env }) => (await import('../watch/command.js')).runWatch(words, env),
  demo: async words =>
    (await import('../demo/command.js')).runDemo(words, async (options, onFailure) =>
      (await import('./demo-broker.js')).startDemoBroker(options, onFailure),
    ),
  'tenants list': async (words, { env }) => (await import('../move/tenants-command.js')).runTenants('list', words, env),
  'tenants delete': async (words, { env }) =>
    (await import('../move/tenants-command.js')).runTenants('delete', words, env),
  'access key': async (words, { env }) => (await import('../access/command.js')).runAccess('key', words, env),
  'access explain': async (words, { env }) => (await import('../access/command.js')).runAccess('explain', words, env),
  'cluster status': async (words, { env }) => (await import('./cluster-command.js')).runCluster('status', words, env),
  'cluster drain': async (words, { env }) => (await import('./cluster-command.js')).runCluster('drain', words, env),
  'cluster resume': async (words, { env }) => (await import('./cluster-command.js')).runCluster('resume', words, env),
  'cluster init': async (words, { env }) =>
    (await import('./cluster-directories.js')).runOnDirectory('init', words, env),
  'cluster leave': async (words, { env }) =>
    (await import('./cluster-directories.js')).runOnDirectory('leave', words, env),
  'cluster recover': async (words, { env }) =>
    (await import('./cluster-directories.js')).runOnDirectory('recover', words, env),
}

/** Runs the command that the words begin with; returns the exit status. undefined: they begin with no command. */
export async function runCommand(words: readonly string[], given: CommandGiven): Promise<number | undefined> {
  const [first = '', ...behind] = words
  if (first === 'help' && behind.length > 0) return help(behind)
  const name = commandIn(words)
  if (name === undefined) return isGroup(first) ? refuseInGroup(first, behind) : undefined
  const rest = words.slice(wordsOf(name).length)
  if (rest[0] === 'help' || rest.some(isHelp)) return help(words)
  return runners[name](rest, given)
}

/** Prints the usage of the command that the words begin with. */
function help(words: readonly string[]): number {
  const name = commandIn(words)
  const [first = ''] = words
  if (name === undefined && !isGroup(first)) return refuse(`${JSON.stringify(first)}: not a command`, first, firstWords)
  process.stdout.write(`${name === undefined ? usageOfGroup(first) : usageOf(name)}\n`)
  return 0
}

/** The first word belongs to several commands, and the second one to none of them. */
function refuseInGroup(first: string, behind: readonly string[]): number {
  const [second] = behind
  if (second === 'help' || behind.some(isHelp)) return help([first])
  const known = commandNames.filter(name => name.startsWith(`${first} `)).map(name => name.slice(first.length + 1))
  process.stderr.write(`${usageOfGroup(first)}\n\n`)
  if (second === undefined) return refuse(`orrery ${first}: which command?`, '', known)
  return refuse(`${JSON.stringify(second)}: not a command of orrery ${first}`, second, known)
}

function refuse(fault: string, word: string, known: readonly string[]): number {
  process.stderr.write(`${fault}${didYouMean(word, known)}\n`)
  return 1
}

const wordsOf = (name: CommandName): readonly string[] => name.split(' ')

const commandIn = (words: readonly string[]): CommandName | undefined =>
  commandNames.find(name => wordsOf(name).every((word, index) => words[index] === word))

const firstWords = [...new Set(commandNames.map(name => wordsOf(name)[0] as string))]

/** Whether it is the first of two words that call a command. */
const isGroup = (word: string): boolean => commandNames.some(name => name.startsWith(`${word} `))

const isHelp = (word: string | undefined): boolean => word !== undefined && /^--?h(elp)?$/.test(word)
