// What the sources of the console must not have: a way in which a value becomes markup or code, and a module of the
// broker. (Which layers it may import is in test/layers.test.ts.)

import t from 'tap'
import { sourcesIn } from '../support/project.js'

const files = sourcesIn('src/console')

/** Each would let the value of an attribute run in the page. */
const forbidden =
  /innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|\beval\b|\bnew Function\b|srcdoc|\.setAttribute\(/i

t.test('values are text: nothing in the console makes markup or code of a text', async t => {
  t.ok(files.length > 20, `${files.length} files`)
  t.strictSame(
    files.filter(([, text]) => forbidden.test(text)).map(([path]) => path),
    [],
  )
})

t.test('the console knows the types of the broker, and takes no code of it', async t => {
  const taken = files.flatMap(([path, text]) =>
    [...text.matchAll(/^(?:import|export) (.*) from '((?:\.\.\/)+(?:domain|http|broker|ports)[^']*)'/gm)]
      .filter(([, words]) => !words?.startsWith('type '))
      .map(([line]) => `${path}: ${line}`),
  )
  t.strictSame(taken, [])
})
