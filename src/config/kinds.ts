// Kinds of option values: how a text of the command line or of the environment becomes a value, or is refused.
//
// A kind accepts exactly its form, so that a typing error stops the start, and does not surprise the operator later: no
// blanks around numbers, no plus sign, no other spelling of a word. Combinations of values are checked in config.ts.

import { parseTraceLevels } from '../messages/admin.js'

export interface OptionKind<T> {
  /** Completes the sentence `"x" is not ...`. */
  readonly form: string
  /** Stands for the value in usage texts; '' for a flag, which has none on the command line. */
  readonly placeholder: string
  /** Unit of the value; '' if it has none. */
  readonly unit: string
  /** The value; undefined when the text does not have the form. */
  read(text: string): T | undefined
}

/** Present or not on the command line; in the environment one of four words (docs/operations/options.md). */
export const flag: OptionKind<boolean> = {
  form: 'TRUE, true, FALSE or false',
  placeholder: '',
  unit: '',
  read: text => (/^(TRUE|true)$/.test(text) ? true : /^(FALSE|false)$/.test(text) ? false : undefined),
}

/** A decimal whole number within limits, both included. */
export function whole(min: number, max = Number.MAX_SAFE_INTEGER, unit = ''): OptionKind<number> {
  const open = max === Number.MAX_SAFE_INTEGER
  return {
    form: open ? `a whole number, ${min} or more` : `a whole number from ${min} to ${max}`,
    placeholder: open ? `${min}..` : `${min}..${max}`,
    unit,
    read: text => {
      const number = readWhole(text)
      return number !== undefined && number >= min && number <= max ? number : undefined
    },
  }
}

/** A number like `whole`, or one word that represents a number. */
export function wholeOr<W extends string>(standsForOne: W, min: number, max: number): OptionKind<number | W> {
  const number = whole(min, max)
  return {
    form: `${standsForOne}, or ${number.form}`,
    placeholder: `${standsForOne}|${number.placeholder}`,
    unit: '',
    read: given => (given === standsForOne ? standsForOne : number.read(given)),
  }
}

/** Any text of `lengthMin` to `lengthMax` characters. */
export function text(lengthMin = 0, lengthMax = 4096): OptionKind<string> {
  return {
    form:
      lengthMin > 0 ? `a text of ${lengthMin} to ${lengthMax} characters` : `a text of up to ${lengthMax} characters`,
    placeholder: 'text',
    unit: '',
    read: given => (given.length >= lengthMin && given.length <= lengthMax ? given : undefined),
  }
}

/** A text that fits a form or a check; `said` completes "is not ". */
export function shaped(
  form: RegExp | ((text: string) => boolean),
  said: string,
  placeholder: string,
): OptionKind<string> {
  const fits = typeof form === 'function' ? form : (given: string) => form.test(given)
  return { form: said, placeholder, unit: '', read: given => (fits(given) ? given : undefined) }
}

/** The path of a file or a directory. */
export const path: OptionKind<string> = { ...text(1), form: 'a path', placeholder: 'path' }

/** One of the given words, in exactly this spelling. */
export function word<W extends string>(...words: readonly W[]): OptionKind<W> {
  return {
    form: words.length > 1 ? `${words.slice(0, -1).join(', ')} or ${words.at(-1)}` : words.join(),
    placeholder: words.join('|'),
    unit: '',
    read: given => words.find(known => known === given),
  }
}

/** One of some upper-case words, which may also be written in lower case (not in a mixture). */
export function upperWord<W extends string>(...words: readonly W[]): OptionKind<W> {
  return { ...word(...words), read: given => words.find(known => known === given || known.toLowerCase() === given) }
}

/**
 * `-notificationMode` (docs/interface/notifications.md#modes): sizes of queues and numbers of workers are at least 1.
 */
export const notificationMode = shaped(
  /^(transient|persistent|threadpool(:0*[1-9]\d*:0*[1-9]\d*(,\w{1,50}:0*[1-9]\d*:0*[1-9]\d*)*)?)$/,
  'transient, persistent, or threadpool[:q:n[,tenant:q:n...]] with q and n above 0',
  'transient|persistent|threadpool[:q:n[,tenant:q:n...]]',
)

/** `-notifFlowControl` (docs/interface/notifications.md#flow-control). */
export const flowControl = shaped(
  /^(0+(\.\d+)?|0*1(\.0+)?|\.\d+):0*[1-9]\d*:0*[1-9]\d*$/,
  'gauge:stepDelay:maxInterval with a gauge from 0 to 1 and two whole numbers of milliseconds above 0',
  'gauge:stepDelay:maxInterval',
)

/** `-corsOrigin` for all origins; must be given alone. */
export const allOrigins = '__ALL'

/** Origins of one `-corsOrigin`: each is compared with that of a request. */
export const originsMax = 100

/**
 * `-corsOrigin`: several origins, or one text. A single text is compared as it is, as the reference does, whether or
 * not a browser would send it (docs/interface/browsers.md).
 */
export const corsOrigins = shaped(
  given => !given.includes(',') || (given.split(',').every(isOrigin) && given.split(',').length <= originsMax),
  `an origin, or up to ${originsMax} with commas, as SCHEME://HOST[:PORT], or ${allOrigins} alone`,
  'origin,..',
)

/** Whether the request of some browser can match a setting. */
export const isOriginSetting = (given: string): boolean =>
  given === '' || given === allOrigins || given.split(',').every(isOrigin)

/** Whether a browser may send a text as `Origin`: in lower case, without a path and without the port of its scheme. */
function isOrigin(given: string): boolean {
  if (!/^[a-z][a-z0-9+.-]*:\/\/[^\s/?#@,]+$/.test(given) || !URL.canParse(given)) return false
  const { protocol, host, origin } = new URL(given)
  // For a scheme that URLs do not know (an app's own) there is no other form.
  return origin === 'null' ? `${protocol}//${host}` === given : origin === given
}

/** Whether a value of `-consoleTiles` is a file; another one is the URL of a server. */
export const isTileFile = (given: string): boolean => !/^https?:/i.test(given) && given.endsWith('.pmtiles')

/** `-consoleTiles` (docs/operations/console.md#streets). */
export const consoleTiles = shaped(
  given => isTileFile(given) || isTileUrl(given),
  'a URL such as https://tiles.example/{z}/{x}/{y}.png, with {z}, {x} and {y} in its path, or the path of a file NAME.pmtiles',
  'url|path',
)

/** The host of such a URL becomes a part of the policy of the page, so it has the letters of a host and no others. */
const tileHost = /^https?:\/\/[a-z\d.-]+(?::\d{1,5})?\//i

/** Whether it has each of the three places once, behind the host, and nothing else in braces. */
function isTileUrl(given: string): boolean {
  const plain = given.replace('{z}', '').replace('{x}', '').replace('{y}', '')
  return tileHost.test(given) && given.length - plain.length === 9 && !/[{}\s]/.test(plain) && URL.canParse(plain)
}

/** `-t`: trace levels, and ranges of them. */
export const traceLevels = shaped(
  given => parseTraceLevels(given) !== undefined,
  'a list of levels and ranges from 0 to 255, such as 60,80-90',
  'levels',
)

function readWhole(digits: string): number | undefined {
  const number = /^-?\d{1,16}$/.test(digits) ? Number(digits) : undefined
  return Number.isSafeInteger(number) ? number : undefined
}
