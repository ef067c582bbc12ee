// The first byte of every request and reply: what stands behind it, and in which layout.
//
// A number stands for one layout for good, which makes it the version of the form: a release that lays something out in another way gives it another
// number, and uses that for nodes only that know it. A member that an older release may ignore needs no new number.
//
// Bytes that are not understood, because of their form, their kind or what is in them, are answered with `notUnderstood` and the reason. That form
// stays in every release, so that the asker knows that nothing has happened.

export const forms = {
  find: 0x80,
  write: 0x81,
  found: 0x82,
  done: 0x83,
  part: 0x84,
  request: 0x85,
  reply: 0x86,
  notUnderstood: 0xff,
} as const
