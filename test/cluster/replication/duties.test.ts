// The duties of a node for a shard.

import t from 'tap'
import { dutyOf, type Situation } from '../../../cluster/replication/duties.js'

const usual: Situation = {
  isJoined: true,
  rank: 0,
  keepers: 3,
  phase: 'following',
  replica: 'following',
  owner: 'other',
  orphanedMs: 0,
  leavingMs: 0,
  strandedMs: 0,
  mayHoldRows: true,
  isClose: true,
  options: { claimStepMs: 1000, leavingStepMs: 3000, dropAfterMs: 60_000 },
}

const cases: readonly (readonly [string, Partial<Situation>, ReturnType<typeof dutyOf>])[] = [
  ['the first in line asks a living owner for the shard', {}, 'ask'],
  ['not before its copy is near the end', { isClose: false }, 'nothing'],
  ['a standby leaves a living owner alone', { rank: 1 }, 'nothing'],
  ['the first asks an owner that leaves', { owner: 'leaving' }, 'ask'],
  ['a standby gives the first some time for that', { owner: 'leaving', rank: 1, leavingMs: 2999 }, 'nothing'],
  ['and then asks as well', { owner: 'leaving', rank: 1, leavingMs: 3000 }, 'ask'],
  ['unless it leaves itself', { owner: 'leaving', rank: 1, leavingMs: 3000, isJoined: false }, 'nothing'],
  ['the first claims an orphan at once', { owner: 'gone' }, 'claim'],
  ['the second only after a step', { owner: 'gone', rank: 1, orphanedMs: 999 }, 'nothing'],
  ['and then it does', { owner: 'gone', rank: 1, orphanedMs: 1000 }, 'claim'],
  ['who is not in line has a copy and comes last', { owner: 'gone', rank: -1, orphanedMs: 3000 }, 'claim'],
  ['who is not to be given shards claims none', { owner: 'gone', isJoined: false, orphanedMs: 60_000 }, 'nothing'],
  [
    'nor who has just begun and has not heard of anybody',
    { owner: 'gone', isJoined: false, rank: -1, keepers: 0 },
    'nothing',
  ],
  ['who has no whole copy fetches one and does not claim', { owner: 'gone', replica: 'incomplete' }, 'fetch'],
  ['who ought not to keep it does not fetch', { rank: -1, replica: 'incomplete' }, 'nothing'],
  ['a takeover of its own makes a node get ready', { owner: 'self' }, 'adopt'],
  ['unless it cannot', { owner: 'self', replica: 'incomplete' }, 'release'],
  ['a copy that has stopped is left alone', { replica: 'stopped' }, 'nothing'],
  ['but not as the owner', { owner: 'self', replica: 'stopped' }, 'release'],
  ['what is under way is not begun again', { phase: 'waiting', owner: 'self' }, 'nothing'],
  ['a copy that others ought to keep stays for a while', { rank: -1, strandedMs: 59_999 }, 'nothing'],
  ['and is dropped then', { rank: -1, strandedMs: 60_000 }, 'drop'],
  ['so are the rows of a snapshot that broke off', { rank: -1, strandedMs: 60_000, replica: 'incomplete' }, 'drop'],
  [
    'but nothing is dropped twice',
    { rank: -1, strandedMs: 60_000, replica: 'incomplete', mayHoldRows: false },
    'nothing',
  ],
]

for (const [sentence, situation, duty] of cases)
  t.test(sentence, async t => {
    t.equal(dutyOf({ ...usual, ...situation }), duty)
  })
