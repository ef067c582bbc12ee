// The file of a backup: a reader returns the written rows, and none of a file that differs from the written one.

import t from 'tap'
import {
  type BackupHeader,
  BackupWriter,
  type Block,
  backupVersion,
  blocksOf,
  RowPacker,
} from '../../src/backup/backup-file.js'
import type { Row } from '../../src/ports.js'
import { Random } from '../support/random.js'

const header: Omit<BackupHeader, 'version'> = {
  rowFormat: 4,
  by: 'orrery 1.2.3',
  beganMs: 1_000,
  shards: 2,
  spread: 1,
  owners: [
    { shards: [0], isKeeper: true, stamp: 7, positions: [] },
    { shards: [1], isKeeper: false, stamp: 9, positions: [{ shard: 1, epoch: 2, sequence: 3 }] },
  ],
}

const row = (key: string, value: string): Row => ({ key: Buffer.from(key), value: Buffer.from(value) })
const pages: readonly (readonly [owner: number, rows: readonly Row[]])[] = [
  [0, [row('a', '1'), row('ab', '')]],
  [1, [row('b', 'x'.repeat(300))]],
]

function packed(rows: readonly Row[]) {
  const packer = new RowPacker()
  for (const one of rows) packer.add(one)
  return packer.packed()
}

/** The blocks of a whole file. The first begins with the file's magic words. */
function written(): readonly Buffer[] {
  const writer = new BackupWriter()
  return [
    Buffer.from(writer.begin(header)),
    ...pages.map(([owner, rows]) => Buffer.from(writer.page(owner, packed(rows)))),
    writer.end(2_000),
  ]
}

async function* inPieces(file: Buffer, pieceBytes: number): AsyncGenerator<Buffer, void, void> {
  for (let at = 0; at < file.length; at += pieceBytes) yield file.subarray(at, at + pieceBytes)
}

async function read(file: Buffer, pieceBytes = file.length): Promise<Block[]> {
  const blocks: Block[] = []
  for await (const block of blocksOf(inPieces(file, pieceBytes))) blocks.push(block)
  return blocks
}

t.test('a file is read back as it was written, in pieces of any size', async t => {
  const file = Buffer.concat(written())
  for (const pieceBytes of [1, 7, 64, file.length])
    t.strictSame(await read(file, pieceBytes), [
      { kind: 'header', header: { version: backupVersion, ...header } },
      ...pages.map(([owner, rows]) => ({ kind: 'rows', owner, rows })),
      { kind: 'trailer', trailer: { rows: 3, bytes: 305, endedMs: 2_000 } },
    ])
})

t.test('a file of which any byte is another one is refused', async t => {
  const file = Buffer.concat(written())
  const random = Random.fromEnvironment()
  t.comment(`seed ${random.seed}`)
  let accepted = 0
  for (let at = 0; at < file.length; at++) {
    const altered = Buffer.from(file)
    altered[at]! ^= 1 << random.between(0, 7)
    const refusal = await read(altered).then(
      () => undefined,
      (error: Error) => error,
    )
    if (refusal?.name !== 'BackupError') {
      accepted++
      t.fail(`byte ${at} of ${file.length}: ${refusal}`)
    }
  }
  t.equal(accepted, 0)
})

t.test('a file that ends anywhere before its end is refused', async t => {
  const file = Buffer.concat(written())
  let accepted = 0
  for (let length = 0; length < file.length; length++)
    accepted += await read(file.subarray(0, length)).then(
      () => 1,
      (error: Error) => Number(error.name !== 'BackupError'),
    )
  t.equal(accepted, 0)
})

t.test('a file with something behind its end is refused', async t => {
  await t.rejects(read(Buffer.concat([...written(), Buffer.from('x')])), { message: /something follows its end/ })
})

t.test('blocks that are missing, that come twice or in another order are found', async t => {
  const [begin, first, second, end] = written() as [Buffer, Buffer, Buffer, Buffer]
  for (const order of [
    [begin, second, end],
    [begin, first, first, second, end],
    [begin, second, first, end],
    [begin, end],
  ])
    await t.rejects(read(Buffer.concat(order)), { message: /the checksum of block \d is wrong/ })
})

t.test('a file whose end counts other rows than there are is refused', async t => {
  for (const count of ['rows', 'rowBytes'] as const) {
    const writer = new BackupWriter()
    const begin = Buffer.from(writer.begin(header))
    // As a faulty writer would leave it: its checksums are right.
    writer[count]++
    await t.rejects(read(Buffer.concat([begin, writer.end(2_000)])), { message: /rows are missing/ })
  }
})

t.test('a failed backup contains the reason', async t => {
  const writer = new BackupWriter()
  const file = [
    Buffer.from(writer.begin(header)),
    Buffer.from(writer.page(0, packed(pages[0]![1]))),
    writer.fail('worker 1 has gone'),
  ]
  await t.rejects(read(Buffer.concat(file)), {
    name: 'BackupError',
    message: 'the backup is not complete: worker 1 has gone',
  })
})

t.test('another version is refused with the name of its writer', async t => {
  const writer = new BackupWriter()
  const later = { ...header, version: backupVersion + 1 }
  await t.rejects(read(writer.begin(later)), { message: /has version 2, .* \(orrery 1\.2\.3\)$/ })
})

t.test('a file of another kind is no backup', async t => {
  await t.rejects(read(Buffer.from('{"id":"E1","type":"T"}')), { message: 'this is no backup of Orrery' })
})
