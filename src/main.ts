#!/usr/bin/env node
// The entry point of the executable. The program itself is in program.ts.
//
// The import of program.ts is dynamic, so that a Node.js version that is too old gets a clear message and not a link
// error.

import { isTooOld, oldestNode } from './process/node-version.js'

if (isTooOld(process.versions.node)) {
  const { major, minor } = oldestNode
  process.stderr.write(`orrery: needs Node.js ${major}.${minor} or newer; this is ${process.versions.node}\n`)
  process.exitCode = 1
} else {
  const { runProgram } = await import('./process/program.js')
  await runProgram()
}
