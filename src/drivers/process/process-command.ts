/** The command of a `dir:` image and its args: a folder of this machine and a program with its arguments. */
import type { ChildProcess } from 'node:child_process'
import { constants } from 'node:fs'
import { access, realpath, stat } from 'node:fs/promises'
import { delimiter, join, resolve } from 'node:path'
import { argsInvalid, parseArgs, splitCommandLine } from '../../core/workers/command-line.ts'
import { type OtherFile, WorkerStartError } from '../../core/workers/start-failure.ts'
import { contains } from '../base/worker-paths.ts'
import { accessRefusal, exists, isProgram } from './program-files.ts'
import { findPython } from './python-environment.ts'

const SCHEME = 'dir:'

/** Folders of the workers' programs, and the Node that runs handlers written for it. */
export interface CommandSources {
  /** Absolute paths. Relative ones in images are below the first. */
  readonly roots: readonly string[]
  readonly nodePath: string
  /** The environment of the server. */
  readonly hostEnv: Readonly<Record<string, string | undefined>>
}

/** A command before its program is found. */
export interface Command {
  /** The folder's real path. */
  readonly folder: string
  /** At least one word. */
  readonly words: readonly string[]
  /** The folder of the programs of the image's own Python; null when it has none. */
  readonly pythonFolder: string | null
}

/** The calls of a worker: it takes jobs, or serves requests; `either` where that is unknown. */
export type Purpose = 'jobs' | 'requests' | 'either'

/**
 * The command of an image.
 * @throws WorkerStartError with the reason why it cannot be one
 */
export async function resolveCommand(
  image: string,
  args: string,
  sources: CommandSources,
  purpose: Purpose,
): Promise<Command> {
  if (!image.startsWith(SCHEME)) throw new WorkerStartError({ kind: 'engine_not_configured', image })
  const argWords = parseArgs(args)
  const folder = await resolveFolder(image.slice(SCHEME.length), sources.roots)
  const words = await splitSingle(argWords, folder)
  // All at once: a caller waits for each read of the disk.
  const [pythonFolder, file] = await Promise.all([
    findPython(folder, sources.hostEnv.HOME),
    findFile(folder, FILES[purpose]),
  ])
  if (words.length > 0 && words[0] === '') throw argsInvalid('args begins with an empty word')
  if (words.length > 0) return { folder, words, pythonFolder }
  if (file === null)
    throw (
      accessRefusal(folder) ??
      new WorkerStartError({
        kind: 'handler_missing',
        folder,
        files: FILES[purpose],
        other: await findOther(folder, purpose),
      })
    )
  const refusal = await access(join(folder, file), constants.R_OK).then(
    () => null,
    () => accessRefusal(join(folder, file)),
  )
  if (refusal !== null) throw refusal
  return { folder, words: fileCommand(join(folder, file), pythonFolder, sources.nodePath), pythonFolder }
}

/**
 * A single word with blanks that names no program is a whole command line, which clients send as a list of one text.
 */
async function splitSingle(words: readonly string[], folder: string): Promise<readonly string[]> {
  const [word = ''] = words
  if (words.length !== 1 || !/\S\s+\S/.test(word) || (await exists(resolve(folder, word)))) return words
  return splitCommandLine(word)
}

/**
 * An image with the absolute path of its folder; one that names none stays as it is.
 * @param roots a relative path is below the first
 */
export function absoluteImage(image: string, [first]: readonly string[]): string {
  const path = image.slice(SCHEME.length)
  if (!image.startsWith(SCHEME) || first === undefined || path === '' || path.includes('\0')) return image
  return `${SCHEME}${resolve(first, path)}`
}

async function resolveFolder(path: string, roots: readonly string[]): Promise<string> {
  const [first] = roots
  if (first === undefined) throw new WorkerStartError({ kind: 'process_root_missing', image: `${SCHEME}${path}` })
  if (path === '' || path.includes('\0')) throw new WorkerStartError({ kind: 'folder_unnamed' })
  const folder = resolve(first, path)
  const [real = null, ...realRoots] = await Promise.all([folder, ...roots].map(readRealPath))
  if (real === null) throw accessRefusal(folder) ?? new WorkerStartError({ kind: 'folder_missing', folder })
  if (!realRoots.some(root => root !== null && contains(root, real))) {
    const closed = roots.filter((_, index) => realRoots[index] === null).map(accessRefusal)
    for (const refusal of closed) if (refusal !== null) throw refusal
    throw new WorkerStartError({ kind: 'folder_outside', folder, real: real === folder ? null : real, roots })
  }
  if (!(await stat(real)).isDirectory()) throw new WorkerStartError({ kind: 'folder_not_a_folder', path: folder })
  return real
}

async function readRealPath(path: string): Promise<string | null> {
  try {
    return await realpath(path)
  } catch {
    return null
  }
}

const HANDLERS = ['handler.py', 'handler.ts', 'handler.mjs', 'handler.js', 'rp_handler.py']
const SERVERS = ['server.py', 'server.ts', 'server.mjs', 'server.js', 'app.py', 'main.py']
/** Folders of these files. */
const FOLDERS = ['', 'src']
const FILES: Readonly<Record<Purpose, readonly string[]>> = {
  jobs: HANDLERS,
  requests: SERVERS,
  either: [...HANDLERS, ...SERVERS],
}

/** A file of the folder for the other type of endpoint; null where there is none, or the type is not known. */
async function findOther(folder: string, purpose: Purpose): Promise<OtherFile | null> {
  if (purpose === 'either') return null
  const otherPurpose = purpose === 'jobs' ? 'requests' : 'jobs'
  const name = await findFile(folder, FILES[otherPurpose])
  return name === null ? null : { name, of: otherPurpose }
}

async function findFile(folder: string, names: readonly string[]): Promise<string | null> {
  const paths = FOLDERS.flatMap(below => names.map(name => join(below, name)))
  const exist = await Promise.all(paths.map(path => exists(join(folder, path))))
  return paths.find((_, index) => exist[index]) ?? null
}

/** The whole path, so that the program finds what is beside it wherever it starts. */
function fileCommand(file: string, pythonFolder: string | null, nodePath: string): string[] {
  if (!file.endsWith('.py')) return [nodePath, file]
  return [pythonFolder === null ? 'python3' : join(pythonFolder, 'python'), file]
}

/**
 * The path of a command's program.
 * @param path the PATH of the worker, whose relative entries are below its folder
 * @throws WorkerStartError when there is no such program
 */
export async function findProgram(command: Command, path: string): Promise<string> {
  const name = command.words[0] as string
  if (name.includes('/')) {
    const program = resolve(command.folder, name)
    if (await isProgram(program)) return program
    const refusal = accessRefusal(program)
    if (refusal !== null) throw refusal
    const kind = (await exists(program)) ? 'program_not_executable' : 'program_missing'
    throw new WorkerStartError({ kind, name, path: program })
  }
  for (const entry of path.split(delimiter)) {
    const program = resolve(command.folder, entry, name)
    if (await isProgram(program)) return program
  }
  // A person who writes shell syntax most often sees its first word fail.
  const looksLikeShell = command.words.some(word => /^(?:&&|\|\|?|[<>;]|.*;)$/.test(word))
  throw new WorkerStartError({ kind: 'program_not_in_path', name, path, looksLikeShell })
}

/** The reason why a program that exists could not be started. */
export function spawnFailure(name: string, child: ChildProcess): Promise<WorkerStartError> {
  return new Promise(resolve => {
    child.on('error', (cause: NodeJS.ErrnoException) => {
      resolve(new WorkerStartError({ kind: 'program_refused', name, code: cause.code ?? 'unknown problem' }, { cause }))
    })
  })
}
