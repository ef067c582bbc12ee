// Replies in flight: short ones first, long ones in parts and whole again, and never more than there is room for.

import t from 'tap'
import { Answers, Assembly } from '../../../cluster/asks/answers.js'
import { answerKinds, type ReadAnswer } from '../../../cluster/asks/frames.js'
import { answersPerFrameMax, frameBytesMax, replyBytesMax } from '../../../cluster/options.js'

const bytesMax = 3 * replyBytesMax

const part = (number: number, offset: number, total: number, reply: Buffer): ReadAnswer => ({
  number,
  kind: answerKinds.reply,
  reply,
  offset,
  total,
})

t.test('short replies go before a long one, which goes in parts', async t => {
  const answers = new Answers(bytesMax)
  const long = Buffer.alloc(2 * frameBytesMax + 5, 7)
  answers.reply(1, long)
  answers.reply(2, Buffer.from('short'))
  t.strictSame(
    answers.take().map(({ number, offset, total, reply }) => [number, offset, total, reply.length]),
    [
      [2, 0, 0, 5],
      [1, 0, long.length, frameBytesMax],
    ],
  )
  answers.reply(3, Buffer.from('later'))
  t.strictSame(
    answers.take().map(({ number, offset }) => [number, offset]),
    [
      [3, 0],
      [1, frameBytesMax],
    ],
  )
  t.strictSame(answers.take(), [part(1, 2 * frameBytesMax, long.length, Buffer.alloc(5, 7))])
  t.strictSame([answers.take(), answers.size], [[], 0])
})

t.test('a frame takes no further reply when it is full', async t => {
  const answers = new Answers(bytesMax)
  for (let number = 1; number <= 5; number++) answers.reply(number, Buffer.alloc(frameBytesMax / 2))
  t.strictSame([answers.take().length, answers.take().length, answers.take().length], [2, 2, 1])
})

t.test('a frame has room for so many answers', async t => {
  const answers = new Answers(bytesMax)
  for (let number = 0; number < 1000; number++) answers.refuse(number, answerKinds.busy)
  answers.reply(1001, Buffer.alloc(frameBytesMax + 1))
  t.equal(answers.take().length, answersPerFrameMax)
})

t.test('a reply beyond the limit is reported and not kept', async t => {
  const answers = new Answers(bytesMax)
  answers.reply(1, Buffer.allocUnsafe(replyBytesMax + 1))
  t.match(answers.take(), [{ number: 1, kind: answerKinds.tooLarge }])
})

t.test('when too many bytes wait the next replies are lost, until some have left', async t => {
  const answers = new Answers(replyBytesMax)
  const half = Buffer.allocUnsafe(replyBytesMax / 2)
  for (let number = 1; number <= 3; number++) answers.reply(number, half)
  t.match(answers.take()[0], { number: 3, kind: answerKinds.noRoom })
  while (answers.size > 1) answers.take()
  answers.reply(4, half)
  t.match(answers.take(), [{ number: 2 }], 'there is room again')
})

t.test('a long reply begins anew over the next stream', async t => {
  const answers = new Answers(bytesMax)
  answers.reply(1, Buffer.alloc(2 * frameBytesMax))
  answers.take()
  answers.rewind()
  t.match(answers.take(), [{ number: 1, offset: 0 }])
})

t.test('parts become the reply they were taken from', async t => {
  const answers = new Answers(bytesMax)
  const long = Buffer.alloc(5 * frameBytesMax + 1, 'orrery')
  answers.reply(9, long)
  const assembly = new Assembly()
  const whole: Buffer[] = []
  for (let taken = answers.take(); taken.length > 0; taken = answers.take()) {
    const read = assembly.add({ ...taken[0]!, reply: Buffer.from(taken[0]!.reply) })
    if (read) whole.push(read)
  }
  t.equal(whole.length, 1)
  t.ok(long.equals(whole[0]!))
})

t.test('parts that come twice or out of turn change nothing', async t => {
  const assembly = new Assembly()
  const [first, second] = [part(1, 0, 4, Buffer.from('ab')), part(1, 2, 4, Buffer.from('cd'))]
  t.equal(assembly.add(second), undefined, 'the first one is missing')
  t.equal(assembly.add(first), undefined)
  t.equal(assembly.add(first), undefined, 'again')
  t.equal(assembly.add(part(2, 2, 4, Buffer.from('xx'))), undefined, 'of another')
  t.equal(assembly.add(second)?.toString(), 'abcd')
  t.equal(assembly.add(second), undefined, 'it is done')
})

t.test('a part that does not fit its reply, or a reply beyond the limit, is not taken', async t => {
  const assembly = new Assembly()
  t.equal(assembly.add(part(1, 0, replyBytesMax + 1, Buffer.from('ab'))), undefined)
  t.equal(assembly.add(part(1, 0, 1, Buffer.from('ab'))), undefined)
})

t.test('a reply for which no caller waits any more is released', async t => {
  const assembly = new Assembly()
  assembly.add(part(1, 0, 4, Buffer.from('ab')))
  assembly.forget(1)
  t.equal(assembly.add(part(1, 2, 4, Buffer.from('cd'))), undefined)
})
