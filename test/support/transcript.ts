// A terminal session written in Markdown: the typed commands, and their output.
//
// In a block marked ```console a line that starts with `$ ` is typed; it continues while it ends with a backslash or
// has an open quote. The lines up to the next `$ ` are the output. There, a line `...` stands for any number of lines,
// and a word in angle brackets, as in `Date: <date>`, for any text inside a line. Spaces at the end of lines and empty
// lines at the end of an output do not count.
//
// Pure: reading and comparing. Not here: running the commands (journeys/tour.test.ts, journeys/interface.test.ts,
// clients/access-setups.test.ts).

export interface Step {
  /** Line of the file, from 1. */
  readonly line: number
  readonly command: string
  readonly expected: readonly string[]
}

/** The steps of all console blocks between the two comment lines; undefined when a comment line is missing. */
export function transcript(markdown: string, name: string): Step[] | undefined {
  const lines = markdown.split(/\r?\n/)
  const start = lines.indexOf(`<!-- ${name}:start -->`)
  const end = lines.indexOf(`<!-- ${name}:end -->`)
  if (start < 0 || end < start) return undefined
  return stepsBetween(lines, start + 1, end)
}

/** The steps of all console blocks of a page. */
export function transcriptOfPage(markdown: string): Step[] {
  const lines = markdown.split(/\r?\n/)
  return stepsBetween(lines, 0, lines.length)
}

/** A file that a page shows: a block whose first line is a comment with nothing but its name. */
export interface ShownFile {
  /** Line of the page, from 1. */
  readonly line: number
  readonly name: string
  readonly text: string
}

/** The files of a page. */
export function filesOfPage(markdown: string): ShownFile[] {
  const blocks = markdown.matchAll(/^```\w+\n((?:#|\/\/) ([\w-]+\.\w+)\n[\s\S]*?)^```$/gm)
  return [...blocks].map(({ index, 1: text = '', 2: name = '' }) => ({
    line: markdown.slice(0, index).split('\n').length,
    name,
    text,
  }))
}

function stepsBetween(lines: readonly string[], start: number, end: number): Step[] {
  const steps: Step[] = []
  let inside = false
  for (let at = start; at < end; at++) {
    const line = lines[at] ?? ''
    if (line.startsWith('```')) inside = !inside && line.trim() === '```console'
    else if (inside && line.startsWith('$ ')) {
      const first = at
      let command = line.slice(2)
      while (isOpen(command) && at + 1 < end) command += `\n${lines[++at]}`
      steps.push({ line: first + 1, command, expected: [] })
    } else if (inside) (steps.at(-1)?.expected as string[] | undefined)?.push(line)
  }
  return steps.map(step => ({ ...step, expected: trimmed(step.expected) }))
}

/** Whether the output is the one that the step expects. */
export function shows(step: Step, output: string): boolean {
  return fits(step.expected.map(pattern), trimmed(output.split('\n')))
}

/** Expected and shown side by side, with marks where no line of the other fits. `file`: the file of the step. */
export function difference(step: Step, output: string, file = 'README.md'): string {
  const shown = trimmed(output.split('\n'))
  const patterns = step.expected.map(pattern)
  const lacking = step.expected.map((line, k) => {
    const one = patterns[k]
    return `${one === undefined || shown.some(text => one.test(text)) ? ' ' : '-'} ${line}`
  })
  const added = shown.map(text => `${patterns.some(one => one?.test(text)) ? ' ' : '+'} ${text}`)
  return [`${file}:${step.line}`, `$ ${step.command}`, 'expected:', ...lacking, 'shown:', ...added].join('\n')
}

/** A line as a pattern; undefined for `...`. */
function pattern(line: string): RegExp | undefined {
  if (line.trim() === '...') return undefined
  const parts = line.split(/<[a-z][\w -]*>/i).map(part => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${parts.join('.*')}$`)
}

function fits(patterns: readonly (RegExp | undefined)[], shown: readonly string[]): boolean {
  const [first, ...rest] = patterns
  if (patterns.length === 0) return shown.length === 0
  if (first) return shown.length > 0 && first.test(shown[0] ?? '') && fits(rest, shown.slice(1))
  return Array.from({ length: shown.length + 1 }, (_, skip) => skip).some(skip => fits(rest, shown.slice(skip)))
}

function trimmed(lines: readonly string[]): string[] {
  const clean = lines.map(line => line.trimEnd())
  while (clean.at(-1) === '') clean.pop()
  return clean
}

/** Whether the shell would wait for more: a backslash at the end, or a quote that is not closed. */
function isOpen(command: string): boolean {
  let quote = ''
  for (let at = 0; at < command.length; at++) {
    const sign = command[at] ?? ''
    if (sign === '\\' && quote !== "'") {
      if (at === command.length - 1) return true
      at++
    } else if (quote) quote = sign === quote ? '' : quote
    else if (sign === "'" || sign === '"') quote = sign
  }
  return quote !== ''
}
