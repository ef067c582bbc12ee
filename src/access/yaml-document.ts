// An access file in YAML, as the document that is read from JSON (docs/interface/access.md#the-file).
//
// YAML 1.2 with its core schema: no dates, no merge keys, no tags, names of members are texts. An alias becomes a copy
// of what it stands for, and the copies count: a small file of aliases to aliases could have billions of values. A name
// that is there twice is a fault, as in JSON.
//
// The messages of the parser may quote the file, which may have a secret in it by mistake. So this file has
// its own texts for faults.

import { createRequire } from 'node:module'
import type { Alias, ErrorCode, Node, YAMLMap, YAMLSeq } from 'yaml'
import { type AccessDocument, type AccessPlace, describeFault } from '../domain/access/access-document.js'
import { accessFileDepthMax } from '../domain/access/access-limits.js'
import type { Json } from '../domain/json.js'
import { accepted, type Result, refusals, refused } from '../domain/refusal.js'
import { accessYamlLengthMax, accessYamlValuesMax } from './limits.js'

const require = createRequire(import.meta.url)
let loaded: typeof import('yaml') | undefined

/** The library. It takes 40 ms to load, which a start with a file in JSON need not wait for. */
function yaml(): typeof import('yaml') {
  loaded ??= require('yaml') as typeof import('yaml')
  return loaded
}

/** The YAML of a text, or a refusal (`accessFile`) that names the line. */
export function readAccessYaml(text: string): Result<AccessDocument> {
  if (text.length > accessYamlLengthMax)
    return refused(
      refusals.accessFile(
        `the file has ${text.length} characters, at most ${accessYamlLengthMax} in YAML: write it in JSON`,
      ),
    )
  const { LineCounter, parseDocument } = yaml()
  const lines = new LineCounter()
  const document = parseDocument(text, {
    lineCounter: lines,
    // Its messages would quote the file, and comparing all names with each other takes quadratic time.
    prettyErrors: false,
    uniqueKeys: false,
    stringKeys: true,
    version: '1.2',
    // With 'silent' it would pass over a second document. It prints nothing here.
    logLevel: 'error',
  })
  const lineAt = (offset: number): number => lines.linePos(offset).line
  const [wrong] = [...document.errors, ...document.warnings]
  if (wrong) return refused(refusals.accessFile(describeFault(lineAt(wrong.pos[0]), [], faultTexts[wrong.code])))
  if (document.directives?.yaml.version !== '1.2')
    return refused(refusals.accessFile(describeFault(1, [], 'the file has to be of YAML 1.2')))
  const reader = new YamlReader()
  const value = reader.value(document.contents)
  if (value === undefined)
    return refused(refusals.accessFile(describeFault(lineAt(reader.offset), reader.place, reader.problem)))
  return accepted({ value, lineOf: place => reader.lineOf(document.contents, place, lineAt) })
}

const faultTexts: Readonly<Record<ErrorCode, string>> = {
  ALIAS_PROPS: 'an alias has an anchor or a tag',
  BAD_ALIAS: 'an alias has no name, or no anchor before it',
  BAD_COLLECTION_TYPE: 'a tag does not fit its value',
  BAD_DIRECTIVE: 'a directive is wrong, or not known',
  BAD_DQ_ESCAPE: 'an escape in double quotes is wrong',
  BAD_INDENT: 'the indentation is wrong, or a bracket is missing',
  BAD_PROP_ORDER: 'an anchor or a tag is at the wrong place',
  BAD_SCALAR_START: 'a text begins with a character that needs quotes',
  BLOCK_AS_IMPLICIT_KEY: 'a name is not on its own line: the indentation is wrong, or quotes are missing',
  BLOCK_IN_FLOW: 'there is a block within brackets',
  DUPLICATE_KEY: 'a name is there twice',
  IMPOSSIBLE: 'the file is no YAML',
  KEY_OVER_1024_CHARS: 'a name has more than 1,024 characters',
  MISSING_CHAR: 'a character is missing: a quote, a comma, a colon, a bracket, or a blank',
  MULTILINE_IMPLICIT_KEY: 'a name is on several lines: a colon or quotes are missing',
  MULTIPLE_ANCHORS: 'a value has several anchors',
  MULTIPLE_DOCS: 'the file has several documents',
  MULTIPLE_TAGS: 'a value has several tags',
  NON_STRING_KEY: 'a name is not a text',
  RESOURCE_EXHAUSTION: 'it is nested too deep',
  TAB_AS_INDENT: 'a line is indented with a tab',
  TAG_RESOLVE_FAILED: 'a tag is not known',
  UNEXPECTED_TOKEN: 'there is something that cannot be here',
}

/** Reads one document. A method returns undefined when it has found a fault: no JSON value is undefined. */
class YamlReader {
  /** The first fault, and where it is. */
  problem = ''
  place: AccessPlace = []
  offset = 0
  private count = 0
  /** The place of the value that is being read. */
  private readonly path: (string | number)[] = []
  /** The latest node of each anchor so far, and what each alias stands for: the package would search all nodes. */
  private readonly anchors = new Map<string, Node>()
  private readonly meant = new Map<unknown, Node>()
  /** How many aliases the reader is within. */
  private within = 0

  value(node: unknown): Json | undefined {
    if (node === null || node === undefined) return null
    const { isAlias, isMap, isScalar, isSeq } = yaml()
    if (isAlias(node)) return this.alias(node)
    this.noteAnchor(node)
    if (++this.count > accessYamlValuesMax)
      return this.fault(node, `the file has more than ${accessYamlValuesMax} values, with those that aliases repeat`)
    if (isMap(node)) return this.isTooDeep(node) ? undefined : this.members(node)
    if (isSeq(node)) return this.isTooDeep(node) ? undefined : this.elements(node)
    return isScalar(node) ? this.scalar(node, node.value) : this.fault(node, 'is of a kind that JSON does not have')
  }

  /** The line of the value at a place. For a value of an alias that is the line of its anchor. */
  lineOf(contents: unknown, place: AccessPlace, lineAt: (offset: number) => number): number {
    const { isAlias, isMap, isScalar, isSeq } = yaml()
    let node = contents
    for (const step of place) {
      if (isAlias(node)) node = this.meant.get(node)
      if (isMap(node)) {
        const pair = node.items.find(({ key }) => isScalar(key) && key.value === step)
        // A member without a value has no node with a place.
        node = pair && isWritten(pair.value) ? pair.value : pair?.key
      } else node = isSeq(node) ? node.items[Number(step)] : undefined
    }
    return isWritten(node) ? lineAt(offsetOf(node)) : 0
  }

  private alias(alias: Alias): Json | undefined {
    if (this.within === 0) {
      const node = this.anchors.get(alias.source)
      if (!node) return this.fault(alias, 'an alias has no anchor before it')
      this.meant.set(alias, node)
    }
    this.within++
    const value = this.value(this.meant.get(alias))
    this.within--
    return value
  }

  /** What an alias stands for has been read before, with the anchors in it. */
  private noteAnchor(node: unknown): void {
    const { anchor } = node as Node & { readonly anchor?: string }
    if (anchor !== undefined && this.within === 0) this.anchors.set(anchor, node as Node)
  }

  private isTooDeep(node: Node): boolean {
    if (this.path.length < accessFileDepthMax) return false
    this.fault(node, `nested more than ${accessFileDepthMax} levels deep`)
    return true
  }

  private members(map: YAMLMap): Json | undefined {
    const members = new Map<string, Json>()
    for (const { key, value: node } of map.items) {
      const name = yaml().isScalar(key) ? key.value : undefined
      if (typeof name !== 'string' || !name.isWellFormed()) return this.fault(map, 'a name is not a text')
      this.path.push(name)
      if (members.has(name)) return this.fault(key, 'is there twice')
      const value = this.value(node)
      if (value === undefined) return undefined
      members.set(name, value)
      this.path.pop()
    }
    // As JSON.parse does, it makes `__proto__` an own member.
    return Object.fromEntries(members)
  }

  private elements(list: YAMLSeq): Json | undefined {
    const elements: Json[] = []
    for (const node of list.items) {
      this.path.push(elements.length)
      const value = this.value(node)
      if (value === undefined) return undefined
      elements.push(value)
      this.path.pop()
    }
    return elements
  }

  private scalar(node: Node, value: unknown): Json | undefined {
    if (typeof value === 'string')
      return value.isWellFormed() ? value : this.fault(node, 'a text has half of a surrogate pair')
    if (typeof value === 'boolean' || value === null) return value
    if (typeof value === 'number' && Number.isFinite(value)) return value
    return this.fault(node, 'is of a kind that JSON does not have')
  }

  private fault(node: unknown, problem: string): undefined {
    this.problem = problem
    this.place = [...this.path]
    this.offset = offsetOf(node)
    return undefined
  }
}

const offsetOf = (node: unknown): number => (node as Node | null | undefined)?.range?.[0] ?? 0

/** Whether it has a place in the text: an empty value has none. */
function isWritten(node: unknown): boolean {
  const range = (node as Node | null | undefined)?.range
  return range !== null && range !== undefined && range[1] > range[0]
}
