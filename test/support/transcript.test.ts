// Reading a transcript and comparing it with the output of a terminal.

import t from 'tap'
import { difference, shows, transcript, transcriptOfPage } from './transcript.js'

const page = (...lines: string[]) => ['# Title', '<!-- tour:start -->', ...lines, '<!-- tour:end -->', ''].join('\n')
const block = (...lines: string[]) => page('Words.', '```console', ...lines, '```')
const only = (...lines: string[]) => transcript(block(...lines), 'tour')?.[0] ?? { line: 0, command: '', expected: [] }

t.test('only console blocks between the marks are read', async t => {
  const text = page('```sh', '$ no', '```', '```console', '$ yes', 'out', '```')
  t.strictSame(transcript(text, 'tour'), [{ line: 7, command: 'yes', expected: ['out'] }])
  t.equal(transcript('nothing', 'tour'), undefined)
})

t.test('all console blocks of a page are read, without marks', async t => {
  const text = ['```console', '$ one', '```', 'Words.', '```console', '$ two', 'out', '```', ''].join('\n')
  t.strictSame(
    transcriptOfPage(text).map(({ line, command, expected }) => [line, command, expected]),
    [
      [2, 'one', []],
      [6, 'two', ['out']],
    ],
  )
})

t.test('a command goes on after a backslash and inside a quote', async t => {
  const step = only("$ curl -d '{", '  "a": 1', "}' \\", '  localhost', '204')
  t.equal(step.command, 'curl -d \'{\n  "a": 1\n}\' \\\n  localhost')
  t.strictSame(step.expected, ['204'])
})

t.test('an output fits line by line', async t => {
  t.ok(shows(only('$ x', 'a', 'b', ''), 'a\nb\n'))
  t.notOk(shows(only('$ x', 'a', 'b'), 'a\n'))
  t.notOk(shows(only('$ x', 'a'), 'a\nb\n'))
})

t.test('three dots mean any lines, angle brackets any text', async t => {
  t.ok(shows(only('$ x', 'HTTP/1.1 201 Created', '...'), 'HTTP/1.1 201 Created\r\nDate: now\r\n\r\n'))
  t.ok(shows(only('$ x', '...', 'Date: <date>', '...'), 'a\nDate: Monday\nb'))
  t.notOk(shows(only('$ x', '...', 'Time: <time>', '...'), 'a\nDate: Monday\nb'))
  t.ok(shows(only('$ x', '{"a":[<n>]}'), '{"a":[17]}'))
})

t.test('a difference names the line of the file and marks missing and new lines', async t => {
  const said = difference(only('$ x', 'a', 'b'), 'a\nc')
  t.match(said, /^README\.md:5\n\$ x\n/)
  t.match(said, /\n- b\n/)
  t.match(said, /\n\+ c$/)
  t.match(difference(only('$ x', 'a'), 'b', 'page.md'), /^page\.md:5\n/)
})
