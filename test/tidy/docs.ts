/** Checks pages written in Markdown: titles, links, and the form of the changelog. */
import { dirname, join } from 'node:path/posix'
import { type Finding, findingsOf } from './scan.ts'

/** A page with its fenced blocks and comments blanked, so that every line keeps its number. */
export function proseOf(page: string): string {
  const lines = page.replace(/<!--[\s\S]*?-->/g, comment => comment.replace(/[^\n]/g, ' ')).split('\n')
  let fence = ''
  const prose = lines.map(line => {
    // A fence may be in a quotation or in an item of a list.
    const marks = /^(?:[\s>]|[-*+]\s|\d+\.\s)*(`{3,}|~{3,})(.*)$/.exec(line)
    if (fence === '') {
      fence = marks?.[1] ?? ''
      return fence === '' ? line : ''
    }
    if (marks?.[1]?.startsWith(fence) && marks[2]?.trim() === '') fence = ''
    return ''
  })
  return prose.join('\n')
}

/** One finding unless a page has exactly one first-level heading. */
export function findTitleMistakes(page: string): Finding[] {
  const titles = findingsOf(proseOf(page), /^# /gm, () => 'a second first-level heading')
  return titles.length === 0 ? [{ line: 1, what: 'no first-level heading' }] : titles.slice(1)
}

/** The relative links of the page at `path` that lead nowhere; `exists` is asked with paths from the root. */
export function findBrokenLinks(page: string, path: string, exists: (path: string) => boolean): Finding[] {
  const prose = proseOf(page).replace(/(`+)(?!`)[^\n]*?[^`\n]\1(?!`)/g, code => ' '.repeat(code.length))
  const inline = /\]\(\s*(?:<([^>\n]*)>|([^\s()]*(?:\([^\s()]*\)[^\s()]*)*))(?:\s+["'(][^\n]*?["')])?\s*\)/g
  const reference = /^ {0,3}\[[^\]\n]+\]:\s*(?:<([^>\n]*)>|(\S+))/gm
  return [inline, reference].flatMap(pattern =>
    findingsOf(prose, pattern, match => match[1] ?? match[2] ?? '').flatMap(({ line, what }) => {
      const target = targetOf(what, path)
      return target === undefined || exists(target) ? [] : [{ line, what: `the link ${what} leads nowhere` }]
    }),
  )
}

/** The path from the root to which a link of the page at `path` leads, or undefined when it leaves the repository. */
function targetOf(link: string, path: string): string | undefined {
  if (/^[a-z][a-z0-9+.-]*:|^\/\//i.test(link)) return undefined
  const file = decodeURI(link.replace(/[?#].*$/, ''))
  if (file === '') return undefined
  return join(file.startsWith('/') ? '.' : dirname(path), file)
}

const VERSION = /^## (?:\[Unreleased\]|\[?\d+\.\d+\.\d+[\w.+-]*\]? - \d{4}-\d{2}-\d{2}(?: \[YANKED\])?)\s*$/
const KIND = /^### (?:Added|Changed|Deprecated|Removed|Fixed|Security)\s*$/

/** Lines of a changelog that leave the form of Keep a Changelog. */
export function findChangelogMistakes(page: string): Finding[] {
  const lines = proseOf(page).split('\n')
  const mistakes = lines.flatMap((text, index) => {
    if (text.startsWith('## ') && !VERSION.test(text)) return [{ line: index + 1, what: `not a version: ${text}` }]
    if (text.startsWith('### ') && !KIND.test(text)) {
      return [{ line: index + 1, what: `not a kind of change: ${text}` }]
    }
    return []
  })
  return lines.some(text => VERSION.test(text)) ? mistakes : [...mistakes, { line: 1, what: 'no version heading' }]
}
