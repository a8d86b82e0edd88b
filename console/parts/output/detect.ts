/**
 * The parts of an output that people can see or hear: media, files, links, texts and tables, in any place of it. The
 * work is bounded whatever the size of the output: of a text, only its beginning is decoded.
 */

/** Kind of a file by its content. A `file` can only be saved. */
export type FileKind = 'image' | 'audio' | 'video' | 'file'

/** A type of files. */
export interface FileType {
  readonly kind: FileKind
  /** Media type; never one that a browser would run. */
  readonly type: string
  /** End of its name, without a dot. */
  readonly end: string
}

/** A file within an output. */
export interface FoundFile extends FileType {
  /** The whole text of the output: base64 or text with its `data:` prefix, or without one. */
  readonly text: string
  /** Place of the data in the text: behind the prefix. */
  readonly from: number
  /** Form of the data. */
  readonly form: 'base64' | 'escaped' | 'plain'
  /** Size in bytes; an estimate for base64 with line ends. */
  readonly bytes: number
}

/** Lists of flat objects have the same few members. */
export interface FoundTable {
  readonly columns: readonly string[]
  readonly rows: readonly Readonly<Record<string, unknown>>[]
}

/** A part of an output that can be shown as what it is, with its place, such as `images[0].data`. */
export type OutputPart =
  | { readonly is: 'file'; readonly path: string; readonly file: FoundFile }
  | { readonly is: 'link'; readonly path: string; readonly url: string }
  /** A text with signs of Markdown, or with several lines. */
  | { readonly is: 'text'; readonly path: string; readonly text: string; readonly isMarkdown: boolean }
  | { readonly is: 'table'; readonly path: string; readonly table: FoundTable }

/** Parts of an output. */
export interface OutputParts {
  readonly parts: readonly OutputPart[]
  /** True if the limits ended the search: more may be in the output. */
  readonly isCut: boolean
}

/** Limit of values that are looked at. */
const MAX_VALUES = 20_000
/** Limit of parts. */
const MAX_PARTS = 100
/** Limit of levels of lists and objects. */
const MAX_DEPTH = 12
/** Limits of a table. Rows beyond are in its file. */
const MAX_COLUMNS = 16
/** Number of rows of a list whose members are read. */
const MAX_ROWS = 2_000
/** Limit of characters of a link. */
const MAX_LINK = 4_096
/** Number of characters whose bytes tell the type of a file. */
const HEAD = 64
/** Number of characters below which a text is no file. */
const MIN_BASE64 = 40
/** The same, for a type that four characters tell, which a text may have by chance. */
const MIN_WEAK = 400

/** The parts of an output. */
export function findParts(value: unknown): OutputParts {
  const parts: OutputPart[] = []
  let values = 0
  let isCut = false
  const add = (part: OutputPart) => {
    if (parts.length < MAX_PARTS) parts.push(part)
    else isCut = true
  }
  const visit = (of: unknown, path: string, depth: number): void => {
    values += 1
    if (values > MAX_VALUES || depth > MAX_DEPTH || isCut) {
      isCut = true
      return
    }
    if (typeof of === 'string') {
      const part = textPart(of, path)
      if (part !== null) add(part)
      return
    }
    if (isScalar(of)) return
    if (Array.isArray(of)) {
      const table = findTable(of)
      if (table !== null) add({ is: 'table', path, table })
      for (const [at, item] of of.entries()) {
        if (isCut) return
        visit(item, `${path}[${at}]`, depth + 1)
      }
      return
    }
    for (const name of Object.keys(of as object)) {
      if (isCut) return
      visit((of as Record<string, unknown>)[name], memberPath(path, name), depth + 1)
    }
  }
  visit(value, '', 0)
  return { parts, isCut }
}

function memberPath(path: string, name: string): string {
  const short = name.slice(0, 60)
  if (!/^\w+$/.test(short)) return `${path}[${JSON.stringify(short)}]`
  return path === '' ? short : `${path}.${short}`
}

function textPart(text: string, path: string): OutputPart | null {
  const file = findFile(text)
  if (file !== null) return { is: 'file', path, file }
  if (isLink(text)) return { is: 'link', path, url: text.trim() }
  const isMarkdown = looksLikeMarkdown(text)
  return isMarkdown || (path !== '' && hasLines(text)) ? { is: 'text', path, text, isMarkdown } : null
}

/** True for a value without members: numbers that JavaScript cannot hold are objects. */
export function isScalar(value: unknown): boolean {
  if (value === null || typeof value !== 'object') return true
  const { isRawJSON } = JSON as { readonly isRawJSON?: (value: unknown) => boolean }
  return isRawJSON?.(value) === true
}

/** True for the address of a file: http and https alone, and nothing beside it. */
export function isLink(text: string): boolean {
  if (text.length > MAX_LINK || !/^https?:\/\/[^\s<>"]+$/i.test(text.trim())) return false
  if (!URL.canParse(text.trim())) return false
  const { protocol, username } = new URL(text.trim())
  return username === '' && (protocol === 'http:' || protocol === 'https:')
}

/** The table of a list of flat objects; null for any other list. */
export function findTable(list: readonly unknown[]): FoundTable | null {
  if (list.length < 2) return null
  const columns = new Set<string>()
  for (const row of list.slice(0, MAX_ROWS)) {
    if (isScalar(row) || Array.isArray(row)) return null
    for (const [name, value] of Object.entries(row as object)) {
      if (!isScalar(value)) return null
      columns.add(name)
      if (columns.size > MAX_COLUMNS) return null
    }
  }
  if (columns.size === 0) return null
  const rows = list.filter(row => !isScalar(row)) as Record<string, unknown>[]
  return { columns: [...columns], rows }
}

/** Signs of Markdown; each is looked for in the beginning of a text. */
const SIGNS: readonly RegExp[] = [
  /^#{1,6} \S/m,
  /^ {0,3}```/m,
  /^ {0,3}[-*+] \S[^\n]*\n {0,3}[-*+] \S/m,
  /^ {0,3}\d{1,3}[.)] \S[^\n]*\n {0,3}\d{1,3}[.)] \S/m,
  /\*\*\S[^\n*]{0,200}\*\*/,
  /\]\(https?:\/\//,
  /^\|[^\n]{1,400}\|\s*\n\|[ :|-]{3,400}$/m,
]
/** Number of characters in which the signs are looked for. */
const SIGNED = 8_000

/** True for a text with signs of Markdown. */
export function looksLikeMarkdown(text: string): boolean {
  const head = text.slice(0, SIGNED)
  return SIGNS.some(sign => sign.test(head))
}

function hasLines(text: string): boolean {
  const end = text.indexOf('\n')
  return end >= 0 && end < text.trimEnd().length
}

/** The file that a text is; null if it is none. */
export function findFile(text: string): FoundFile | null {
  if (text.startsWith('data:')) return dataFile(text)
  if (/^\s{0,20}(?:<\?xml[^>]{0,200}\?>\s{0,20})?<svg[\s>]/.test(text.slice(0, 400))) {
    return { ...SVG, text, from: 0, form: 'plain', bytes: text.length }
  }
  if (text.length < MIN_BASE64) return null
  const type = typeOfBase64(text, 0)
  if (type === null || !looksBase64(text.slice(-HEAD))) return null
  return { ...type, text, from: 0, form: 'base64', bytes: base64Bytes(text, 0) }
}

const SVG: FileType = { kind: 'image', type: 'image/svg+xml', end: 'svg' }

/** Types that a prefix may name where the content does not tell them. */
const NAMED: Readonly<Record<string, FileType>> = {
  'image/svg+xml': SVG,
  'image/bmp': { kind: 'image', type: 'image/bmp', end: 'bmp' },
  'audio/aac': { kind: 'audio', type: 'audio/aac', end: 'aac' },
  'text/csv': { kind: 'file', type: 'text/csv', end: 'csv' },
  'text/plain': { kind: 'file', type: 'text/plain', end: 'txt' },
  'application/json': { kind: 'file', type: 'application/json', end: 'json' },
}

/** A file of another type can only be saved. */
const UNKNOWN: FileType = { kind: 'file', type: 'application/octet-stream', end: 'bin' }

function dataFile(text: string): FoundFile | null {
  const comma = text.slice(0, 300).indexOf(',')
  if (comma < 0) return null
  const [named = '', ...parameters] = text.slice('data:'.length, comma).toLowerCase().split(';')
  if (!/^[\w.+-]{0,60}\/?[\w.+-]{0,60}$/.test(named.trim())) return null
  const from = comma + 1
  const byName = Object.hasOwn(NAMED, named) ? NAMED[named] : undefined
  if (!parameters.some(one => one.trim() === 'base64')) {
    return { ...(byName ?? UNKNOWN), text, from, form: 'escaped', bytes: text.length - from }
  }
  if (from < text.length && !looksBase64(text.slice(from, from + HEAD))) return null
  const type = typeOfBase64(text, from) ?? byName ?? UNKNOWN
  return { ...type, text, from, form: 'base64', bytes: base64Bytes(text, from) }
}

function looksBase64(text: string): boolean {
  return /^[\w+/-]+={0,2}$/.test(text.replaceAll(/\s/g, ''))
}

/** Size of decoded base64. */
function base64Bytes(text: string, from: number): number {
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0
  return Math.max(0, Math.floor(((text.length - from) * 3) / 4) - padding)
}

function typeOfBase64(text: string, from: number): FileType | null {
  const head = text.slice(from, from + HEAD).replaceAll(/\s/g, '')
  if (!looksBase64(head)) return null
  const whole = plainBase64(head).slice(0, head.length - (head.length % 4))
  try {
    return fileType(
      Uint8Array.from(atob(whole), character => character.charCodeAt(0)),
      text.length - from,
    )
  } catch {
    return null
  }
}

/** Base64 of the form for addresses in the usual alphabet. */
export function plainBase64(text: string): string {
  return text.replaceAll('-', '+').replaceAll('_', '/')
}

/** Types by the text at the beginning of their files. */
const HEADS: readonly (readonly [string, FileType])[] = [
  ['\x89PNG\r\n', { kind: 'image', type: 'image/png', end: 'png' }],
  ['\xff\xd8\xff', { kind: 'image', type: 'image/jpeg', end: 'jpg' }],
  ['GIF87a', { kind: 'image', type: 'image/gif', end: 'gif' }],
  ['GIF89a', { kind: 'image', type: 'image/gif', end: 'gif' }],
  ['OggS', { kind: 'audio', type: 'audio/ogg', end: 'ogg' }],
  ['fLaC', { kind: 'audio', type: 'audio/flac', end: 'flac' }],
  ['ID3', { kind: 'audio', type: 'audio/mpeg', end: 'mp3' }],
  ['\x1aE\xdf\xa3', { kind: 'video', type: 'video/webm', end: 'webm' }],
  ['%PDF-', { kind: 'file', type: 'application/pdf', end: 'pdf' }],
  ['PK\x03\x04', { kind: 'file', type: 'application/zip', end: 'zip' }],
  ['\x1f\x8b\x08', { kind: 'file', type: 'application/gzip', end: 'gz' }],
  ['glTF', { kind: 'file', type: 'model/gltf-binary', end: 'glb' }],
]

/** Types of RIFF files by the text at place 8. */
const RIFF: Readonly<Record<string, FileType>> = {
  WEBP: { kind: 'image', type: 'image/webp', end: 'webp' },
  WAVE: { kind: 'audio', type: 'audio/wav', end: 'wav' },
}

/** Types of ISO media files by the brand at place 8; others are videos. */
const BRANDS: Readonly<Record<string, FileType>> = {
  avif: { kind: 'image', type: 'image/avif', end: 'avif' },
  avis: { kind: 'image', type: 'image/avif', end: 'avif' },
  'M4A ': { kind: 'audio', type: 'audio/mp4', end: 'm4a' },
  heic: { kind: 'file', type: 'image/heic', end: 'heic' },
  mif1: { kind: 'file', type: 'image/heic', end: 'heic' },
}

/**
 * The type of a file by its first bytes; null for none of the known ones.
 * @param characters length of its base64: two bytes alone tell too little about a short text
 */
export function fileType(head: Uint8Array, characters = MIN_WEAK): FileType | null {
  const text = String.fromCharCode(...head.subarray(0, 48))
  const found = HEADS.find(([begin]) => text.startsWith(begin) && (begin.length > 3 || characters >= MIN_BASE64))
  if (found !== undefined) return found[1]
  const kind = text.slice(8, 12)
  if (text.startsWith('RIFF')) return Object.hasOwn(RIFF, kind) ? RIFF[kind]! : null
  if (text.slice(4, 8) === 'ftyp')
    return Object.hasOwn(BRANDS, kind) ? BRANDS[kind]! : { kind: 'video', type: 'video/mp4', end: 'mp4' }
  return characters >= MIN_WEAK && isMp3Frame(head) ? { kind: 'audio', type: 'audio/mpeg', end: 'mp3' } : null
}

/** True for the head of a frame of MPEG audio, layer III, with a bit rate and a sample rate. */
function isMp3Frame([first = 0, second = 0, third = 0]: Uint8Array): boolean {
  const isSync = first === 0xff && (second & 0xe0) === 0xe0
  const isLayer3 = (second & 0x06) === 0x02 && (second & 0x18) !== 0x08
  const rate = third >> 4
  return isSync && isLayer3 && rate !== 0 && rate !== 15 && (third & 0x0c) !== 0x0c
}
