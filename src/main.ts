#!/usr/bin/env node
// The program as it is started; what it does stands in program.ts.

import { runProgram } from './process/program.js'

await runProgram()
