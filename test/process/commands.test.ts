// The commands besides the start: the words that call each, and its usage text.

import t, { type Test } from 'tap'
import { commandNames, commands } from '../../src/config/commands.js'
import { runCommand } from '../../src/process/commands.js'

interface Finished {
  readonly status: number | undefined
  readonly out: string
  readonly err: string
}

/** Runs a command in this process. */
async function run(t: Test, line: string): Promise<Finished> {
  const out = t.capture(process.stdout, 'write')
  const err = t.capture(process.stderr, 'write')
  const divide = (): never => {
    throw new Error('nothing is divided here')
  }
  const status = await runCommand(line.split(' '), { env: {}, divide })
  const textOf = (calls: readonly { readonly args: readonly unknown[] }[]): string =>
    calls.map(({ args }) => String(args[0])).join('')
  const answer = { status, out: textOf(out()), err: textOf(err()) }
  out.restore()
  err.restore()
  return answer
}

for (const name of commandNames)
  t.test(`orrery ${name} prints its usage when it is asked for help`, async t => {
    const { out } = await run(t, `${name} -h`)
    t.match(out, `Usage: orrery ${name} ${commands[name].words[0]}`)
    for (const help of ['--help', '-help', 'help', '-port 80 -h'])
      t.same(await run(t, `${name} ${help}`), { status: 0, out, err: '' }, help)
    t.same(await run(t, `help ${name}`), { status: 0, out, err: '' })
  })

t.test('orrery cluster lists its commands', async t => {
  const { out } = await run(t, 'cluster -h')
  for (const verb of ['status', 'drain', 'resume', 'init', 'leave', 'recover']) t.match(out, `cluster ${verb} `)
  t.same(await run(t, 'help cluster'), { status: 0, out, err: '' })
})

const refused: readonly (readonly [line: string, last: RegExp])[] = [
  ['cluster', /^orrery cluster: which command\?$/],
  ['cluster statsu', /^"statsu": not a command of orrery cluster; did you mean status\?$/],
  ['cluster status one two', /^"two": one URL is enough$/],
  ['cluster drain nowhere', /^the node: "nowhere" is not a URL with http or https$/],
  ['cluster drain --token', /^Option '--token <value>' argument missing$/],
  ['cluster init -port 80', /^--from is missing$/],
  ['cluster leave --from a b', /^--from takes one directory$/],
  ['cluster recover --from', /^--from is missing$/],
  ['config chekc', /^"chekc": not a command of orrery config; did you mean check\?$/],
  ['tenants', /^orrery tenants: which command\?$/],
  ['tenants list acme', /^"acme": a list has all tenants$/],
  ['tenants delete', /^one tenant has to be named$/],
  ['tenants delete acme', /^a deletion has to name the tenant twice: add --confirm acme$/],
  ['tenants delete acme --confirm acne', /^a deletion has to name the tenant twice: add --confirm acme$/],
  ['tenants list --from ftp://here', /^--from: "ftp:\/\/here" is not a URL with http or https$/],
  ['help exprot', /^"exprot": not a command; did you mean export\?$/],
  ['import -fiel a', /^-fiel: unknown option; did you mean -file\?$/],
  ['export --Tenant a', /^-Tenant: unknown option; did you mean -tenant\?$/],
]
for (const [line, last] of refused)
  t.test(`orrery ${line} is refused, with the reason at the end`, async t => {
    const { status, out, err } = await run(t, line)
    t.same({ status, out }, { status: 1, out: '' })
    t.match(err.trimEnd().split('\n').at(-1), last)
  })

t.test('words that are no command are left to the start', async t => {
  for (const line of ['-port 80', 'help', 'version', '-h', 'exprot'])
    t.same(await run(t, line), { status: undefined, out: '', err: '' }, line)
})
