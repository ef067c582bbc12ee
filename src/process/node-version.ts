// The versions of Node.js that can run the program.
//
// The start checks this before it imports anything else, because an old Node.js may fail to parse or to link the rest
// with an unhelpful message. So this file imports nothing, and uses only syntax that every Node.js with modules parses.

/** The oldest version that runs it; `engines` in package.json has the same. */
export const oldestNode = { major: 20, minor: 19 }

/** Whether a version, such as `18.20.8`, is older than that. */
export function isTooOld(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major < oldestNode.major || (major === oldestNode.major && minor < oldestNode.minor)
}
