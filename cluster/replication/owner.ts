// What nodes call themselves in takeovers: their name, and a word that tells one life of their process from another.

/** The owner of a shard that nobody owns. */
export const nobody = ''

/** `life` has no blanks. */
export const ownerText = (name: string, life: string): string => `${name} ${life}`

export const nameOf = (owner: string): string => owner.slice(0, owner.lastIndexOf(' '))
