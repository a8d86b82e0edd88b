/** Packages of the folders that run in processes, and their installation. */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { keepDurably } from '../../disk/durable-file.ts'
import { ENVIRONMENTS } from '../../drivers/process/python-environment.ts'
import type { Log } from '../../system/observing/log.ts'
import { StartError } from '../start-error.ts'
import {
  readDependencies,
  requiredWorkerPackage,
  WORKER_ARCHIVE,
  WORKER_PACKAGE,
  workerPackage,
  writeArchive,
} from './worker-archive.ts'

/** A program with its arguments. */
type CommandWords = readonly string[]

/** The packages of a folder's handler, by its files. */
interface FolderPackages {
  /** The file that names them. */
  readonly file: string
  /** The folder in which they are installed, beside the note of their fingerprint. */
  readonly environment: string
  /** The commands that install them, in order. */
  readonly commands: readonly CommandWords[]
  /** Fingerprint of their source: another text means another set of packages. */
  readonly fingerprint: string
  /** The files that people write: an installation may write the lock file beside them. */
  readonly written: string
}

/**
 * The result of {@link setUpFolder}: it installed packages, they were installed already, or the folder needs no
 * packages.
 */
export type SetUp = 'installed' | 'unchanged' | 'none'

/** Beside the packages: the fingerprint of their source. */
const NOTE = 'runyard-setup'

/**
 * The packages that a folder asks for; null without any.
 * @param has returns true if a program is in the PATH
 */
function findPackages(folder: string, has: (program: string) => boolean): FolderPackages | null {
  const text = (name: string) => (existsSync(join(folder, name)) ? readFileSync(join(folder, name), 'utf8') : null)
  const python = (file: string, install: (environment: string) => CommandWords[]): FolderPackages => {
    const environment = join(folder, ENVIRONMENTS.find(name => existsSync(join(folder, name, 'bin'))) ?? '.venv')
    const make = has('uv') ? ['uv', 'venv', environment] : ['python3', '-m', 'venv', environment]
    const made = existsSync(join(environment, 'bin', 'python')) ? [] : [make]
    const fingerprint = hashTexts([file, ...PYTHON_FILES.map(name => text(name) ?? '')])
    return { file, environment, commands: [...made, ...install(environment)], fingerprint, written: fingerprint }
  }
  const pip = (environment: string, ...what: string[]): CommandWords =>
    has('uv')
      ? ['uv', 'pip', 'install', '--python', join(environment, 'bin', 'python'), ...what]
      : [join(environment, 'bin', 'python'), '-m', 'pip', 'install', '--disable-pip-version-check', ...what]
  if (text('uv.lock') !== null && has('uv')) {
    const environment = join(folder, '.venv')
    const fingerprint = hashTexts(PYTHON_FILES.map(name => text(name) ?? ''))
    const written = hashTexts([text('pyproject.toml') ?? ''])
    return { file: 'uv.lock', environment, commands: [['uv', 'sync', '--directory', folder]], fingerprint, written }
  }
  if (text('requirements.txt') !== null)
    return python('requirements.txt', environment => [pip(environment, '-r', join(folder, 'requirements.txt'))])
  // Many such files only have settings of tools.
  if (/^\[project\]/m.test(text('pyproject.toml') ?? ''))
    return python('pyproject.toml', environment => [pip(environment, folder)])
  if (/"dependencies"\s*:\s*\{\s*"/.test(text('package.json') ?? '')) {
    const locked = text('package-lock.json')
    const words = ['npm', locked === null ? 'install' : 'ci', '--prefix', folder]
    const fingerprint = hashTexts([text('package.json') ?? '', locked ?? ''])
    const written = hashTexts([text('package.json') ?? ''])
    return { file: 'package.json', environment: join(folder, 'node_modules'), commands: [words], fingerprint, written }
  }
  return null
}

const PYTHON_FILES = ['uv.lock', 'requirements.txt', 'pyproject.toml']

/**
 * Installs the packages of a folder where they are missing or were installed from other files; the output of the
 * installation goes to standard error. Without `install` a line names the missing packages, and with it a line says
 * that no file names any.
 * @throws StartError when the installation fails
 */
export async function setUpFolder(folder: string, install: boolean, log: Log): Promise<SetUp> {
  const packages = findPackages(folder, inPath)
  if (packages === null) {
    if (install) log.warn({ folder }, 'folder.no_packages')
    return 'none'
  }
  const { file, environment, commands, fingerprint } = packages
  const note = join(environment, NOTE)
  if (!install) {
    if (!existsSync(environment) && !(file === 'package.json' && hasPackagesAbove(folder)))
      log.warn({ folder, file, environment }, 'folder.not_set_up')
    return 'unchanged'
  }
  if (existsSync(note) && readFileSync(note, 'utf8') === fingerprint) return 'unchanged'
  const addedFiles = file === 'package.json' ? await giveWorkerPackage(folder, log) : []
  for (const words of commands.map(words => [...words, ...addedFiles])) {
    log.info({ folder, command: words.join(' ') }, 'folder.setting_up')
    await run(words, folder)
  }
  const after = findPackages(folder, inPath)
  // The lock file that the installation wrote names the installed packages; a list that changed during the
  // installation does not.
  keepDurably(note, after?.written === packages.written ? after.fingerprint : fingerprint)
  return 'installed'
}

/** Beside the packages, so that other tools ignore it. */
const GIVEN_ARCHIVE = 'node_modules/.runyard-worker.tgz'

/**
 * Gives the installation of a folder the worker SDK, which no registry has: the missing archive that its
 * `package.json` names; or, for a version without the address in a lock file, the package that npm installs in its
 * place.
 * @returns arguments for npm
 */
async function giveWorkerPackage(folder: string, log: Log): Promise<string[]> {
  const requirement = requiredWorkerPackage(folder)
  const isLocked = existsSync(join(folder, 'package-lock.json'))
  if (requirement === null || (requirement === 'registry' && isLocked)) return []
  if (requirement === 'archive' && existsSync(join(folder, WORKER_ARCHIVE))) return []
  const archive = await workerPackage().catch((error: Error) => {
    throw new StartError(`--setup cannot make the archive of ${WORKER_PACKAGE}: ${error.message}`)
  })
  const path = requirement === 'archive' ? WORKER_ARCHIVE : GIVEN_ARCHIVE
  writeArchive(folder, archive, path)
  log.info(
    { folder, package: `${WORKER_PACKAGE} ${archive.version}`, archive: join(folder, path) },
    'folder.package_given',
  )
  return requirement === 'archive' ? [] : ['--no-save', join(folder, path)]
}

/**
 * True when all dependencies of a folder with a package.json are in a node_modules above it, as in a workspace of npm,
 * or come from the server.
 */
function hasPackagesAbove(folder: string): boolean {
  const names = Object.keys(readDependencies(folder))
  return names.every(name => name === WORKER_PACKAGE || isAbove(folder, name))
}

function isAbove(folder: string, name: string): boolean {
  for (let path = folder; path !== dirname(path); path = dirname(path)) {
    if (existsSync(join(path, 'node_modules', name, 'package.json'))) return true
  }
  return false
}

function inPath(program: string): boolean {
  return (process.env.PATH ?? '').split(delimiter).some(entry => entry !== '' && existsSync(join(entry, program)))
}

function hashTexts(texts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(texts)).digest('hex')
}

/** Variables of the server alone, keys among them: packages run code while they are installed. */
const OWN = /^(?:RUNYARD|OTEL)_/

function setupEnvironment(): NodeJS.ProcessEnv {
  // An environment that is active in the terminal must not get the packages.
  const { VIRTUAL_ENV: _, ...env } = process.env
  return Object.fromEntries(Object.entries(env).filter(([name]) => !OWN.test(name)))
}

/** Time for which processes that a command leaves running may hold its output after its end, in ms. */
const OUTPUT_MS = 1_000

/** Runs a command, and ends it with this process. */
async function run(words: CommandWords, folder: string): Promise<void> {
  const [program = '', ...args] = words
  // Through this process where it is no terminal: what reads there may end first, and the command would end at its
  // next line.
  const output = process.stderr.isTTY === true ? 2 : 'pipe'
  const child = spawn(program, args, { cwd: folder, env: setupEnvironment(), stdio: ['ignore', output, output] })
  const outputs = [child.stdout, child.stderr].filter(stream => stream !== null)
  for (const stream of outputs) stream.on('data', (bytes: Buffer) => process.stderr.write(bytes))
  const closeOutputs = () => {
    for (const stream of outputs) stream.destroy()
  }
  child.once('exit', () => setTimeout(closeOutputs, OUTPUT_MS).unref())
  const end = () => child.kill('SIGTERM')
  process.once('exit', end)
  const problem = await new Promise<string | null>(resolve => {
    child.once('error', error => resolve(error.message))
    child.once('close', (code, signal) => resolve(code === 0 ? null : `it ended with ${signal ?? `code ${code}`}`))
  })
  process.removeListener('exit', end)
  if (problem !== null) throw new StartError(`--setup could not run "${words.join(' ')}": ${problem}`)
}
