// Patterns that are texts, or lists of texts: `Room`, `^urn:x:1$`, `^Room.*`, `urn:x:1|urn:x:2`, `^urn:x:(1|2|3)$`.
//
// Most patterns have this form. They become comparisons, which need neither an engine nor its limits: a list of a
// hundred ids is one lookup in a set.
//
//   pattern      = alternative *( "|" alternative )
//   alternative  = [ "^" ] [ ".*" ] text [ "(" text *( "|" text ) ")" text ] [ ".*" ] [ "$" ]

import { plainTextsLengthMax } from '../limits.js'

/** The test of a plain pattern. */
export interface PlainTest {
  /** The cost of a character of the text, in the steps of `patternWorkMax`; 0 when its length does not matter. */
  readonly steps: number
  test(text: string): boolean
}

/** The position of a word: it is the whole text, its beginning, its end, or any part of it. */
type Place = 'whole' | 'start' | 'end' | 'part'

interface Word {
  readonly place: Place
  readonly text: string
}

/** The test of a plain pattern; undefined for any other pattern. */
export function plainTest(source: string): PlainTest | undefined {
  const words: Word[] = []
  let length = 0
  for (let at = 0; ; at++) {
    const alternative = readAlternative(source, at)
    if (!alternative) return undefined
    const { place, head, middles, tail, end } = alternative
    for (const middle of middles) {
      const text = head + middle + tail
      length += text.length
      if (length > plainTextsLengthMax) return undefined
      words.push({ place, text })
    }
    if (end === source.length) return words.length === 1 ? testOf(words[0]!) : testOfAny(words)
    at = end
  }
}

function testOf({ place, text: wanted }: Word): PlainTest {
  switch (place) {
    case 'whole':
      return { steps: 0, test: text => text === wanted }
    case 'start':
      return { steps: 0, test: text => text.startsWith(wanted) }
    case 'end':
      return { steps: 0, test: text => text.endsWith(wanted) }
    case 'part':
      return { steps: stepsOfSearch(wanted), test: text => text.includes(wanted) }
  }
}

function testOfAny(words: readonly Word[]): PlainTest {
  const whole = new Set(words.filter(({ place }) => place === 'whole').map(({ text }) => text))
  const others = words.filter(({ place }) => place !== 'whole').map(testOf)
  // Those at the start or end cost some 5 ns each, however long the text is.
  const steps = others.reduce((sum, other) => sum + Math.max(other.steps, 0.1), 0)
  return { steps, test: text => whole.has(text) || others.some(other => other.test(text)) }
}

/**
 * A search for a text takes up to 8 ns a character. If the text is long and repetitive, it takes a third of a
 * nanosecond for each pair of characters of both: more than a second for 4,000 characters in a megabyte.
 */
const stepsOfSearch = (wanted: string): number => (wanted === '' ? 0 : 0.25 + wanted.length / 100)

interface Alternative {
  readonly place: Place
  readonly head: string
  readonly middles: readonly string[]
  readonly tail: string
  /** The position of the bar after it, or the end of the pattern. */
  readonly end: number
}

function readAlternative(source: string, from: number): Alternative | undefined {
  let at = from
  let isFromStart = source[at] === '^'
  if (isFromStart) at++
  if (source.startsWith('.*', at)) {
    isFromStart = false
    at += 2
  }
  const head = literalAt(source, at)
  const group = readGroup(source, head.end)
  if (!group) return undefined
  const tail = literalAt(source, group.end)
  at = tail.end
  const isOpen = source.startsWith('.*', at)
  if (isOpen) at += 2
  const isToEnd = source[at] === '$'
  if (isToEnd) at++
  if (at < source.length && source[at] !== '|') return undefined
  return {
    place: placeOf(isFromStart, isToEnd && !isOpen),
    head: head.text,
    middles: group.texts,
    tail: tail.text,
    end: at,
  }
}

function placeOf(isFromStart: boolean, isToEnd: boolean): Place {
  if (isFromStart) return isToEnd ? 'whole' : 'start'
  return isToEnd ? 'end' : 'part'
}

const noGroup: readonly string[] = ['']

/** The texts of a group; one empty text if there is no group; undefined when the group contains anything but texts. */
function readGroup(
  source: string,
  from: number,
): { readonly texts: readonly string[]; readonly end: number } | undefined {
  if (source[from] !== '(') return { texts: noGroup, end: from }
  const texts: string[] = []
  let at = source.startsWith('?:', from + 1) ? from + 2 : from
  do {
    const { text, end } = literalAt(source, at + 1)
    texts.push(text)
    at = end
  } while (source[at] === '|')
  return source[at] === ')' && !repeats.has(source[at + 1] ?? '') ? { texts, end: at + 1 } : undefined
}

const special = new Set('\\.[](){}*+?|^$')
const repeats = new Set('*+?{')

/** The plain characters from `from` on, and their end. A repeated character is not plain. */
export function literalAt(source: string, from: number): { readonly text: string; readonly end: number } {
  let text = ''
  let end = from
  while (end < source.length) {
    let at = end
    if (source[at] === '\\') {
      at++
      if (!special.has(source[at] ?? '')) break
    } else if (special.has(source[at]!)) break
    const character = String.fromCodePoint(source.codePointAt(at)!)
    at += character.length
    if (repeats.has(source[at] ?? '')) break
    text += character
    end = at
  }
  return { text, end }
}
