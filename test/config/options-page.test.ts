// docs/operations/options.md has every option as the program knows it: its variable, values, default and meaning.
//
// UPDATE_DOCS=1 writes the tables of the page anew, between the markers. The text around them is written by hand.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { type Option, sections } from '../../src/config/options.js'
import { root } from '../support/project.js'

const page = join(root, 'docs/operations/options.md')
const start = '<!-- options:start -->\n'
const end = '<!-- options:end -->'

const code = (text: string): string => `\`${text}\``
const cells = (texts: readonly string[]): string => `| ${texts.map(text => text.replaceAll('|', '\\|')).join(' | ')} |`

t.test('the page of options is the table of the program', async t => {
  const text = readFileSync(page, 'utf8')
  const [from, to] = [text.indexOf(start) + start.length, text.indexOf(end)]
  t.ok(from >= start.length && to >= from, 'the page has both markers')
  const wanted = tables()
  if (process.env.UPDATE_DOCS === '1') writeFileSync(page, text.slice(0, from) + wanted + text.slice(to))
  else t.equal(text.slice(from, to), wanted, 'UPDATE_DOCS=1 writes it anew')
})

function tables(): string {
  const lines: string[] = []
  for (const [title, options] of Object.entries(sections)) {
    lines.push('', `## ${title}`, '', '| Option | Variable | Value | Default | Meaning |', '|---|---|---|---|---|')
    for (const [name, option] of Object.entries(options)) lines.push(row(name, option))
  }
  return [...lines, ''].join('\n')
}

function row(name: string, { env, kind, byDefault, effect, help }: Option<unknown>): string {
  const value = kind.placeholder === '' ? 'flag' : code(kind.placeholder) + (kind.unit && ` ${kind.unit}`)
  const meaning = {
    now: help,
    granted: `Accepted without effect. ${help}`,
    ignored: `Ignored, with a warning: ${help}.`,
  }
  return cells([code(`-${name}`), code(`CTX_${env}`), value, shown(byDefault), meaning[effect]])
}

function shown(byDefault: unknown): string {
  if (byDefault === undefined || byDefault === '') return ''
  return typeof byDefault === 'boolean' ? (byDefault ? 'on' : 'off') : code(String(byDefault))
}
