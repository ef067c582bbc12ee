// The table of commands: the uses of the program besides serving, each with its usage and a line that describes it.
//
// `orrery -U`, `orrery help`, `orrery <command> -h` and the usage in a refusal are made from it. A name is the text
// after `orrery` on the command line. process/commands.ts maps each name to its runner, and the compiler checks that
// none is missing.

export interface CommandUsage {
  /** The words after the name, one element for each line of the usage. */
  readonly words: readonly string[]
  /** The effect of the command, in one line. */
  readonly about: string
  /** Further lines of its usage. */
  readonly more: readonly string[]
}

export const commands = {
  'config check': {
    words: ['[option ...]'],
    about: 'shows the effect of these options, and checks whether a start would accept them',
    more: [
      'It opens the files that the options name and looks at the data directory and the ports. Exit status 0: a start would accept all.',
    ],
  },
  export: {
    words: [
      '[-dataDir <path> | -from <url>] [-to <file, or - for standard output>]',
      '[-tenant <name>]... [-path <path>]... [-token <token>] [-skipBad] [-state <file>]',
    ],
    about: 'writes the content of a data directory or of a running broker',
    more: [
      'Writes all entities, registrations and subscriptions of a data directory that no broker uses, or of a running broker.',
      '-tenant and -path select; without -tenant a directory gives all of them, a broker the default one.',
    ],
  },
  import: {
    words: [
      '[-file <file, or - for standard input> | -from <url>] [-dataDir <path> | -to <url>]',
      '[-tenant <name>]... [-path <path>]... [-token <token>] [-overwrite] [-skipBad]',
      '[-workers <n>] [-state <file>]',
    ],
    about: 'brings it in again, or the content of a running broker',
    more: [
      'Brings an export, or the content of a running broker, into a data directory that no broker uses, or to a running broker.',
      '-tenant and -path select; without -tenant a file gives all of them, a broker the default one.',
      'Exit status 0: everything selected is there. 1: a part failed, differs from the stored one, or was not found.',
    ],
  },
  backup: {
    words: ['--from <url> --to <file> --backupKeyFile <file> [--notifCaFile <file>] [--insecureNotif]'],
    about: 'writes everything that a running broker has into a file',
    more: [
      'Writes everything of all tenants, at one moment, while the broker runs. The key is in the file that the broker was started with -backupKeyFile.',
      'The file holds secrets. "orrery restore" makes a data directory of it.',
    ],
  },
  restore: {
    words: ['--from <file> -dataDir <path>'],
    about: 'makes a data directory of a backup',
    more: [
      'Makes the path, which must be empty or missing, the data directory of a single node with everything that the backup has.',
      'Start it with any number of -workers, or make it the first content of a cluster with "orrery cluster init".',
    ],
  },
  watch: {
    words: [
      '[--url <url>] [--format json|keyValues|table] [--snapshot] [--leave] [--from <cursor>]',
      '[--id <ids>] [--idPattern <pattern>] [--type <types>] [--typePattern <pattern>] [-q <query>] [--mq <query>]',
      '[--georel <relation> --geometry <shape> --coords <points>] [--attrs <names>] [--metadata <names>]',
      '[--conditionAttrs <names>] [--alterationTypes <kinds>] [--minInterval <ms>] [--onlyChangedAttrs] [--sysAttrs]',
      '[--gather <ms>] [--tenant <name>] [--path <path>] [--token <token>] [--header <name: value>]...',
      '[--notifCaFile <file>] [--insecureNotif]',
    ],
    about: 'prints the changes of a running broker as they happen',
    more: [
      'Prints an event in each line, or with --format table the latest state of each entity that matches. After a cut it goes on where it stopped.',
      'Exit status 0: it was stopped by a signal, or its output is closed. 1: the broker could not be reached, or has refused the watch.',
    ],
  },
  demo: {
    words: ['[-port <n>] [-localIp <address>] [-dataDir <path>] [-seed <n>]'],
    about: 'starts a broker with a small living city, to look at in the console',
    more: [
      'Starts a broker on a temporary directory, with buses, meters, rooms, subscriptions and a provider, and prints where to look at it.',
      'It listens on 127.0.0.1, unless -localIp names another address. -dataDir has to be missing or empty, and stays. Ctrl-C ends the demo.',
    ],
  },
  'tenants list': {
    words: ['[--from <url>] [--token <token>] [--json] [--notifCaFile <file>] [--insecureNotif]'],
    about: 'shows the tenants of a running broker, and how large they are',
    more: [],
  },
  'tenants delete': {
    words: ['<name> --confirm <name> [--from <url>] [--token <token>] [--notifCaFile <file>] [--insecureNotif]'],
    about: 'has a running broker delete everything of a tenant',
    more: [
      'Has a running broker delete all entities, subscriptions and registrations of a tenant. This cannot be taken back.',
      'It goes on when the command has ended: "orrery tenants list" shows the tenant until it has gone.',
    ],
  },
  'access key': {
    words: ['--name <name> --role <role> [--role <role>]... [--expires <date>]'],
    about: 'makes an API key, and its line for the access file',
    more: [
      'Prints the key, which is stored nowhere, and the line for the keys of the access file: it has only the hash of the key.',
    ],
  },
  'access explain': {
    words: [
      '--file <access file> --as <name of a key or certificate, or anonymous> <method> <path>',
      '--file <access file> --token <token> <method> <path>',
      '[--tenant <name>] [--path <service path>] [--type <type>] [--id <id>] [--notifCaFile <file>] [--insecureNotif]',
    ],
    about: 'shows what an access file says to a request, and which rules',
    more: [
      'Prints the decision, and what each rule of the principal says. The keys for a token come from its issuer.',
      'Exit status 0: the request is allowed, or a part of it. 1: it is denied, or something is wrong.',
    ],
  },
  'cluster status': {
    words: ['[url] [--token <token>] [--notifCaFile <file>] [--insecureNotif]'],
    about: 'shows the nodes, the owners of shards, and how far copies are behind',
    more: [],
  },
  'cluster drain': {
    words: ['[url] [--token <token>] [--notifCaFile <file>] [--insecureNotif]'],
    about: 'has a node give its shards away, and take none',
    more: [],
  },
  'cluster resume': {
    words: ['[url] [--token <token>] [--notifCaFile <file>] [--insecureNotif]'],
    about: 'has a node take shards again',
    more: [],
  },
  'cluster init': {
    words: ['--from <path> <the options that the first node will be started with>'],
    about: 'begins a cluster with the data directory of a single node',
    more: [
      'Makes the data directory of a single node, which must not be in use, the first content of a cluster: in the -dataDir of its first node.',
    ],
  },
  'cluster leave': {
    words: ['--from <path> -dataDir <new path> <the other options of the node, or -withoutLog>'],
    about: 'makes the data directory of a node of a cluster that of a single node',
    more: [
      'Copies the content of a node of a cluster into the new data directory of a single node. All nodes must have ended.',
      '-withoutLog: the log engine is gone. Changes that other nodes have acknowledged and that are not in the directory are then missing.',
    ],
  },
  'cluster recover': {
    words: ['--from <path> ... [-withoutShards] <the options of any node>'],
    about: 'begins the lost log of a cluster again with the data directories of its nodes',
    more: [
      'Continues a cluster whose log is gone, with the furthest copy of each shard, in a log engine that keeps nothing. All nodes must have ended.',
      'Give the directories of all nodes that are left, then start the nodes on them as before. After an interruption give the same command again.',
      '-withoutShards: shards of which no directory has a complete copy begin empty. Without it, the command is refused.',
    ],
  },
} as const satisfies Readonly<Record<string, CommandUsage>>

export type CommandName = keyof typeof commands

export const commandNames = Object.keys(commands) as CommandName[]

/** The usage text of a command. */
export function usageOf(name: CommandName): string {
  const { words, about, more } = commands[name]
  const head = `Usage: orrery ${name} `
  const lines = words.map((line, index) => (index === 0 ? head : ' '.repeat(head.length)) + line)
  return [...lines, ...(more.length > 0 ? more : [sentenceOf(about)])].join('\n')
}

/** The usage text of all commands whose names begin with a word, such as `cluster`. */
export function usageOfGroup(first: string): string {
  const names = commandNames.filter(name => name.startsWith(`${first} `))
  return [`Usage: orrery ${first} <command> ...`, '', ...linesOf(names), '', moreHelp].join('\n')
}

/** All commands, a line each. */
export const commandLines = (): readonly string[] => linesOf(commandNames)

export const moreHelp = 'orrery <command> -h explains a command.'

function linesOf(names: readonly CommandName[]): string[] {
  const width = Math.max(...names.map(name => name.length))
  return names.map(name => `  ${name.padEnd(width)}   ${commands[name].about}`)
}

const sentenceOf = (about: string): string => `${about[0]!.toUpperCase()}${about.slice(1)}.`
