/** The command of a worker of RunPod's SDK 2.0, whose image names a version of Python and no program (ADR 117). */
import { delimiter, join } from 'node:path'
import { placedMounts } from '../../core/endpoints/mounts.ts'
import { runsApp, runtimeImage } from '../../core/endpoints/runtime-image.ts'
import { type StartFailure, WorkerStartError } from '../../core/workers/start-failure.ts'
import type { Clock } from '../../ports/clock.ts'
import type { StartWatch, WorkerSpec } from '../../ports/driver.ts'
import type { HostEnvironment } from '../base/host-environment.ts'
import { isCompiled } from './build-compiler.ts'
import type { Command } from './process-command.ts'
import { PythonInterpreters } from './python-interpreters.ts'
import { RuntimePackages } from './runtime-packages.ts'

const BOOTSTRAP = ['-m', 'runpod_sdk_runtime.bootstrap']
/** The program of a task, which needs no preparation. */
const TASK = ['-m', 'runpod_sdk_runtime.task.runner']
/** The folder of a build with its packages. */
const PACKAGES = 'env'
/** Says to the runtime that it may install nothing on the machine. */
const ON_MACHINE = 'RUNYARD_PROCESS_WORKER'

/** Folders of the runtime, and of environments for live workers. */
export interface RuntimeFolders {
  /** The folder of the Python package of the runtime. */
  readonly runtime: string
  readonly environments: string
  /** The file of the certificates that workers trust; left out where they need none. */
  readonly trustFile?: string
}

/** Options of {@link RuntimeCommands}. */
interface RuntimeOptions {
  readonly runtime: RuntimeFolders | null
  readonly hostEnv: HostEnvironment
  readonly clock: Clock
}

/** Parts that the runtime needs of a worker, whatever starts it. */
export interface RuntimeParts {
  /** Folders and files besides its own folder that it reads. */
  readonly readable: readonly string[]
  /**
   * Variables that win over those of its user.
   * @param cache the cache of its endpoint
   */
  readonly variables: (cache: string) => Readonly<Record<string, string>>
}

/** The command of a worker. */
export interface RuntimeCommand extends RuntimeParts {
  readonly command: Command
  /** True for a worker without a build: its folder is its own, and empty. */
  readonly isLive: boolean
}

/** Makes the commands of workers of the SDK. */
export class RuntimeCommands {
  readonly #folders
  readonly #interpreters
  readonly #packages

  /** @param options `runtime` is null to run no such worker */
  constructor({ runtime, hostEnv, clock }: RuntimeOptions) {
    this.#folders = runtime
    this.#interpreters = new PythonInterpreters(hostEnv, clock)
    this.#packages = new RuntimePackages(runtime?.environments ?? '', hostEnv)
  }

  /** True for an image of the SDK, where its workers run here. */
  runs(image: string): boolean {
    return this.#folders !== null && runtimeImage(image) !== null
  }

  /** The reason why no worker of this image can be started; null when one can, and for any other image. */
  async check(image: string): Promise<StartFailure | null> {
    const runtime = runtimeImage(image)
    if (runtime === null || (await this.#interpreters.find(runtime.python)) !== null) return null
    return { kind: 'python_missing', python: runtime.python, found: await this.#interpreters.versions() }
  }

  /**
   * The command of a worker; null for an image that is none of the SDK.
   * @param ownFolder a path for the folder of a worker without a build, which the caller makes
   * @param watch packages are installed as an image is downloaded; that takes about half a minute
   * @throws WorkerStartError when the machine lacks the Python, or packages could not be installed
   */
  async commandFor(spec: WorkerSpec, ownFolder: string, watch?: StartWatch): Promise<RuntimeCommand | null> {
    const image = runtimeImage(spec.image)
    if (this.#folders === null || image === null) return null
    const { runtime } = this.#folders
    const refusal = await this.check(spec.image)
    if (refusal !== null) throw new WorkerStartError(refusal)
    const interpreter = (await this.#interpreters.find(image.python))!
    const build = spec.build ?? null
    const python = build === null ? await this.#livePython(image.python, interpreter, watch) : interpreter
    const folder = build?.folder ?? ownFolder
    const compiled = await compiledVariables(spec, folder)
    const mounts = mountsOf(spec)
    return {
      command: { folder, words: [python, ...(image.kind === 'task' ? TASK : BOOTSTRAP)], pythonFolder: null },
      isLive: build === null,
      readable: this.#readable(),
      variables: cache => ({
        RUNPOD_RUNTIME_KIND: image.kind,
        RUNPOD_APP_DIR: folder,
        ...(build !== null && { RUNPOD_PREBUILT_APP_DIR: folder, ...compiled(cache) }),
        ...(mounts !== null && { RUNPOD_MOUNTS: mounts }),
        PYTHONPATH: searchPath([runtime, spec.env.PYTHONPATH]),
        [ON_MACHINE]: '1',
      }),
    }
  }

  /**
   * Parts for a worker of an app in a folder of its user: the launcher of the SDK in its args finds the runtime and
   * the SDK there, and installs nothing.
   * @returns null for a worker of no app, and for the images of the SDK
   */
  async partsFor(spec: WorkerSpec): Promise<RuntimeParts | null> {
    if (this.#folders === null || runtimeImage(spec.image) !== null || !runsApp(spec.image, spec.env)) return null
    const { runtime } = this.#folders
    const build = spec.build?.folder ?? null
    const compiled = build === null ? () => ({}) : await compiledVariables(spec, build)
    const mounts = mountsOf(spec)
    const packages = build === null ? undefined : join(build, PACKAGES)
    return {
      readable: [...this.#readable(), ...(build === null ? [] : [build])],
      variables: cache => ({
        ...(build !== null && { RUNPOD_PREBUILT_APP_DIR: build, ...compiled(cache) }),
        ...(mounts !== null && { RUNPOD_MOUNTS: mounts }),
        PYTHONPATH: searchPath([runtime, packages, spec.env.PYTHONPATH]),
        [ON_MACHINE]: '1',
      }),
    }
  }

  #readable(): string[] {
    const { runtime, trustFile } = this.#folders!
    return [runtime, ...(trustFile === undefined ? [] : [trustFile])]
  }

  async #livePython(version: string, interpreter: string, watch?: StartWatch): Promise<string> {
    let isInstalling = false
    const python = await this.#packages.pythonFor(version, interpreter, () => {
      isInstalling = true
      watch?.pulling(null)
    })
    if (isInstalling) watch?.pulled()
    return python
  }
}

function pathById({ id, path }: { readonly id: string; readonly path: string }): [string, string] {
  return [id, path]
}

/** The mounts of the SDK at the paths of this machine; null where no volume is mounted. */
function mountsOf({ volume, mounts = [], env }: WorkerSpec): string | null {
  const folders = new Map([...(volume === null ? [] : [volume]), ...mounts].map(pathById))
  return folders.size === 0 ? null : placedMounts(env.RUNPOD_MOUNTS, id => folders.get(id))
}

function searchPath(paths: readonly (string | undefined)[]): string {
  return paths.filter(path => path !== undefined).join(delimiter)
}

/** Nothing is written into a build. Of one that is not compiled, later workers of the endpoint start faster. */
async function compiledVariables(
  { env }: WorkerSpec,
  build: string,
): Promise<(cache: string) => Readonly<Record<string, string>>> {
  const { PYTHONPYCACHEPREFIX: prefix } = env
  if (prefix === undefined && (await isCompiled(build))) return () => ({ PYTHONDONTWRITEBYTECODE: '1' })
  return cache => ({ PYTHONPYCACHEPREFIX: prefix ?? join(cache, 'pycache') })
}
