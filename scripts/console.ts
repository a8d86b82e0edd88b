/**
 * Bundles the console: `console/` becomes a page, one script with its chunks, and one style sheet, all
 * with hashes in their names.
 */
import { readFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { build } from 'esbuild'
import type { BuiltFile } from './build.ts'

const ROOT = dirname(import.meta.dirname)
const SOURCE = join(ROOT, 'console')
const OUT = join(ROOT, 'out')

/** A bundled console, and the source files that are part of it. */
export interface BuiltConsole {
  /** Files by their paths below the console's origin; `index.html` and `icon.svg` have no hash in their names. */
  readonly files: readonly BuiltFile[]
  readonly inputs: readonly string[]
}

/** Bundles the console as it is served. */
export async function buildConsole(): Promise<BuiltConsole> {
  const { outputFiles, metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: ['console/frame/main.tsx'],
    outdir: OUT,
    entryNames: 'assets/[name]-[hash]',
    chunkNames: 'assets/[name]-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    target: ['chrome120', 'firefox121', 'safari17'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    define: { 'process.env.NODE_ENV': '"production"' },
    minify: true,
    legalComments: 'none',
    metafile: true,
    write: false,
    logLevel: 'warning',
  })
  const files = outputFiles.map(({ path, contents }) => ({ path: relative(OUT, path), contents }))
  const named = (end: string) =>
    `/${files.find(({ path }) => basename(path).startsWith('main-') && path.endsWith(end))!.path}`
  const page = readFileSync(join(SOURCE, 'index.html'), 'utf8')
    .replace('{{script}}', named('.js'))
    .replace('{{style}}', named('.css'))
  const icon = readFileSync(join(SOURCE, 'icon.svg'))
  return {
    files: [...files, { path: 'index.html', contents: page }, { path: 'icon.svg', contents: icon }],
    inputs: Object.keys(metafile.inputs),
  }
}
