// Maps within maps: a key of several parts, without a text that joins the parts.

/** The map under a key. Creates it if there is none. */
export function nested<K, V>(outer: Map<string, Map<K, V>>, key: string): Map<K, V> {
  let map = outer.get(key)
  if (!map) {
    map = new Map()
    outer.set(key, map)
  }
  return map
}
