// The refused versions of Node.js.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { isTooOld, oldestNode } from '../../src/process/node-version.js'
import { root } from '../support/project.js'

t.test('a Node.js older than 20.19 is refused, and every later one is not', async t => {
  for (const version of ['18.20.8', '20.0.0', '20.18.3']) t.ok(isTooOld(version), version)
  for (const version of ['20.19.0', '20.20.1', '22.0.0', '24.11.1']) t.notOk(isTooOld(version), version)
})

t.test('package.json names the same version', async t => {
  const { engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  t.equal(engines.node, `>=${oldestNode.major}.${oldestNode.minor}`)
})
