/** Watches the folders of endpoints, so that their workers run what their files say now. */
import { existsSync, type FSWatcher, watch } from 'node:fs'
import { basename, join, sep } from 'node:path'
import { ENVIRONMENTS } from '../drivers/process/python-environment.ts'
import type { createLog } from '../system/observing/log.ts'

/** Time without a change after which workers are replaced: editors write several files, some of them twice. */
const QUIET_MS = 300
/** Number of files that a line names. */
const MAX_NAMED = 5
/** Folders and files that workers make themselves, or that change with packages. */
const IGNORED = /^(?:\..*|node_modules|__pycache__|venv|env|.*\.pyc|.*~)$/

type Log = ReturnType<typeof createLog>

/** A watch that runs. */
export interface FolderWatch {
  close(): void
}

/**
 * Watches a folder and what is below it, but for what names with a dot, packages and caches have.
 * @param changed replaces the workers; its failure is logged
 */
export function watchFolder(folder: string, log: Log, changed: () => Promise<unknown>): FolderWatch {
  const files = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  const settle = () => {
    const all = [...files]
    files.clear()
    for (const file of all) tellPackages(folder, file, log)
    const code = all.filter(file => packagesOf(folder, file) === null)
    if (code.length === 0) return
    log.info({ folder, files: code.slice(0, MAX_NAMED).join(', ') }, 'folder.changed')
    changed().catch((error: unknown) => log.error({ folder, problem: String(error) }, 'folder.not_restarted'))
  }
  const watcher: FSWatcher = watch(folder, { recursive: true, ignore: isIgnored }, (_event, file) => {
    if (file === null || isIgnored(file)) return
    files.add(file)
    clearTimeout(timer)
    timer = setTimeout(settle, QUIET_MS)
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

function tellPackages(folder: string, file: string, log: Log): void {
  const run = packagesOf(folder, file)
  if (run !== null) log.warn({ folder, file, run: `${run}, then runyard endpoints restart` }, 'folder.packages_changed')
}

/** What installs the packages that a file names; null for other files. */
function packagesOf(folder: string, file: string): string | null {
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
