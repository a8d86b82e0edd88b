/** The files of the console's page in memory: they are small, and all of them are read for the first page. */
import { extname } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { ConsoleFile, ConsoleFiles } from '../ports/console-files.ts'

/** A file as it was built. */
export interface BuiltConsoleFile {
  /** Below the origin of the console, without a slash before it. */
  readonly path: string
  readonly contents: Uint8Array | string
}

/** Source of the files. */
export interface ConsoleSource {
  /** True if the files changed since they were read. */
  hasChanged(): boolean
  read(): Promise<readonly BuiltConsoleFile[]>
}

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}
/** The page, which names all other files. */
const PAGE = '/index.html'
/** Files below this have a hash of their content in their names. */
const HASHED = '/assets/'

/** The console from a source that is read at the first request, and again for a page after a change. */
export function createConsoleFiles(source: ConsoleSource): ConsoleFiles {
  let files: Promise<ReadonlyMap<string, ConsoleFile>> | null = null
  return {
    async find(path) {
      if (files === null || (path === PAGE && source.hasChanged())) {
        files = source.read().then(compressed)
        files.catch(() => {
          files = null
        })
      }
      return (await files).get(path) ?? null
    },
  }
}

async function compressed(built: readonly BuiltConsoleFile[]): Promise<ReadonlyMap<string, ConsoleFile>> {
  return new Map(await Promise.all(built.map(async file => [`/${file.path}`, await compress(file)] as const)))
}

async function compress({ path, contents }: BuiltConsoleFile): Promise<ConsoleFile> {
  const plain = typeof contents === 'string' ? Buffer.from(contents) : contents
  const small = await promisify(gzip)(plain, { level: 9 })
  return {
    contentType: CONTENT_TYPES[extname(path)] ?? 'application/octet-stream',
    immutable: `/${path}`.startsWith(HASHED),
    plain,
    gzip: small.byteLength < plain.byteLength ? small : null,
  }
}
