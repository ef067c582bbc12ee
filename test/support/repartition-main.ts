// Divides a data directory anew and reports its progress on standard output: a process that a test kills.
//
// Arguments: the directory, the number of workers. One line for each batch: how many entities are in their new place.

import { repartition } from '../../src/process/repartition.js'
import { directoryAt } from './divided.js'

const [path, workers] = process.argv.slice(2) as [string, string]
await repartition(directoryAt(path), Number(workers), {
  logger: { info: () => {}, warn: () => {} },
  limits: { batchRowsMax: 5, batchBytesMax: 1024 * 1024 },
  onProgress: done => process.stdout.write(`${done}\n`),
})
