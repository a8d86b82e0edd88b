/** Interpreters of Python on this machine, by version: in the PATH, and those of uv and pyenv. */
import { execFile } from 'node:child_process'
import { readdir } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { RUNTIME_PYTHONS } from '../../core/endpoints/runtime-image.ts'
import type { Clock } from '../../ports/clock.ts'
import type { HostEnvironment } from '../base/host-environment.ts'
import { isProgram } from './program-files.ts'

/** Time for which a result is trusted; a person may install an interpreter while the server runs. */
const FRESH_MS = 60_000
/** A shim of a version that is not installed may download it, which nothing waits for. */
const TRIAL_MS = 10_000

const PRINT_VERSION = 'import sys; print("%d.%d" % sys.version_info[:2])'

/** Finds interpreters. A result is cached for a minute. */
export class PythonInterpreters {
  readonly #hostEnv
  readonly #clock
  readonly #cached = new Map<string, { readonly path: Promise<string | null>; readonly readMs: number }>()

  constructor(hostEnv: HostEnvironment, clock: Clock) {
    this.#hostEnv = hostEnv
    this.#clock = clock
  }

  /** The path of an interpreter of exactly this version, such as `3.11`; null without one. */
  find(version: string): Promise<string | null> {
    const cached = this.#cached.get(version)
    const nowMs = this.#clock.monotonic()
    if (cached !== undefined && nowMs - cached.readMs < FRESH_MS) return cached.path
    const path = this.#search(version)
    this.#cached.set(version, { path, readMs: nowMs })
    return path
  }

  /** The versions for which {@link find} has an interpreter, oldest first. */
  async versions(): Promise<string[]> {
    const paths = await Promise.all(RUNTIME_PYTHONS.map(version => this.find(version)))
    return RUNTIME_PYTHONS.filter((_, index) => paths[index] !== null)
  }

  async #search(version: string): Promise<string | null> {
    const name = `python${version}`
    for (const folder of await this.#folders(version)) {
      const path = join(folder, name)
      if ((await isProgram(path)) && (await readVersion(path)) === version) return path
    }
    return null
  }

  /** Folders of programs, the most probable first. */
  async #folders(version: string): Promise<string[]> {
    const { PATH = '', HOME = '', XDG_DATA_HOME, UV_PYTHON_INSTALL_DIR, PYENV_ROOT } = this.#hostEnv
    const ofUv = UV_PYTHON_INSTALL_DIR || join(XDG_DATA_HOME || join(HOME, '.local/share'), 'uv/python')
    const ofPyenv = join(PYENV_ROOT || join(HOME, '.pyenv'), 'versions')
    const installed = await Promise.all([
      installations(ofUv, `cpython-${version}.`),
      installations(ofPyenv, `${version}.`),
    ])
    const inPath = PATH.split(delimiter).filter(folder => folder.startsWith('/'))
    return [...inPath, join(HOME, '.local/bin'), ...installed.flat()]
  }
}

/** The folders of programs of installations whose names begin like this, the newest first. */
async function installations(folder: string, beginning: string): Promise<string[]> {
  const names = (await readdir(folder).catch(() => [])).filter(name => name.startsWith(beginning))
  const newestFirst = names.sort((a, b) => b.localeCompare(a, 'en', { numeric: true }))
  return newestFirst.map(name => join(folder, name, 'bin'))
}

async function readVersion(path: string): Promise<string | null> {
  try {
    // Without a site, nothing of the user runs.
    const { stdout } = await promisify(execFile)(path, ['-I', '-S', '-c', PRINT_VERSION], { timeout: TRIAL_MS })
    return stdout.trim()
  } catch {
    return null
  }
}
