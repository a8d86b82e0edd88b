/** The files of the repository, and the report of what the checks found in them. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join, sep } from 'node:path'
import type { Finding } from './scan.ts'

/** The root of the repository. */
export const root = join(import.meta.dirname, '..', '..')

/** Every file that git tracks or would track, as paths from the root with `/`, in order. */
export const files: string[] = list()

/** The files that hold code of ours and whose paths start with one of the prefixes. */
export function sources(...prefixes: string[]): string[] {
  return files.filter(path => /\.[cm]?[jt]s$/.test(path) && prefixes.some(prefix => path.startsWith(prefix)))
}

/** The text of a file, by its path from the root. */
export function read(path: string): string {
  return readFileSync(join(root, path), 'utf8')
}

/** The text of a file, or undefined when it does not exist yet. */
export function readIfThere(path: string): string | undefined {
  return files.includes(path) ? read(path) : undefined
}

/** Fails with one line for every finding that `check` makes in the files. */
export function assertClean(paths: string[], check: (source: string, path: string) => Finding[]): void {
  assertNone(paths.flatMap(path => check(read(path), path).map(({ line, what }) => `${path}:${line} ${what}`)))
}

/** Fails with one line for every entry. */
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

/** For a copy of the tree without git. */
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

/** A file of the index can be missing on disk, and a link can lead to a folder. */
function isFile(path: string): boolean {
  return statSync(join(root, path), { throwIfNoEntry: false })?.isFile() === true
}
