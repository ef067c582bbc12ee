// No decision depends on wording: code under src/ decides by the code and the facts of a refusal. The rule is in
// support/wording-rules.ts.

import t from 'tap'
import { sourcesIn } from './support/project.js'
import { wordingViolations } from './support/wording-rules.js'

const invented = (...lines: string[]) => wordingViolations(new Map([['src/a.ts', lines.join('\n')]]))

t.test('nothing in src compares a text for humans, or looks into it', async t => {
  const files = new Map(sourcesIn('src'))
  t.ok(files.size > 1, `${files.size} files read`)
  t.strictSame(wordingViolations(files), [])
})

t.test('a decision by wording is named with file and line', async t => {
  t.strictSame(invented('// head', 'if (refusal.description === refusals.entityNotFound.description) forward()'), [
    'src/a.ts:2 compares a text for humans: refusal.description === refusals.entityNotFound.description. ' +
      'Decide by the code and the facts of the refusal.',
  ])
})

t.test('each way to look into a text is found', async t => {
  for (const line of [
    "const { description } = refusal; if (description !== 'Already Exists') stop()",
    "const { description: why } = refusal; if ('Already Exists' === why) stop()",
    "const text = refusalText(refusal); if (text.startsWith('do not exist')) stop()",
    'refusalText(refusal).slice(phrase.length)',
    '/^do not exist/.exec((refusal as Refusal).description)',
    'known.has(refusal.description)',
    'switch (description) {}',
    'statuses[refusal.description]',
    'refusal.description[0]',
  ])
    t.match(invented(line), [/Decide by the code/], line)
})

t.test('a text may be passed on, printed, and checked for emptiness', async t => {
  t.strictSame(
    invented(
      "const shown = description === '' || description === undefined ? undefined : description",
      'reply.send(escaped(refusalText(refusal)))',
      "if (typeof json.description === 'string') fault = json.description",
      "if (refusal.code === 'entityNotFound') forward()",
    ),
    [],
  )
})
