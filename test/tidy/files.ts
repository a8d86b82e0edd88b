/** The files of the repository, and assertions that report what a check found in them. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join, sep } from 'node:path'
import type { Finding } from './scan.ts'

/** The root of the repository. */
export const root = join(import.meta.dirname, '..', '..')

/** Every file that git tracks or would track, as sorted paths from the root with `/`. */
export const files: string[] = list()

/** The source files whose paths start with one of the prefixes. */
export function sources(...prefixes: string[]): string[] {
  return files.filter(path => /\.[cm]?[jt]sx?$/.test(path) && prefixes.some(prefix => path.startsWith(prefix)))
}

/** The text of a file, by its path from the root. */
export function read(path: string): string {
  return readFileSync(join(root, path), 'utf8')
}

/** The text of a file, or undefined if it does not exist. */
export function readIfThere(path: string): string | undefined {
  return files.includes(path) ? read(path) : undefined
}

/** Fails with a line for each finding of `check` in the files. */
export function assertClean(paths: string[], check: (source: string, path: string) => Finding[]): void {
  assertNone(paths.flatMap(path => check(read(path), path).map(({ line, what }) => `${path}:${line} ${what}`)))
}

/** Fails with a line for each entry. */
export function assertNone(lines: string[]): void {
  if (lines.length > 0) assert.fail(`\n  ${lines.join('\n  ')}\n`)
}

function list(): string[] {
  return (fromGit() ?? fromDisk()).filter(isFile).sort()
}

function fromGit(): string[] | undefined {
  try {
    const args = ['ls-files', '-z', '--cached', '--others', '--exclude-standard']
    const out = execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
    return [...new Set(out.split('\0').filter(path => path !== ''))]
  } catch {
    return undefined
  }
}

/** The files of a tree without git. */
function fromDisk(): string[] {
  const skipped = new Set(['node_modules', 'dist', '.git', '.venv', '__pycache__', '.runyard'])
  const walk = (folder: string): string[] =>
    readdirSync(join(root, folder), { withFileTypes: true }).flatMap(entry => {
      const path = join(folder, entry.name)
      if (skipped.has(entry.name)) return []
      return entry.isDirectory() ? walk(path) : [path.split(sep).join('/')]
    })
  return walk('')
}

/** A file of the index may be missing on disk, and a link may lead to a folder. */
function isFile(path: string): boolean {
  return statSync(join(root, path), { throwIfNoEntry: false })?.isFile() === true
}
