import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { Command } from 'commander'
import { shellWord } from '../../core/shell-word.ts'
import { packageFile } from '../../disk/package-files.ts'
import { CliError, EXIT } from '../exit.ts'
import { printText } from '../terminal/terminal-text.ts'

interface InitOptions {
  readonly python?: boolean
  readonly lb?: boolean
}

/** The content of a new folder. */
interface Starter {
  /** Its folder below `examples/starters`. */
  readonly folder: string
  readonly what: string
  /** The next commands for the path of the new folder, each with its effect. */
  readonly next: (path: string) => readonly (readonly [command: string, purpose: string])[]
  /** True where it imports `@runyard/worker`. */
  readonly usesWorkerPackage: boolean
}

const ADDED = ' --watch replaces workers after each change'

const STARTERS = {
  typescript: {
    folder: 'typescript',
    what: 'a handler in TypeScript',
    next: path => [
      [`runyard test ${path}`, 'runs its tests'],
      [`runyard serve --worker ${path}`, `serves it;${ADDED}`],
    ],
    usesWorkerPackage: true,
  },
  python: {
    folder: 'python',
    what: 'a handler in Python',
    next: path => [
      [`runyard serve --worker ${path} --setup`, `installs its packages and serves it;${ADDED}`],
      [`runyard test ${path}`, 'runs its tests, once they are installed'],
    ],
    usesWorkerPackage: false,
  },
  'typescript-server': {
    folder: 'typescript-server',
    what: 'a server in TypeScript',
    next: path => [[`runyard serve --lb ${path}`, `serves it;${ADDED}`]],
    usesWorkerPackage: false,
  },
  'python-server': {
    folder: 'python-server',
    what: 'a server in Python',
    next: path => [[`runyard serve --lb ${path} --setup`, `installs its packages and serves it;${ADDED}`]],
    usesWorkerPackage: false,
  },
} as const satisfies Record<string, Starter>

/** The placeholder for the name of the folder in the files of a starter. */
const NAME = 'my-worker'

/** `runyard init <folder>`: makes a folder to start from. */
export function addInit(program: Command): void {
  program
    .command('init')
    .argument('<folder>', 'a new folder, or an empty one; its name is that of the endpoint')
    .option('--python', "a handler for RunPod's Python SDK instead of one in TypeScript")
    .option('--lb', 'a server for a load-balancing endpoint instead of a handler')
    .summary('make a folder to start from')
    .description('make a folder with a handler or a server to start from: code, types, tests, Dockerfile')
    .addHelpText('after', EXAMPLES)
    .action(init)
}

const EXAMPLES = `
Examples:
  runyard init my-model              a handler in TypeScript, with its package
  runyard init my-model --python     a handler for RunPod's SDK
  runyard init my-api --lb           a server in TypeScript, with node:http
  runyard init my-api --python --lb  a server in Python, with FastAPI

Nothing is downloaded: what is made in TypeScript runs as it is, what is made
in Python needs the packages that \`runyard serve --setup\` installs.`

async function init(folder: string, { python = false, lb = false }: InitOptions): Promise<void> {
  const path = resolve(folder)
  assertEmpty(folder, path)
  const starter: Starter = STARTERS[`${python ? 'python' : 'typescript'}${lb ? '-server' : ''}`]
  try {
    await make(starter, path)
  } catch (thrown) {
    throw new CliError(`cannot make ${folder}: ${(thrown as Error).message}`, EXIT.output)
  }
  const next = starter.next(shellWord(folder))
  const width = Math.max(...next.map(([command]) => command.length))
  const lines = next.map(([command, purpose]) => `  ${command.padEnd(width)}  ${purpose}\n`)
  printText(`Made ${folder}: ${starter.what}. Its README.md describes the files.\n\n${lines.join('')}`)
}

/** Writes a folder beside it first, so that the new folder is complete or does not exist. */
async function make(starter: Starter, path: string): Promise<void> {
  const draftFolder = `${path}.new-${process.pid}`
  mkdirSync(dirname(path), { recursive: true })
  mkdirSync(draftFolder)
  try {
    writeStarter(starter, basename(path), draftFolder)
    if (starter.usesWorkerPackage) await addWorkerPackage(draftFolder)
    moveInto(draftFolder, path)
  } finally {
    rmSync(draftFolder, { recursive: true, force: true })
  }
}

/** @throws CliError where the path has files that would be lost or mixed with the new ones */
function assertEmpty(folder: string, path: string): void {
  const stat = statSync(path, { throwIfNoEntry: false })
  if (stat === undefined) return
  if (!stat.isDirectory()) throw new CliError(`${folder} is a file; name a folder that does not exist`, EXIT.usage)
  if (readdirSync(path).some(name => name !== '.git'))
    throw new CliError(`${folder} is not empty; name a folder that is, or that does not exist`, EXIT.usage)
}

function writeStarter({ folder }: Starter, name: string, to: string): void {
  const from = packageFile(join('examples/starters', folder))
  cpSync(from, to, { recursive: true })
  // npm leaves files of this name out of packages.
  renameSync(join(to, 'gitignore'), join(to, '.gitignore'))
  const packageName = name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
  for (const [file, text] of [
    ['README.md', name],
    ['package.json', packageName],
  ] as const) {
    const place = join(to, file)
    if (text === '' || statSync(place, { throwIfNoEntry: false }) === undefined) continue
    writeFileSync(
      place,
      readFileSync(place, 'utf8').replace(NAME, () => text),
    )
  }
}

/** The package as an archive for `npm install`, and installed already. */
async function addWorkerPackage(folder: string): Promise<void> {
  const { WORKER_PACKAGE, workerPackage, writeArchive } = await import('../../main/folders/worker-archive.ts')
  const archive = await workerPackage()
  writeArchive(folder, archive)
  const installed = join(folder, 'node_modules', WORKER_PACKAGE)
  for (const name of archive.files) cpSync(join(archive.folder, name), join(installed, name), { recursive: true })
  writeFileSync(join(installed, 'package.json'), archive.manifest)
}

/** An existing empty folder may be the current folder of the terminal. */
function moveInto(draftFolder: string, path: string): void {
  if (statSync(path, { throwIfNoEntry: false }) === undefined) {
    renameSync(draftFolder, path)
    return
  }
  for (const name of readdirSync(draftFolder)) renameSync(join(draftFolder, name), join(path, name))
}
