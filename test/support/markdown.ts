// The parts of a Markdown page that tests look for: its tables, its anchors, its links.
//
// Enough for the pages of this project, not a parser: a table row is a line that begins with a bar, and code blocks
// have no headings. Anchors are made of headings as GitHub makes them.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './project.js'

/** The pages below docs/, and the README, by their paths. */
export function pages(): Map<string, string> {
  const found = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .map(path => `docs/${path.replaceAll('\\', '/')}`)
    .filter(path => path.endsWith('.md'))
  return new Map([...found, 'README.md', 'cluster/README.md'].map(path => [path, readPage(path)]))
}

export const readPage = (path: string): string => readFileSync(join(root, path), 'utf8')

/** The part of a page below a heading of the second level, without that of the next one. */
export function sectionOf(markdown: string, heading: string): string {
  const [, ...behind] = markdown.split(`\n## ${heading}\n`)
  return behind.join('').split('\n## ')[0] ?? ''
}

/** The cells of all rows of tables, without heads and rules. */
export function rowsOf(markdown: string): string[][] {
  const lines = markdown.split('\n')
  const isRow = (at: number): boolean => lines[at]?.startsWith('|') === true
  const isRule = (at: number): boolean => /^\|[-|: ]+\|$/.test(lines[at] ?? '')
  return lines
    .filter((_, at) => isRow(at) && !isRule(at) && !isRule(at + 1))
    .map(line => line.slice(1, line.lastIndexOf('|')).split('|'))
    .map(cells => cells.map(cell => cell.trim()))
}

/** The words in code marks of a text. */
export const codesIn = (text: string): string[] => [...text.matchAll(/`([^`]+)`/g)].map(match => match[1] as string)

/**
 * The anchors of the headings of a page. A heading that occurs twice has one anchor here: no link should point at it.
 */
export function anchorsOf(markdown: string): Set<string> {
  const headings = withoutBlocks(markdown).match(/^#+ .*$/gm) ?? []
  return new Set(headings.map(anchorOf))
}

const anchorOf = (heading: string): string =>
  heading
    .replace(/^#+ /, '')
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\- _]/gu, '')
    .trim()
    .replaceAll(' ', '-')

/** The targets of the links of a page that stay within the project. */
export const linksOf = (markdown: string): string[] =>
  [...withoutBlocks(markdown).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(match => match[1] as string)
    .filter(target => !/^[a-z]+:/i.test(target))

const withoutBlocks = (markdown: string): string => markdown.replace(/^```.*?^```/gms, '').replace(/^ {4}.*$/gm, '')
