// What a process does soon after its start, so that code has run before a large entity comes.
import t from 'tap'
import { steps } from '../src/warm-up.js'

t.test('all of it goes through, in many steps', async t => {
  t.ok([...steps()].length > 50)
})
