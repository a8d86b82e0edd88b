/** Watches the folders of endpoints, so that their workers run the present files. */
import { existsSync, type FSWatcher, watch } from 'node:fs'
import { basename, join, sep } from 'node:path'
import { ENVIRONMENTS } from '../../drivers/process/python-environment.ts'
import type { Log } from '../../system/observing/log.ts'
import type { SetUp } from './folder-setup.ts'

/** Time without a change after which workers are replaced: editors write several files, some of them twice. */
const QUIET_MS = 300
/** Number of files that a line names. */
const MAX_NAMED = 5
/** Folders and files that workers make themselves, or that change with packages. */
const IGNORED = /^(?:\..*|node_modules|__pycache__|venv|env|.*\.pyc|.*~)$/

/** A watch that runs. */
interface FolderWatch {
  close(): void
}

/** Reactions to a change of a folder. Failures are logged. */
interface FolderChanges {
  /** Replaces the workers. */
  readonly restart: () => Promise<unknown>
  /** Installs the packages again; null where people do that. */
  readonly setUp: (() => Promise<SetUp>) | null
}

/** Watches a folder and all below it except packages, caches, and names that begin with a dot. */
export function watchFolder(folder: string, log: Log, { restart, setUp }: FolderChanges): FolderWatch {
  const files = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  let isSettling = false
  const replace = (changed: readonly string[]) => {
    log.info({ folder, files: changed.slice(0, MAX_NAMED).join(', ') }, 'folder.changed')
    return restart().catch((error: unknown) => log.error({ folder, problem: String(error) }, 'folder.not_restarted'))
  }
  const settle = async () => {
    const all = [...files]
    files.clear()
    const [own, others] = [[] as string[], [] as string[]]
    for (const file of all) (setUp !== null && isOwnList(folder, file) ? own : others).push(file)
    for (const file of others) reportPackages(folder, file, log)
    const code = others.filter(file => installCommand(folder, file) === null)
    const isSetUp = own.length > 0 && setUp !== null && (await setUpAgain(folder, setUp, log))
    if (code.length > 0 || isSetUp) await replace(isSetUp ? [...own, ...code] : code)
  }
  // One after the other: an installation takes longer than people need to save a file again.
  const settleInTurn = async () => {
    if (isSettling) return
    isSettling = true
    try {
      while (files.size > 0) await settle()
    } finally {
      isSettling = false
    }
  }
  const watcher: FSWatcher = watch(folder, { recursive: true, ignore: isIgnored }, (_event, file) => {
    if (file === null || isIgnored(file)) return
    files.add(file)
    clearTimeout(timer)
    timer = setTimeout(settleInTurn, QUIET_MS)
  })
  watcher.on('error', error => log.error({ folder, problem: error.message }, 'folder.unwatched'))
  return {
    close() {
      clearTimeout(timer)
      watcher.close()
    },
  }
}

function isIgnored(path: string): boolean {
  return path.split(sep).some(name => IGNORED.test(name))
}

/** True for a file that lists the packages of the folder itself, as {@link SetUp} reads it. */
function isOwnList(folder: string, file: string): boolean {
  return basename(file) === file && installCommand(folder, file) !== null
}

/** True if the workers must be replaced; after a failed installation the present ones continue. */
async function setUpAgain(folder: string, setUp: () => Promise<SetUp>, log: Log): Promise<boolean> {
  try {
    return (await setUp()) !== 'unchanged'
  } catch (error) {
    log.error({ folder, problem: error instanceof Error ? error.message : String(error) }, 'folder.setup_failed')
    return false
  }
}

function reportPackages(folder: string, file: string, log: Log): void {
  const run = installCommand(folder, file)
  if (run !== null) log.warn({ folder, file, run: `${run}, then runyard endpoints restart` }, 'folder.packages_changed')
}

/** The command that installs the packages of a file; null for other files. */
function installCommand(folder: string, file: string): string | null {
  switch (basename(file)) {
    case 'requirements.txt': {
      const environment = ENVIRONMENTS.find(name => existsSync(join(folder, name))) ?? '.venv'
      return `${join(folder, environment, 'bin', 'pip')} install -r ${join(folder, file)}`
    }
    case 'uv.lock':
    case 'pyproject.toml':
      return `uv sync --directory ${folder}`
    case 'package.json':
    case 'package-lock.json':
      return `npm install --prefix ${folder}`
    default:
      return null
  }
}
