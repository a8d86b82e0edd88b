/**
 * Markdown of models as a tree: headings, paragraphs, lists, quotes, code, tables, rules; emphasis, code, links. HTML
 * in it is text. Each search for an end is bounded.
 */

/** A part of a line. */
export type Inline =
  | string
  | { readonly is: 'code'; readonly text: string }
  | { readonly is: 'strong' | 'em' | 'del'; readonly of: readonly Inline[] }
  | { readonly is: 'link'; readonly url: string; readonly of: readonly Inline[] }
  | { readonly is: 'image'; readonly url: string; readonly text: string }

/** A part of a text. */
export type Block =
  | { readonly is: 'heading'; readonly level: number; readonly of: readonly Inline[] }
  | { readonly is: 'code'; readonly language: string; readonly text: string }
  | { readonly is: 'list'; readonly start: number | null; readonly items: readonly (readonly Block[])[] }
  | { readonly is: 'quote'; readonly of: readonly Block[] }
  | { readonly is: 'table'; readonly head: readonly (readonly Inline[])[]; readonly rows: readonly Inline[][][] }
  | { readonly is: 'text'; readonly of: readonly Inline[] }
  | { readonly is: 'rule' }

/** Limit of levels of quotes and lists. */
const MAX_BLOCKS = 6
/** Limit of levels of emphasis. */
const MAX_INLINE = 6
/** Number of characters in which the end of emphasis, code or a link must be. */
const REACH = 2_000
/** The same, for the address of an image. */
const IMAGE_REACH = 4_000_000

/** The tree of a text. */
export function readMarkdown(text: string): readonly Block[] {
  return readBlocks(text.replaceAll('\r\n', '\n').split('\n'), 0)
}

function readBlocks(lines: readonly string[], depth: number): Block[] {
  const blocks: Block[] = []
  let at = 0
  while (at < lines.length) {
    const line = lines[at]!
    if (line.trim() === '') {
      at += 1
      continue
    }
    const read = readCode(lines, at) ?? readLine(line, at) ?? (depth < MAX_BLOCKS ? readNested(lines, at, depth) : null)
    const { block, next } = read ?? readTable(lines, at) ?? readText(lines, at)
    blocks.push(block)
    at = next
  }
  return blocks
}

interface Read {
  readonly block: Block
  /** Number of the line after it. */
  readonly next: number
}

function readCode(lines: readonly string[], at: number): Read | null {
  const open = /^( {0,3})(```|~~~)(.{0,100})/.exec(lines[at]!)
  if (open === null) return null
  const [, indent = '', fence = '', language = ''] = open
  let end = at + 1
  while (end < lines.length && !lines[end]!.trimStart().startsWith(fence)) end += 1
  const body = lines.slice(at + 1, end).map(line => (line.startsWith(indent) ? line.slice(indent.length) : line))
  const block: Block = { is: 'code', language: language.replace(/^`+/, '').trim(), text: body.join('\n') }
  return { block, next: end + 1 }
}

function readLine(line: string, at: number): Read | null {
  const heading = /^ {0,3}(#{1,6})(?: (.*))?$/.exec(line)
  if (heading !== null) {
    const title = (heading[2] ?? '').trim()
    return { block: { is: 'heading', level: heading[1]!.length, of: readInline(title) }, next: at + 1 }
  }
  const signs = line.replaceAll(' ', '')
  const isRule = signs.length >= 3 && signs.length < 200 && '-*_'.includes(signs[0]!) && isAll(signs, signs[0]!)
  return isRule ? { block: { is: 'rule' }, next: at + 1 } : null
}

function isAll(text: string, character: string): boolean {
  for (const one of text) if (one !== character) return false
  return true
}

/** The sign of an item of a list. */
const ITEM = /^( {0,12})(?:[-*+]|(\d{1,6})[.)]) (.*)$/

function readNested(lines: readonly string[], at: number, depth: number): Read | null {
  if (/^ {0,3}>/.test(lines[at]!)) {
    let end = at
    while (end < lines.length && /^ {0,3}>/.test(lines[end]!)) end += 1
    const inner = lines.slice(at, end).map(line => line.replace(/^ {0,3}> ?/, ''))
    return { block: { is: 'quote', of: readBlocks(inner, depth + 1) }, next: end }
  }
  const first = ITEM.exec(lines[at]!)
  return first === null ? null : readList(lines, at, first, depth)
}

function readList(lines: readonly string[], at: number, first: RegExpExecArray, depth: number): Read {
  const indent = first[1]!.length
  const isNumbered = first[2] !== undefined
  const items: string[][] = []
  let next = at
  for (; next < lines.length; next += 1) {
    const line = lines[next]!
    const item = ITEM.exec(line)
    const space = line.length - line.trimStart().length
    if (item !== null && item[1]!.length <= indent + 1) {
      if ((item[2] !== undefined) !== isNumbered || item[1]!.length < indent) break
      items.push([item[3]!])
    } else if (line.trim() === '') {
      const after = lines[next + 1] ?? ''
      const goesOn = after.startsWith(' '.repeat(indent + 2)) || (ITEM.exec(after)?.[1]?.length ?? -1) >= indent
      if (after.trim() === '' || !goesOn) break
      items.at(-1)!.push('')
    } else if (space > indent) {
      items.at(-1)!.push(line.slice(Math.min(space, indent + (isNumbered ? 3 : 2))))
    } else break
  }
  const start = isNumbered ? Number(first[2]) : null
  return { block: { is: 'list', start, items: items.map(item => readBlocks(item, depth + 1)) }, next }
}

function readTable(lines: readonly string[], at: number): Read | null {
  const [head = '', line = ''] = lines.slice(at, at + 2)
  if (!head.includes('|') || !line.includes('-') || !/^[\s|:-]+$/.test(line) || !line.includes('|')) return null
  let next = at + 2
  while (next < lines.length && lines[next]!.includes('|') && lines[next]!.trim() !== '') next += 1
  const rows = lines.slice(at + 2, next).map(row => cells(row))
  return { block: { is: 'table', head: cells(head), rows }, next }
}

function cells(line: string): Inline[][] {
  const inner = line.trim().replace(/^\|/, '').replace(/\|$/, '')
  return inner.split('|').map(cell => readInline(cell.trim()))
}

function readText(lines: readonly string[], at: number): Read {
  let next = at + 1
  while (next < lines.length && !beginsBlock(lines[next]!)) next += 1
  return { block: { is: 'text', of: readInline(lines.slice(at, next).join('\n')) }, next }
}

function beginsBlock(line: string): boolean {
  return line.trim() === '' || /^ {0,3}(?:#{1,6} |```|~~~|>|[-*+] |\d{1,6}[.)] )/.test(line)
}

/** Signs of emphasis, the longest first. */
const MARKS: readonly (readonly [string, 'strong' | 'em' | 'del'])[] = [
  ['**', 'strong'],
  ['__', 'strong'],
  ['~~', 'del'],
  ['*', 'em'],
  ['_', 'em'],
]

/** The parts of a line. */
export function readInline(text: string, depth = 0): Inline[] {
  const parts: Inline[] = []
  let plain = ''
  let at = 0
  const add = (part: Inline, next: number) => {
    if (plain !== '') parts.push(plain)
    plain = ''
    parts.push(part)
    at = next
  }
  while (at < text.length) {
    const found = depth > MAX_INLINE ? null : readMark(text, at, depth)
    if (found !== null) {
      add(found.part, found.next)
    } else if (text[at] === '\\' && /[\\`*_~[\]()#!|>-]/.test(text[at + 1] ?? '')) {
      plain += text[at + 1]
      at += 2
    } else {
      plain += text[at]
      at += 1
    }
  }
  if (plain !== '') parts.push(plain)
  return parts
}

interface ReadInline {
  readonly part: Inline
  readonly next: number
}

function readMark(text: string, at: number, depth: number): ReadInline | null {
  const sign = text[at]!
  if (sign === '`') return readCodeSpan(text, at)
  if (sign === '!' || sign === '[') return readLink(text, at, depth)
  if (sign === 'h') return readBareLink(text, at)
  if (!'*_~'.includes(sign)) return null
  for (const [mark, is] of MARKS) {
    if (!text.startsWith(mark, at)) continue
    const from = at + mark.length
    let end = findEnd(text, from, mark)
    // Of `***`, the first sign ends what is within.
    if (end > from && mark.length === 2 && text[end + 2] === sign) end += 1
    if (end <= from || /\s/.test(text[from]!) || /\s/.test(text[end - 1]!)) continue
    // Names such as max_new_tokens have no emphasis.
    if (sign === '_' && (/\w/.test(text[at - 1] ?? '') || /\w/.test(text[end + mark.length] ?? ''))) continue
    return { part: { is, of: readInline(text.slice(from, end), depth + 1) }, next: end + mark.length }
  }
  return null
}

/** Place of the end of something that begins before a place; -1 without one. */
function findEnd(text: string, from: number, end: string, reach = REACH): number {
  const found = text.slice(from, from + reach).indexOf(end)
  return found < 0 ? -1 : from + found
}

function readCodeSpan(text: string, at: number): ReadInline | null {
  const fence = text.startsWith('``', at) ? '``' : '`'
  const from = at + fence.length
  const end = findEnd(text, from, fence)
  return end <= from ? null : { part: { is: 'code', text: text.slice(from, end).trim() }, next: end + fence.length }
}

function readLink(text: string, at: number, depth: number): ReadInline | null {
  const isImage = text[at] === '!'
  const from = at + (isImage ? 2 : 1)
  if (isImage && text[at + 1] !== '[') return null
  const end = findEnd(text, from, ']')
  if (end < 0 || text[end + 1] !== '(') return null
  const isData = isImage && text.startsWith('data:image/', end + 2)
  const close = findEnd(text, end + 2, ')', isData ? IMAGE_REACH : REACH)
  if (close < 0) return null
  const url = text
    .slice(end + 2, close)
    .trim()
    .split(/\s/, 1)[0]!
  const label = text.slice(from, end)
  if (isImage) return { part: { is: 'image', url, text: label }, next: close + 1 }
  return { part: { is: 'link', url, of: readInline(label, depth + 1) }, next: close + 1 }
}

function readBareLink(text: string, at: number): ReadInline | null {
  if (/\w/.test(text[at - 1] ?? '') || !(text.startsWith('https://', at) || text.startsWith('http://', at))) return null
  const url = /^[^\s<>"'`|\\^{}]+/.exec(text.slice(at, at + REACH))![0].replace(/[.,;:!?)\]*_]{1,4}$/, '')
  return { part: { is: 'link', url, of: [url] }, next: at + url.length }
}
