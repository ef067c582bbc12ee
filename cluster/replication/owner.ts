// The identity of nodes in takeovers: their name, and a word that is unique to each life of their process.

/** The owner of a shard that no node owns. */
export const noOwner = ''

/** `life` has no blanks. */
export const ownerText = (name: string, life: string): string => `${name} ${life}`

export const nameOf = (owner: string): string => owner.slice(0, owner.lastIndexOf(' '))
