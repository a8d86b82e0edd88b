import { FileError } from './file-error.ts'

/** The folders on the way to a file, and its name. */
export type FilePath = readonly string[]

/** Longest key in bytes of UTF-8, as S3 has it. */
export const MAX_KEY_BYTES = 1_024
/** Longest name of a file or folder in bytes, as file systems have it. */
const MAX_NAME_BYTES = 255

/** A key as a place in a volume. */
export interface FileKey {
  readonly path: FilePath
  /** True for a key that ends with a slash, which names a folder. */
  readonly isFolder: boolean
}

/**
 * The place of a key in its volume. Slashes at the beginning and slashes in a row count as one: `rp_upload` makes
 * such keys of absolute paths.
 * @throws FileError `InvalidArgument` or `KeyTooLongError` for a key that is not the name of a file
 */
export function readFileKey(key: string): FileKey {
  if (Buffer.byteLength(key) > MAX_KEY_BYTES)
    throw new FileError('KeyTooLongError', `a key has at most ${MAX_KEY_BYTES} bytes`)
  const path = key.split('/').filter(name => name !== '')
  if (path.length === 0) throw new FileError('InvalidArgument', 'the key has no name of a file')
  for (const name of path) {
    const problem = nameProblem(name)
    if (problem !== null) throw problem
  }
  return { path, isFolder: key.endsWith('/') }
}

/** True for the name of a file or a folder that a key can have; others are not listed. */
export function isFileName(name: string): boolean {
  return nameProblem(name) === null
}

function nameProblem(name: string): FileError | null {
  if (name === '.' || name === '..') {
    return new FileError('InvalidArgument', "a key has no '.' and no '..' between its slashes")
  }
  if (name.includes('\\')) return new FileError('InvalidArgument', 'a key has no backslashes')
  // U+FFFD stands for any bytes that are not UTF-8.
  if (/[\p{Cc}\ufffd\ufffe\uffff]/u.test(name) || !name.isWellFormed()) {
    return new FileError('InvalidArgument', 'a key has no control characters, and is UTF-8')
  }
  if (Buffer.byteLength(name) > MAX_NAME_BYTES) {
    return new FileError('KeyTooLongError', `a key has at most ${MAX_NAME_BYTES} bytes between its slashes`)
  }
  return null
}

/** Compares keys in the order of S3: by the bytes of their UTF-8. */
export function compareKeys(a: string, b: string): number {
  if (a === b) return 0
  // UTF-16 has the order of UTF-8 but for characters beyond U+FFFF, which are pairs from U+D800.
  let at = 0
  const length = Math.min(a.length, b.length)
  while (at < length && a.charCodeAt(at) === b.charCodeAt(at)) at += 1
  if (at === length) return a.length - b.length
  return codeOrder(a.charCodeAt(at)) - codeOrder(b.charCodeAt(at))
}

/** Surrogates stand behind all other units. */
function codeOrder(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit
}

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  avif: 'image/avif',
  bin: 'application/octet-stream',
  bmp: 'image/bmp',
  css: 'text/css',
  csv: 'text/csv',
  flac: 'audio/flac',
  gif: 'image/gif',
  gz: 'application/gzip',
  html: 'text/html',
  jpeg: 'image/jpeg',
  jpg: 'image/jpeg',
  js: 'text/javascript',
  json: 'application/json',
  m4a: 'audio/mp4',
  mp3: 'audio/mpeg',
  mp4: 'video/mp4',
  ogg: 'audio/ogg',
  pdf: 'application/pdf',
  png: 'image/png',
  svg: 'image/svg+xml',
  tar: 'application/x-tar',
  txt: 'text/plain',
  wav: 'audio/wav',
  webm: 'video/webm',
  webp: 'image/webp',
  xml: 'application/xml',
  zip: 'application/zip',
}

/** The content type of a file by the end of its name: a folder keeps no other one. */
export function contentType(path: FilePath): string {
  const name = path.at(-1) ?? ''
  const end = name.slice(name.lastIndexOf('.') + 1).toLowerCase()
  return Object.hasOwn(CONTENT_TYPES, end) ? CONTENT_TYPES[end]! : 'application/octet-stream'
}
