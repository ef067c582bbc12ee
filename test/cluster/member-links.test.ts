// Links for asks end at once when no answer can come any more, and otherwise only some time after a member has gone.

import t from 'tap'
import type { Member, Status } from '../../cluster/gossip/member.js'
import { deadLinkMs, leftLinkMs, MemberLinks } from '../../cluster/member-links.js'
import { FakeClock } from '../support/fake-clock.js'

const memberOf = (name: string, status: Status, incarnation = 1): Member => ({
  name,
  address: `${name}:1`,
  domain: '',
  incarnation,
  life: `${name}1`,
  status,
  isJoined: true,
})

class Subject {
  readonly clock = new FakeClock()
  readonly refusing = new Set<string>()
  /** The address of each node that has a link. */
  readonly links = new Map<string, string>()
  /** Each link that has ended, with the reason. */
  readonly ended: string[] = []
  readonly subject = new MemberLinks(
    {
      meet: ({ name, address }) => {
        this.links.set(name, address)
      },
      part: (name, reason) => {
        this.links.delete(name)
        this.ended.push(`${name}: ${reason}`)
      },
    },
    this.clock,
    name => this.refusing.has(name),
  )

  constructor() {
    this.subject.note(memberOf('b', 'alive'))
  }
}

t.test('a member that is alive or suspect has a link', async t => {
  const { subject, links } = new Subject()
  subject.note(memberOf('c', 'suspect'))
  t.strictSame([...links.values()], ['b:1', 'c:1'])
})

t.test('the link to a member that has left remains until its last answers are read', async t => {
  const { subject, ended, clock } = new Subject()
  subject.note(memberOf('b', 'left'))
  clock.advance(leftLinkMs - 1)
  t.strictSame(ended, [])
  clock.advance(1)
  t.strictSame(ended, ['b: it has left'])
})

t.test('the link ends at once when the machine of a dead member refuses connections', async t => {
  const refused = new Subject()
  refused.refusing.add('b')
  refused.subject.note(memberOf('b', 'dead'))
  t.strictSame(refused.ended, ['b: it does not answer'])
  t.equal(refused.clock.waiting, 0)
})

t.test('the link to a member that was declared dead remains for a while', async t => {
  const { subject, links, ended, clock } = new Subject()
  subject.note(memberOf('b', 'dead'))
  clock.advance(deadLinkMs - 1)
  t.ok(links.has('b'))
  clock.advance(1)
  t.strictSame(ended, ['b: it does not answer'])
})

t.test('the link remains when the member turns out to be alive, and waits as long after another death', async t => {
  const { subject, links, ended, clock } = new Subject()
  subject.note(memberOf('b', 'dead'))
  clock.advance(deadLinkMs - 1)
  subject.note(memberOf('b', 'alive', 2))
  clock.advance(10 * deadLinkMs)
  t.ok(links.has('b'))
  subject.note(memberOf('b', 'dead', 2))
  clock.advance(deadLinkMs - 1)
  t.strictSame(ended, [])
  subject.note(memberOf('b', 'left', 3))
  clock.advance(leftLinkMs)
  t.strictSame(ended, ['b: it has left'], 'it reports the end itself')
  clock.advance(deadLinkMs)
  t.equal(ended.length, 1)
})

t.test('no link ends by itself after the close', async t => {
  const { subject, ended, clock } = new Subject()
  subject.note(memberOf('b', 'dead'))
  subject.close()
  clock.advance(10 * deadLinkMs)
  t.strictSame(ended, [])
})
