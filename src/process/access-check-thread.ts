// The thread that checks an access file (access-check.ts starts it): reads it, sends what it has found, and ends.

import assert from 'node:assert/strict'
import { parentPort, workerData } from 'node:worker_threads'
import { readUsable } from '../access/access-text.js'
import { refusalText } from '../domain/refusal.js'
import type { AccessCheckInput, AccessCheckResult } from './access-check.js'

const port = parentPort
assert(port, 'this module runs in a worker thread only')
const { file, found } = workerData as AccessCheckInput
const read = readUsable(file)
if (read.ok) found.postMessage(read.value)
const result: AccessCheckResult = { fault: read.ok ? undefined : `-access: ${file}: ${refusalText(read.refusal)}` }
port.postMessage(result)
