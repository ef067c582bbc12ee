// Values under prefixes, found for a text that begins with them: a radix tree.
//
//   room, room1, room12, rack          ro|om  (room)
//                                   r <     `- 1 (room1) - 2 (room12)
//                                      ack (rack)
//
// A node has a value, or branches, or is the root: at most twice as many nodes as prefixes. A look costs at most the
// length of the text.

interface Node<T> {
  /** The characters between the node above and this one; only the root has none. */
  label: string
  value: T | undefined
  /** By the first character of their labels; undefined: none. */
  below: Map<number, Node<T>> | undefined
}

export class PrefixTree<T> {
  private readonly root: Node<T> = { label: '', value: undefined, below: undefined }

  get(prefix: string): T | undefined {
    let node = this.root
    for (let at = 0; at < prefix.length; at += node.label.length) {
      const next = node.below?.get(prefix.charCodeAt(at))
      if (!next || !prefix.startsWith(next.label, at)) return undefined
      node = next
    }
    return node.value
  }

  /** Puts a value under a prefix, in place of the one that is there. */
  set(prefix: string, value: T): void {
    let node = this.root
    let at = 0
    while (at < prefix.length) {
      const next = node.below?.get(prefix.charCodeAt(at))
      if (!next) return attach(node, { label: prefix.slice(at), value, below: undefined })
      const common = commonLength(next.label, prefix, at)
      node = common < next.label.length ? split(node, next, common) : next
      at += common
    }
    node.value = value
  }

  delete(prefix: string): void {
    const way = [this.root]
    for (let at = 0; at < prefix.length; ) {
      const next = way.at(-1)!.below?.get(prefix.charCodeAt(at))
      if (!next || !prefix.startsWith(next.label, at)) return
      way.push(next)
      at += next.label.length
    }
    way.at(-1)!.value = undefined
    prune(way)
  }

  // [hot] Once per event and index.
  /** Shows the values of all prefixes that the text begins with, the empty one included, the shortest first. */
  visit(text: string, show: (value: T) => void): void {
    let node: Node<T> | undefined = this.root
    for (let at = 0; ; ) {
      if (node.value !== undefined) show(node.value)
      node = node.below?.get(text.charCodeAt(at))
      if (!node || !text.startsWith(node.label, at)) return
      at += node.label.length
    }
  }
}

function attach<T>(above: Node<T>, node: Node<T>): void {
  above.below ??= new Map()
  above.below.set(node.label.charCodeAt(0), node)
}

/** How many characters of the label stand in the text from `at` on; the first one does. */
function commonLength(label: string, text: string, at: number): number {
  let length = 1
  while (length < label.length && label[length] === text[at + length]) length++
  return length
}

/** Gives a node, which is below another, a node of its own for the first characters of its label. */
function split<T>(above: Node<T>, node: Node<T>, length: number): Node<T> {
  const upper: Node<T> = { label: node.label.slice(0, length), value: undefined, below: undefined }
  node.label = node.label.slice(length)
  attach(above, upper)
  attach(upper, node)
  return upper
}

/** Takes the last node of a way away when nobody needs it: it has no value, and joins nothing. */
function prune<T>(way: Node<T>[]): void {
  const node = way.pop()!
  const above = way.at(-1)
  if (!above || node.value !== undefined) return
  const [only, ...others] = node.below?.values() ?? []
  if (others.length > 0) return
  if (only) {
    only.label = node.label + only.label
    attach(above, only)
    return
  }
  above.below!.delete(node.label.charCodeAt(0))
  if (above.below!.size === 0) above.below = undefined
  prune(way)
}
