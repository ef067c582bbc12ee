// The versions of etcd that are known to lose data.
//
// - 3.5.0 to 3.5.2: a member that crashes may have another content than the others afterwards, and reports no error.
//   The maintainers of etcd recommend none of these for production (fixed in 3.5.3).
// - Before 3.4.21, and from 3.5.0 to 3.5.4: an etcd of one member may lose a write that it has acknowledged, when it
//   crashes (fixed in 3.4.21 and 3.5.5).
//
// A version that this file does not know is not refused.

const inconsistent = 'a member that crashes may get another content than the others'
const forgetful = 'an etcd of one member may lose acknowledged writes when it crashes'

/** Why a version does not keep what it acknowledges, as a clause; undefined: nothing is known against it. */
export function faultOfEtcd(version: string): string | undefined {
  const [, major = Number.NaN, minor = 0, patch = 0] = (/^(\d+)\.(\d+)\.(\d+)/.exec(version) ?? []).map(Number)
  if (major === 3 && minor === 5 && patch <= 2) return inconsistent
  if (major === 3 && minor === 5 && patch <= 4) return forgetful
  if (major < 3 || (major === 3 && minor < 4) || (major === 3 && minor === 4 && patch <= 20)) return forgetful
  return undefined
}
