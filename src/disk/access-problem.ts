/** The reason why this user may not use a file or folder, with its owner. */
import { accessSync, constants, lstatSync, readFileSync, readlinkSync, type Stats, statSync } from 'node:fs'
import { join, parse, relative, resolve, sep } from 'node:path'
import { listOptional } from './optional-files.ts'

/** The intended use of a file or folder. A file for `write` may still have to be created. */
export type Use = 'read' | 'write'

/** Limit of links, as in Linux. */
const MAX_LINKS = 40

/**
 * The first folder on the way to a path, or the path itself, that this user may not use, as a clause: "/srv/a may not
 * be entered (EACCES): it belongs to root (uid 0), with mode 700, and this user is ada (uid 1000)". A folder is
 * entered and read, or entered and written.
 * @returns null when nothing is refused, also for a path that does not exist
 */
export function accessProblem(path: string, use: Use): string | null {
  return findProblemOnPath(resolve(path), use, MAX_LINKS)
}

/**
 * An error of the system as a sentence: that of {@link accessProblem} if the rights of a path are the cause, else its
 * own message.
 * @returns null for an error without a path
 */
export function systemProblem(error: unknown): string | null {
  if (!(error instanceof Error && 'syscall' in error)) return null
  const { code, path, message, syscall } = error as NodeJS.ErrnoException
  if ((code !== 'EACCES' && code !== 'EPERM') || path === undefined) return message
  return accessProblem(path, CHANGES.test(syscall ?? '') ? 'write' : 'read') ?? accessProblem(path, 'write') ?? message
}

/** An error as text for people: that of {@link systemProblem}, or its message. */
export function errorText(error: unknown): string {
  return systemProblem(error) ?? (error instanceof Error ? error.message : String(error))
}

/**
 * As {@link accessProblem}, of a data directory and the entries directly in it: a server that another user started
 * leaves files of that user.
 * @param use `write` for a user who starts a server on it
 */
export function dataDirProblem(dataDir: string, use: Use): string | null {
  const problem = accessProblem(dataDir, use)
  if (problem !== null) return problem
  for (const name of listOptional(dataDir).filter(name => OWN.test(name))) {
    const entryProblem = findProblemAt(join(dataDir, name), use === 'write' && WRITTEN.test(name) ? 'write' : 'read')
    if (entryProblem !== null) return entryProblem
  }
  return null
}

/** Names that a server creates in a data directory; others, such as lost+found, do not count. */
const OWN = /\.sqlite$|^(?:api-key|encryption-key|store|server\.json|volumes|workers|logs|caches|pump)$/
/** Names among them that each server writes to. */
const WRITTEN = /\.sqlite$|^(?:volumes|workers|logs|caches|pump)$/

const CHANGES = /^(?:mkdir|rename|unlink|rmdir|rm|chmod|link|symlink|copyfile|write|utime)/

function findProblemOnPath(path: string, use: Use, links: number): string | null {
  const { root } = parse(path)
  let at = root
  for (const name of relative(root, path).split(sep)) {
    // A file in the place of a folder is another problem.
    if (readStats(at)?.isDirectory() !== true) break
    if (!hasRight(at, constants.X_OK)) return refusal(at, 'entered')
    const next = join(at, name)
    const target = readLinkTarget(next)
    if (target !== null) {
      const whole = resolve(at, target, relative(next, path))
      return links === 0 ? null : findProblemOnPath(whole, use, links - 1)
    }
    if (readStats(next) === null)
      return use === 'write' && !hasRight(at, constants.W_OK) ? refusal(at, 'changed') : null
    at = next
  }
  return findProblemAt(path, use)
}

function findProblemAt(path: string, use: Use): string | null {
  const isFolder = readStats(path)?.isDirectory() === true
  if (isFolder && !hasRight(path, constants.X_OK)) return refusal(path, 'entered')
  if (use === 'write') return hasRight(path, constants.W_OK) ? null : refusal(path, 'changed')
  return hasRight(path, constants.R_OK) ? null : refusal(path, 'read')
}

/** Only refusals by rights count: other errors have their own messages. */
function hasRight(path: string, mode: number): boolean {
  try {
    accessSync(path, mode)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'EACCES'
  }
}

function refusal(path: string, done: 'entered' | 'read' | 'changed'): string {
  const stats = statSync(path, { throwIfNoEntry: false })
  const whose = stats === undefined ? '' : `it belongs to ${userText(stats.uid)}, with mode ${modeText(stats)}, and `
  return `${path} may not be ${done} (EACCES): ${whose}this user is ${userText(process.geteuid?.() ?? -1)}`
}

function modeText({ mode }: Stats): string {
  return (mode & 0o7777).toString(8).padStart(3, '0')
}

function userText(uid: number): string {
  const name = readUserName(uid)
  return name === null ? `uid ${uid}` : `${name} (uid ${uid})`
}

/** Null for a user that only a directory service knows. */
function readUserName(uid: number): string | null {
  try {
    const lines = readFileSync('/etc/passwd', 'utf8').split('\n')
    return lines.map(line => line.split(':')).find(fields => fields[2] === String(uid))?.[0] ?? null
  } catch {
    return null
  }
}

function readLinkTarget(path: string): string | null {
  try {
    return readStats(path)?.isSymbolicLink() === true ? readlinkSync(path) : null
  } catch {
    return null
  }
}

function readStats(path: string): Stats | null {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) ?? null
  } catch {
    return null
  }
}
