import { buildIdFromEnv } from '../../core/apps/build.ts'
import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import { MOUNTS, mountsOf, VOLUME_PATH } from '../../core/endpoints/mounts.ts'
import type { ReleasedTemplate } from '../../core/endpoints/release.ts'
import { APP_KEY, isLiveWorker, runsApp } from '../../core/endpoints/runtime-image.ts'
import { savedEnv } from '../../core/endpoints/saved-env.ts'
import { type Serving, servingProblem, servingWithSecrets } from '../../core/endpoints/serving.ts'
import { givesWorkerKey } from '../../core/endpoints/worker-key.ts'
import { AppError } from '../../core/errors.ts'
import type { BuildId, OwnerId, RegistryId, VolumeId } from '../../core/ids.ts'
import { secretPlace } from '../../core/secrets/seals.ts'
import { resolveSecrets, secretNames } from '../../core/secrets/secret.ts'
import { isFolderReserved } from '../../core/workers/host-folder.ts'
import { type StartFailure, WorkerStartError } from '../../core/workers/start-failure.ts'
import type { AppBuild, RegistryCredential, VolumeMount } from '../../ports/driver.ts'
import type { Ports } from '../../ports/ports.ts'
import type { AppBuilds } from '../apps/app-builds.ts'
import { isOnMachine } from '../endpoints/host-folders.ts'
import { imageRefusal } from '../endpoints/image-access.ts'
import { resolvedServing } from '../endpoints/serving-variables.ts'
import { registryCredential } from '../secrets/registries.ts'
import type { AppVariables, WorkerAddresses } from './worker-addresses.ts'

/** Inputs of a worker besides its image: variables, credential and volume, as its owner saved them. */
export interface WorkerLaunchInputs {
  /** The variables of the template and of the endpoint, secrets resolved. */
  readonly env: Record<string, string>
  readonly credential: RegistryCredential | null
  /** The first volume as a folder of this machine; null for none. */
  readonly volume: { readonly id: VolumeId; readonly path: string } | null
  /** All volumes of a task, at the paths that its client named; none for any other worker. */
  readonly mounts: readonly VolumeMount[]
  /** The build of an app; null for a worker without one. */
  readonly build: AppBuild | null
}

const NO_VARIABLES: AppVariables = { addresses: {}, files: {} }

/** Reads the inputs of a worker besides its image. */
export class WorkerLaunchReader {
  readonly #ports
  readonly #builds
  readonly #appVariables

  constructor(
    ports: Ports,
    builds: Pick<AppBuilds, 'exists' | 'folderOf'>,
    { appVariables = NO_VARIABLES }: Pick<WorkerAddresses, 'appVariables'>,
  ) {
    this.#ports = ports
    this.#builds = builds
    this.#appVariables = appVariables
  }

  /** The reason for which no worker can be started; null when nothing is missing or wrong. */
  async failure(endpoint: Endpoint, template: ReleasedTemplate): Promise<StartFailure | null> {
    const refused = this.#imageFailure(endpoint, template)
    if (refused !== null) return refused
    const env = savedEnv(endpoint, template)
    const missing = await this.#missingSecrets(endpoint.owner, env)
    if (missing.length > 0) return { kind: 'secrets_missing', names: missing }
    const problem = endpoint.type === 'LOAD_BALANCER' ? await this.#servingProblem(endpoint, env) : null
    if (problem !== null) return { kind: 'settings_invalid', problem }
    return (await this.#missingVolume(endpoint)) ?? (await this.#missingBuild(endpoint.owner, buildIdFromEnv(env)))
  }

  /**
   * The way in which a worker serves that is started now. Ports and times may come from secrets; a health check path
   * from a secret stays a reference.
   */
  async serving(endpoint: Endpoint, template: ReleasedTemplate): Promise<Serving> {
    const env = savedEnv(endpoint, template)
    const serving = servingWithSecrets(env, await resolvedServing(this.#ports, endpoint.owner, env))
    return endpoint.runsOnce ? { ...serving, once: true } : serving
  }

  /**
   * All inputs. Makes the folder of the volume again if it was removed.
   * @param token of the worker, with which functions of an app call others
   * @throws WorkerStartError with what is missing
   */
  async find(endpoint: Endpoint, template: ReleasedTemplate, token: string): Promise<WorkerLaunchInputs> {
    const { owner } = endpoint
    const refused = this.#imageFailure(endpoint, template)
    if (refused !== null) throw new WorkerStartError(refused)
    const volumes = await this.#readVolumes(endpoint)
    const credential =
      template.registry === null ? null : await registryCredential(this.#ports, owner, template.registry)
    const build = await this.#readBuild(endpoint, template)
    const env = await this.env(endpoint, template)
    const paths = endpoint.runsOnce ? mountsOf(env[MOUNTS], endpoint.networkVolumeIds) : []
    const mounts = paths.flatMap(({ id, at }) => {
      const folder = volumes.find(other => other.id === id)
      return folder === undefined ? [] : [{ id, path: folder.path, at }]
    })
    const usual = mounts.find(({ at }) => at === VOLUME_PATH)
    const volume = volumes.find(({ id }) => id === usual?.id) ?? volumes[0] ?? null
    return { env: this.#withAppEnv(template.image, env, token), credential, volume, mounts, build }
  }

  /** The variables with those by which functions of an app call others; the same for a worker of no app. */
  #withAppEnv(image: string, env: Record<string, string>, token: string): Record<string, string> {
    if (!runsApp(image, env)) return env
    const { addresses, files } = this.#appVariables
    const key = givesWorkerKey(image, env) ? { [APP_KEY]: token } : {}
    // A dev session shows what its workers print, and the SDK would print what it does with each call.
    const quiet = isLiveWorker(image, env) ? { RUNPOD_LOG_LEVEL: 'WARN' } : {}
    return { ...addresses, ...(isOnMachine(this.#ports, image) ? files : {}), ...quiet, ...env, ...key }
  }

  /** Secrets that {@link find} opens: their names, and the registry whose password it opens. */
  secrets(endpoint: Endpoint, template: ReleasedTemplate): { secrets: string[]; registry: RegistryId | null } {
    return { secrets: secretNames(savedEnv(endpoint, template)), registry: template.registry }
  }

  /**
   * The variables of the template and of the endpoint, secrets resolved.
   * @throws WorkerStartError when one is missing
   */
  env(endpoint: Endpoint, template: ReleasedTemplate): Promise<Record<string, string>> {
    return this.#withSecrets(endpoint.owner, savedEnv(endpoint, template))
  }

  /** An account may have saved an image before it was not allowed to. */
  #imageFailure({ owner }: Endpoint, { image }: ReleasedTemplate): StartFailure | null {
    const isReserved = isFolderReserved(owner, isOnMachine(this.#ports, image))
    return isReserved ? { kind: 'folder_reserved' } : imageRefusal(this.#ports, owner, image)
  }

  async #servingProblem({ owner }: Endpoint, env: Readonly<Record<string, string>>): Promise<string | null> {
    return servingProblem(await resolvedServing(this.#ports, owner, env), env)
  }

  /** Null when all volumes of the endpoint exist. Only volumes that older versions saved may be missing. */
  async #missingVolume({ owner, networkVolumeIds }: Endpoint): Promise<StartFailure | null> {
    for (const id of networkVolumeIds) {
      if ((await this.#ports.store.volumes.find(owner, id)) === null) return { kind: 'volume_missing', volume: id }
    }
    return null
  }

  /** Null when the release names no build, or one that exists. */
  async #missingBuild(owner: OwnerId, id: BuildId | null): Promise<StartFailure | null> {
    if (id === null || (await this.#builds.exists(owner, id))) return null
    return { kind: 'settings_invalid', problem: `build ${id}, which RUNPOD_BUILD_ID names, does not exist` }
  }

  /** The folder of the build of the release, which is made again where it was removed. */
  async #readBuild({ owner, env }: Endpoint, template: ReleasedTemplate): Promise<WorkerLaunchInputs['build']> {
    const id = buildIdFromEnv(savedEnv({ env }, template))
    const missing = await this.#missingBuild(owner, id)
    if (missing !== null) throw new WorkerStartError(missing)
    if (id === null) return null
    try {
      return { id, folder: await this.#builds.folderOf(owner, id) }
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'invalid') throw error
      throw new WorkerStartError({ kind: 'settings_invalid', problem: `build ${id}: ${error.message}` })
    }
  }

  /** The volumes of a task; of any other worker the first. */
  async #readVolumes(endpoint: Endpoint): Promise<{ readonly id: VolumeId; readonly path: string }[]> {
    const { volumes } = this.#ports
    const ids = endpoint.runsOnce ? endpoint.networkVolumeIds : endpoint.networkVolumeIds.slice(0, 1)
    if (ids.length === 0) return []
    const missing = await this.#missingVolume(endpoint)
    if (missing !== null) throw new WorkerStartError(missing)
    for (const id of ids) await volumes.create(id)
    return ids.map(id => ({ id, path: volumes.path(id) }))
  }

  async #withSecrets(owner: OwnerId, env: Readonly<Record<string, string>>): Promise<Record<string, string>> {
    const names = secretNames(env)
    if (names.length === 0) return resolveSecrets(env, new Map())
    const sealed = await this.#ports.store.secrets.sealedValues(owner, names)
    const missing = names.filter(name => !sealed.has(name))
    if (missing.length > 0) throw new WorkerStartError({ kind: 'secrets_missing', names: missing })
    const values = new Map(
      [...sealed].map(([name, text]) => [name, this.#ports.vault.open(text, secretPlace(owner, name))]),
    )
    return resolveSecrets(env, values)
  }

  async #missingSecrets(owner: OwnerId, env: Readonly<Record<string, string>>): Promise<string[]> {
    const names = secretNames(env)
    if (names.length === 0) return []
    const values = await this.#ports.store.secrets.sealedValues(owner, names)
    return names.filter(name => !values.has(name))
  }
}
