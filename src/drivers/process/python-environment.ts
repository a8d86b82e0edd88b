/** Finds the Python of a folder's handler: the environment that people have made for the folder. */
import { readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { WorkerStartError } from '../../core/workers/start-failure.ts'
import { accessRefusal, exists, isProgram } from './program-files.ts'

/** Folders of environments inside a folder: those of venv and uv, and those of conda (`conda create --prefix`). */
export const ENVIRONMENTS = ['.venv', 'venv', 'env', '.conda'] as const

/** Files that make a folder an environment, of venv and uv, and of conda. */
const MARKS = ['pyvenv.cfg', 'conda-meta']

/** Files that name an environment of conda. */
const CONDA_FILES = ['environment.yml', 'environment.yaml']

/** Limit of the characters of conda's lists that are read. */
const MAX_LIST = 1_000_000

/**
 * The folder of the programs of a folder's own Python; null when it has no environment. Without one in the folder,
 * that is the environment of conda which `environment.yml` names, where this machine has it.
 * @param home the home of the person who runs the server, where conda lists its environments
 * @throws WorkerStartError for an environment whose Python does not run, since another one would lack its packages
 */
export async function findPython(folder: string, home: string | undefined): Promise<string | null> {
  const environments = await Promise.all(ENVIRONMENTS.map(name => environmentAt(join(folder, name))))
  for (const environment of environments) {
    if (environment === null) continue
    if (environment.programs !== null) return environment.programs
    const python = join(environment.path, 'bin', 'python')
    throw (
      accessRefusal(python) ??
      new WorkerStartError({ kind: 'python_environment_broken', environment: environment.path })
    )
  }
  return home === undefined ? null : namedByConda(folder, home)
}

/** Null where there is no environment; without programs where its Python does not run. */
async function environmentAt(path: string): Promise<{ path: string; programs: string | null } | null> {
  const programs = join(path, 'bin')
  const [runs = false, ...marks] = await Promise.all([
    isProgram(join(programs, 'python')),
    ...MARKS.map(mark => exists(join(path, mark))),
  ])
  // A folder named env may be anything; a closed one counts as an environment only by another name.
  const isSure = basename(path) !== 'env'
  const isEnvironment = marks.includes(true) || (isSure && (runs || accessRefusal(programs) !== null))
  return isEnvironment ? { path, programs: runs ? programs : null } : null
}

async function namedByConda(folder: string, home: string): Promise<string | null> {
  const files = await Promise.all(CONDA_FILES.map(name => readText(join(folder, name))))
  const text = files.find(file => file !== null)
  const [, name] = /^name:\s*["']?([\w.-]+)/m.exec(text ?? '') ?? []
  if (name === undefined) return null
  const list = (await readText(join(home, '.conda', 'environments.txt'))) ?? ''
  for (const path of list.split('\n').filter(line => basename(line.trim()) === name)) {
    const programs = join(path.trim(), 'bin')
    if (await isProgram(join(programs, 'python'))) return programs
  }
  return null
}

async function readText(path: string): Promise<string | null> {
  const text = await readFile(path, 'utf8').catch(() => null)
  return text === null ? null : text.slice(0, MAX_LIST)
}
