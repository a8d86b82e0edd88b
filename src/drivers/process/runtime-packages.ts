/**
 * Environments of Python with RunPod's SDK 2.0, for workers whose source comes with each call. A deployed worker needs
 * none: its build contains the SDK.
 */
import { execFile, spawn } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { WorkerStartError } from '../../core/workers/start-failure.ts'
import { ensureFolder, keepDurably } from '../../disk/durable-file.ts'
import type { HostEnvironment } from '../base/host-environment.ts'
import { exists } from './program-files.ts'

/** Packages that a live worker imports; the server of APIs is among those that the SDK itself needs. */
const PACKAGES = ['runpod>=2.0.0rc2', 'cloudpickle', 'fastapi', 'uvicorn']

/** Fails if a package is missing, or the SDK is older. It imports nothing, which would take long. */
const HAS_PACKAGES = [
  'import importlib.util as util, os, sys',
  'sdk = util.find_spec("runpod")',
  'has_apps = sdk is not None and os.path.isdir(os.path.join(os.path.dirname(sdk.origin), "apps"))',
  'sys.exit(not has_apps or any(util.find_spec(name) is None for name in ["cloudpickle", "fastapi", "uvicorn"]))',
].join('\n')

/** In an environment that is whole. */
const MARK = 'runyard-complete'
const TRIAL_MS = 20_000
const INSTALL_MS = 900_000
/** End of the output of an installation that a failure quotes. */
const MAX_SAID = 600
/** Variables of the server that an installation reads: its program, its network, and its settings. */
const INHERITED = /^(?:PATH|HOME|TMPDIR|LANG|LC_\w+|PIP_\w+|UV_\w+|SSL_CERT_\w+|REQUESTS_CA_BUNDLE|\w+_PROXY|XDG_\w+)$/i

/** Makes the environments, each once. */
export class RuntimePackages {
  readonly #folder
  readonly #hostEnv
  /** The Python with the packages, by interpreter. */
  readonly #pythons = new Map<string, Promise<string>>()

  /** @param folder the folder of the environments */
  constructor(folder: string, hostEnv: HostEnvironment) {
    this.#folder = folder
    this.#hostEnv = hostEnv
  }

  /**
   * A Python of a version with the packages: the interpreter itself where it has them, else that of an environment.
   * @param installing called before an environment is made, which takes about half a minute
   * @throws WorkerStartError with the end of the output of an installation that failed
   */
  pythonFor(version: string, interpreter: string, installing: () => void): Promise<string> {
    const known = this.#pythons.get(interpreter)
    if (known !== undefined) return known
    const python = this.#provide(version, interpreter, installing)
    this.#pythons.set(interpreter, python)
    python.catch(() => this.#pythons.delete(interpreter))
    return python
  }

  async #provide(version: string, interpreter: string, installing: () => void): Promise<string> {
    if (await hasPackages(interpreter)) return interpreter
    const environment = join(this.#folder, `python${version}`)
    const python = join(environment, 'bin/python')
    if ((await exists(join(environment, MARK))) && (await hasPackages(python))) return python
    installing()
    // The rest of an installation that was broken off.
    await rm(environment, { recursive: true, force: true, maxRetries: 5 })
    ensureFolder(this.#folder)
    await this.#run(version, [interpreter, '-m', 'venv', environment])
    await this.#run(version, [python, '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...PACKAGES])
    keepDurably(join(environment, MARK), '')
    return python
  }

  #run(version: string, [program = '', ...words]: readonly string[]): Promise<void> {
    const env = Object.fromEntries(Object.entries(this.#hostEnv).filter(([name]) => INHERITED.test(name)))
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const child = spawn(program, words, { env, stdio: ['ignore', 'pipe', 'pipe'], timeout: INSTALL_MS })
    let said = ''
    const keep = (part: Buffer) => {
      said = (said + part.toString()).slice(-MAX_SAID)
    }
    child.stdout.on('data', keep)
    child.stderr.on('data', keep)
    const fail = (reason: string) =>
      reject(new WorkerStartError({ kind: 'sdk_not_installed', python: version, said: reason.trim() }))
    child.on('error', error => fail(error.message))
    child.on('close', code => (code === 0 ? resolve() : fail(said === '' ? `exit code ${code}` : said)))
    return promise
  }
}

async function hasPackages(python: string): Promise<boolean> {
  // Without packages of the user and of the present folder, which a worker does not see.
  return promisify(execFile)(python, ['-I', '-c', HAS_PACKAGES], { timeout: TRIAL_MS, env: {} }).then(
    () => true,
    () => false,
  )
}
