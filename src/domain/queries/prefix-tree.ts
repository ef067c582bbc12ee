// A radix tree: values under prefixes, found for a text that begins with them.
//
//   room, room1, room12, rack          ro|om  (room)
//                                   r <     `- 1 (room1) - 2 (room12)
//                                      ack (rack)
//
// A node has a value, or branches, or is the root: at most twice as many nodes as prefixes. A lookup costs at most the
// length of the text.

export interface TreeNode<N> {
  /** The characters between the parent node and this one; only the root has none. */
  label: string
  /** Children by the first character of their labels; undefined: none. */
  below: Map<number, N> | undefined
}

/**
 * The child on the way to a prefix, of which `at` characters are already matched; created if it is missing. `make`
 * returns a node with a label and without children, to replace `lower` if that will be below it.
 */
export function step<N extends TreeNode<N>>(
  above: N,
  prefix: string,
  at: number,
  make: (label: string, lower?: N) => N,
): N {
  const known = above.below?.get(prefix.charCodeAt(at))
  if (!known) return attach(above, make(prefix.slice(at)))
  const { label } = known
  let common = 1
  while (common < label.length && label[common] === prefix[at + common]) common++
  if (common === label.length) return known
  const upper = make(label.slice(0, common), known)
  known.label = label.slice(common)
  attach(upper, known)
  return attach(above, upper)
}

function attach<N extends TreeNode<N>>(above: N, node: N): N {
  above.below ??= new Map()
  above.below.set(node.label.charCodeAt(0), node)
  return node
}

interface Node<T> extends TreeNode<Node<T>> {
  value: T | undefined
}

export class PrefixTree<T> {
  private readonly root = emptyNode<T>('')

  get(prefix: string): T | undefined {
    let node = this.root
    for (let at = 0; at < prefix.length; at += node.label.length) {
      const next = node.below?.get(prefix.charCodeAt(at))
      if (!next || !prefix.startsWith(next.label, at)) return undefined
      node = next
    }
    return node.value
  }

  /** Sets the value of a prefix, and replaces an earlier value. */
  set(prefix: string, value: T): void {
    let node = this.root
    for (let at = 0; at < prefix.length; at += node.label.length) node = step(node, prefix, at, emptyNode<T>)
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
  /** Calls `show` with the values of all prefixes of the text, also the empty one, the shortest first. */
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

const emptyNode = <T>(label: string): Node<T> => ({ label, value: undefined, below: undefined })

/** Removes the last node of a path when it is not needed: it has no value, and does not join branches. */
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
