/** The XML of S3: written from elements, and read from bodies without entities of their own and with limits. */
import { FileError } from './file-error.ts'

/** An element to write: its name, and its text or elements. Null is left out. */
export type XmlOut = readonly [name: string, content: string | number | boolean | readonly (XmlOut | null)[]]

/** The namespace of S3. */
const NAMESPACE = 'http://s3.amazonaws.com/doc/2006-03-01/'

/** A whole document. @param isInSpace false for errors, which have no namespace */
export function xmlDocument([name, content]: XmlOut, isInSpace = true): string {
  const space = isInSpace ? ` xmlns="${NAMESPACE}"` : ''
  return `${XML_DECLARATION}<${name}${space}>${inner(content)}</${name}>`
}

/** The line at the beginning of a document. */
export const XML_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'

function inner(content: XmlOut[1]): string {
  if (typeof content !== 'object') return escaped(String(content))
  return content.map(child => (child === null ? '' : `<${child[0]}>${inner(child[1])}</${child[0]}>`)).join('')
}

function escaped(text: string): string {
  return (
    text
      // XML 1.0 has no form for them.
      .replace(/[\p{Cc}\ufffe\uffff]/gu, sign => ('\t\n\r'.includes(sign) ? sign : '\ufffd'))
      .replaceAll('&', '&amp;')
      .replaceAll('<', '&lt;')
      .replaceAll('>', '&gt;')
      .replaceAll('"', '&quot;')
      .replaceAll('\r', '&#13;')
  )
}

/** An element that was read. */
export interface XmlIn {
  readonly name: string
  /** Its text, without that of its elements. */
  text: string
  readonly children: XmlIn[]
}

const MAX_DEPTH = 8
const MAX_ELEMENTS = 60_000
const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/**
 * Reads a document. Attributes and namespaces are skipped; document types, comments and processing instructions
 * besides the first line are refused.
 * @throws FileError `MalformedXML`
 */
export function readXml(text: string): XmlIn {
  const open: XmlIn[] = [{ name: '', text: '', children: [] }]
  let elements = 0
  let at = text.startsWith('\ufeff') ? 1 : 0
  while (at < text.length) {
    const begin = text.indexOf('<', at)
    const parent = open.at(-1)!
    parent.text += decoded(text.slice(at, begin === -1 ? text.length : begin))
    if (begin === -1) break
    const end = text.indexOf('>', begin)
    if (end === -1) throw malformed()
    const tag = text.slice(begin + 1, end)
    at = end + 1
    if (tag.startsWith('?xml ') && open.length === 1 && elements === 0) continue
    if (tag.startsWith('!') || tag.startsWith('?')) throw malformed()
    if (tag.startsWith('/')) {
      if (open.length === 1 || open.pop()!.name !== plainName(tag.slice(1).trim())) throw malformed()
      continue
    }
    const isEmpty = tag.endsWith('/')
    const element: XmlIn = { name: plainName(isEmpty ? tag.slice(0, -1) : tag), text: '', children: [] }
    elements += 1
    if (elements > MAX_ELEMENTS || open.length > MAX_DEPTH) throw malformed()
    parent.children.push(element)
    if (!isEmpty) open.push(element)
  }
  const [{ children, text: outside }] = open as [XmlIn]
  if (open.length !== 1 || children.length !== 1 || outside.trim() !== '') throw malformed()
  return children[0]!
}

/** The text of the first child with a name; null without one. */
export function childText({ children }: XmlIn, name: string): string | null {
  return children.find(child => child.name === name)?.text ?? null
}

/** The name of a tag without its prefix and its attributes. */
function plainName(tag: string): string {
  const name = /^[^\s]*/.exec(tag)![0]
  const plain = name.slice(name.indexOf(':') + 1)
  if (!/^[A-Za-z][A-Za-z0-9]*$/.test(plain)) throw malformed()
  return plain
}

function decoded(text: string): string {
  if (!text.includes('&')) return text
  const [start = '', ...parts] = text.split('&')
  return parts.reduce((whole, part) => {
    const end = part.indexOf(';')
    if (end < 1 || end > 10) throw malformed()
    return `${whole}${character(part.slice(0, end))}${part.slice(end + 1)}`
  }, start)
}

function character(entity: string): string {
  if (Object.hasOwn(ENTITIES, entity)) return ENTITIES[entity]!
  const match = /^#(?:x([0-9a-fA-F]{1,6})|(\d{1,7}))$/.exec(entity)
  if (match === null) throw malformed()
  const code = match[1] === undefined ? Number(match[2]) : Number.parseInt(match[1], 16)
  if (code === 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) throw malformed()
  return String.fromCodePoint(code)
}

function malformed(): FileError {
  return new FileError('MalformedXML')
}
