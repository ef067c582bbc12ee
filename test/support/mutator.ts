// Hard texts for a parser: valid ones that were cut, doubled, swapped, spliced, nested and lengthened, and noise made
// of the language's own words.

import type { Random } from './random.js'

/** A language, as the mutator needs it. */
export interface Language {
  /** Texts that are valid, or were made wrong by hand. */
  readonly texts: readonly string[]
  /** Words and characters that have a meaning in it. */
  readonly words: readonly string[]
  /** Its pairs for nesting: an opening and a closing text. */
  readonly nests: readonly (readonly [open: string, close: string])[]
  readonly lengthMax: number
}

/** Characters that are valid in no place. */
const foreign = [
  '\0',
  '\t',
  '\n',
  ' ',
  '\u00a0',
  '\u2028',
  'é',
  'İ',
  'ß',
  '一',
  '😀',
  '\ud800',
  '\udc00',
  '\ufeff',
  '\uffff',
  '%',
  '\\',
]

export class Mutator {
  private readonly random: Random
  private readonly language: Language

  constructor(random: Random, language: Language) {
    this.random = random
    this.language = language
  }

  /** The next text: most are neighbours of valid ones, some are noise, a few are very long. */
  next(): string {
    const { random } = this
    const from = random.between(0, 9)
    let text = from === 0 ? this.noise(random.between(0, 30)) : this.text()
    for (let left = mutationsOf(random); left > 0; left--) text = this.mutate(text)
    return text.slice(0, this.language.lengthMax)
  }

  private text(): string {
    return one(this.random, this.language.texts)
  }

  private word(): string {
    return one(this.random, this.random.between(0, 7) === 0 ? foreign : this.language.words)
  }

  private noise(count: number): string {
    return Array.from({ length: count }, () => this.word()).join('')
  }

  private mutate(text: string): string {
    const { random } = this
    const at = random.between(0, text.length)
    const to = random.between(at, Math.min(text.length, at + random.between(0, 20)))
    const [head, part, tail] = [text.slice(0, at), text.slice(at, to), text.slice(to)]
    switch (random.between(0, 11)) {
      case 0:
        return head
      case 1:
        return tail
      case 2:
        return head + tail
      case 3:
        return head + part + part + tail
      case 4:
        return tail + part + head
      case 5:
      case 6:
        return head + this.word() + part + tail
      case 7:
        return head + this.word() + tail
      case 8:
        return head + this.text() + tail
      case 9:
        return head + this.lengthened(part === '' ? this.word() : part) + tail
      case 10:
        return head + this.nested(part) + tail
      default:
        return head + part.split('').reverse().join('') + tail
    }
  }

  /** Repeats a part: often a few times, seldom up to the longest possible text. */
  private lengthened(part: string): string {
    const { random, language } = this
    const times = 2 + Math.floor((random.fraction() ** 12 * language.lengthMax) / part.length)
    return part.repeat(times)
  }

  private nested(part: string): string {
    const { random, language } = this
    const [open, close] = one(random, language.nests)
    const depth = 1 + Math.floor(random.fraction() ** 6 * 500)
    return open.repeat(depth) + part + close.repeat(random.between(0, 3) === 0 ? random.between(0, depth) : depth)
  }
}

/** Replaces values, keys too, by those of others, and drops some: valid JSON with another meaning. */
export function mutateJson(random: Random, value: unknown, others: readonly unknown[]): unknown {
  if (random.between(0, 9) === 0 || typeof value !== 'object' || value === null)
    return random.between(0, 2) === 0 ? one(random, others) : value
  if (Array.isArray(value)) {
    const items = value.map(item => mutateJson(random, item, others))
    return random.between(0, 4) === 0 ? [...items, one(random, others)] : items
  }
  const members = Object.entries(value).filter(() => random.between(0, 15) > 0)
  if (random.between(0, 7) === 0) members.push([keyOf(random, others), one(random, others)])
  return Object.fromEntries(members.map(([key, member]) => [key, mutateJson(random, member, others)]))
}

function keyOf(random: Random, others: readonly unknown[]): string {
  const other = one(random, others)
  return typeof other === 'object' && other !== null ? (Object.keys(other)[0] ?? '') : String(other)
}

/** One to four mostly, sometimes many. */
const mutationsOf = (random: Random): number =>
  random.between(0, 19) === 0 ? random.between(0, 25) : random.between(0, 4)

export function one<T>(random: Random, choices: readonly T[]): T {
  return choices[random.between(0, choices.length - 1)] as T
}
