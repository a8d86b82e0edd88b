/** The folders that a run of the server was given: each becomes an endpoint, in processes or in containers. */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { basename, resolve } from 'node:path'
import { graphqlSentence } from '../../api/field-names.ts'
import type { App } from '../../app.ts'
import type { Config } from '../../config/config.ts'
import { type Endpoint, type EndpointType, MAX_WORKERS } from '../../core/endpoints/endpoint.ts'
import { AppError, renderFields, toAppError } from '../../core/errors.ts'
import { accessProblem, type Use } from '../../disk/access-problem.ts'
import { connectEngine } from '../../drivers/docker/engine/connection.ts'
import type { EngineClient } from '../../drivers/docker/engine/engine-client.ts'
import { buildImage } from '../../drivers/docker/images/build.ts'
import type { FolderSettings } from '../../services/endpoints/folder-endpoints.ts'
import type { Log } from '../../system/observing/log.ts'
import { StartError } from '../start-error.ts'
import { setUpFolder } from './folder-setup.ts'
import { watchFolder } from './folder-watch.ts'
import { missingArchive } from './worker-archive.ts'

/** A folder that was given with `--worker` or `--lb`, with the endpoint that runs it. */
export interface ServedFolder {
  readonly folder: string
  readonly endpoint: Endpoint
}

/** A folder that becomes an endpoint. */
interface FolderToServe {
  readonly path: string
  readonly type: EndpointType
  readonly inContainer: boolean
  /** The option that names it. */
  readonly option: string
}

const SAMPLE = '--sample'

/** The folders that the settings name. */
export interface FoldersToServe {
  readonly all: readonly FolderToServe[]
  /** Paths of those that run in processes. */
  readonly inProcesses: readonly string[]
  /** True when the server installs their packages. */
  readonly setsUp: boolean
  /** The engine that builds, as the setting names it. */
  readonly engine: string
  readonly settings: FolderSettings
}

/**
 * The folders that the settings name.
 * @throws StartError when there is nothing to build, or one is named as two things
 */
export function foldersIn(config: Config, sampleFolder: string): FoldersToServe {
  const { workers, lbFolders, container: inContainer, sample, docker } = config
  const named = workers.length + lbFolders.length
  requireFolders(config, named)
  refuseClosedFolders(config)
  const twice = workers.find(path => lbFolders.includes(path))
  if (twice !== undefined)
    throw new StartError(`${twice} is given with --worker and with --lb; it can be only one of them`)
  const all: FolderToServe[] = [
    ...workers.map(path => ({ path, type: 'QUEUE', inContainer, option: '--worker' }) as const),
    ...lbFolders.map(path => ({ path, type: 'LOAD_BALANCER', inContainer, option: '--lb' }) as const),
    ...(sample ? [{ path: sampleFolder, type: 'QUEUE', inContainer: false, option: SAMPLE } as const] : []),
  ]
  const inProcesses = all.filter(folder => !folder.inContainer).map(({ path }) => path)
  const settings = {
    gpu: config.folderGpu ?? undefined,
    gpuCount: config.folderGpuCount ?? undefined,
    gpuMemoryGb: config.folderGpuMemoryGb ?? undefined,
    priority: config.folderPriority ?? undefined,
    preemptible: config.folderPreemptible === null ? undefined : config.folderPreemptible === 'true',
    workersMax: config.maxWorkers === null ? undefined : Math.min(config.maxWorkers, MAX_WORKERS),
    args: config.folderCommand ?? undefined,
  }
  return { all, inProcesses, setsUp: config.folderSetup, engine: docker, settings }
}

/**
 * Folders that workers could not use, and the option that names each.
 * @throws StartError for one that this user may not enter
 */
function refuseClosedFolders({ processRoots, workerReadable, workerWritable, modelCache }: Config): void {
  const named: readonly (readonly [option: string, paths: readonly string[], use: Use])[] = [
    ['--process-root', processRoots, 'read'],
    ['--worker-readable', workerReadable, 'read'],
    ['--worker-writable', workerWritable, 'read'],
    // The server makes no missing folder.
    ['--worker-writable', workerWritable.filter(path => existsSync(path)), 'write'],
    ['--model-cache', modelCache === null ? [] : [modelCache], 'write'],
  ]
  for (const [option, paths, use] of named) {
    const closed = paths.map(path => accessProblem(path, use)).find(problem => problem !== null)
    if (closed != null) throw new StartError(`${option}: ${closed}`)
  }
}

/** @param named number of folders of --worker and --lb */
function requireFolders(
  { container, folderGpu, folderGpuCount, folderCommand, folderSetup, folderWatch, sample }: Config,
  named: number,
): void {
  const of = 'the folders of --worker and --lb; name one'
  if (named === 0 && container) throw new StartError(`--container builds ${of}`)
  if (named === 0 && folderGpu !== null) throw new StartError(`--gpu is for ${of}`)
  if (named === 0 && folderGpuCount !== null) throw new StartError(`--gpus is for ${of}`)
  if (named === 0 && folderSetup) throw new StartError(`--setup installs the packages of ${of}`)
  if (named === 0 && folderWatch && !sample) throw new StartError(`--watch follows changes in ${of}`)
  if (folderCommand !== null && named !== 1)
    throw new StartError('a command runs one folder; name exactly one with --worker or --lb')
}

/** Watches the folders that run in processes, until the returned function is called. */
export function watchFolders(
  app: App,
  served: readonly ServedFolder[],
  { inProcesses, setsUp }: FoldersToServe,
  log: Log,
): () => void {
  const watched = served.filter(({ folder }) => inProcesses.some(path => resolve(path) === folder))
  const watches = watched.map(({ folder, endpoint }) =>
    watchFolder(folder, log, {
      restart: () => app.services.restart(endpoint.owner, endpoint.id, true),
      setUp: setsUp ? () => setUpFolder(folder, true, log) : null,
    }),
  )
  return () => {
    for (const watch of watches) watch.close()
  }
}

/** A folder whose endpoint can be made. */
interface PreparedFolder extends FolderToServe {
  readonly repository: string
  /** Of its image; null for a folder that runs in processes. */
  readonly tag: string | null
}

/**
 * Builds the images of folders that run in containers, each time.
 * @throws StartError with the problem of a folder
 */
export async function prepareFolders({ all, engine }: FoldersToServe, log: Log): Promise<PreparedFolder[]> {
  const prepared: PreparedFolder[] = []
  for (const folder of all) {
    const path = resolve(folder.path)
    const closed = accessProblem(path, 'read')
    if (closed !== null) throw new StartError(`${folder.option} ${folder.path} cannot be used: ${closed}`)
    const repository = imageRepository(path)
    try {
      const tag = folder.inContainer ? await buildFolder(requireEngine(engine), path, repository, log) : null
      prepared.push({ ...folder, repository, tag })
    } catch (error) {
      throw folderStartError(folder, error)
    }
  }
  return prepared
}

/**
 * Makes the endpoints of the folders, or finds them again.
 * @throws StartError with the problem of a folder
 */
export async function serveFolders(
  app: App,
  prepared: readonly PreparedFolder[],
  { engine, settings }: FoldersToServe,
): Promise<ServedFolder[]> {
  const served: ServedFolder[] = []
  for (const folder of prepared) {
    const { type, repository, tag } = folder
    const path = resolve(folder.path)
    const given = { name: basename(path), path, repository, type, tag }
    const chosen = folder.option === SAMPLE ? { prefersCpu: true } : { settings }
    try {
      served.push({ folder: path, endpoint: await app.services.folderEndpoint({ ...given, ...chosen }) })
      if (tag !== null) await removeOldTags(requireEngine(engine), repository, tag)
    } catch (error) {
      throw folderStartError(folder, error)
    }
  }
  return served
}

function folderStartError({ option, path }: FolderToServe, error: unknown): StartError {
  return new StartError(`${option} ${path}: ${sentences(error)}`)
}

function sentences(error: unknown): string {
  const { message, failures } = renderFields(toAppError(error), graphqlSentence)
  return [message, ...failures.filter(failure => failure !== message).map(failure => `  ${failure}`)].join('\n')
}

/** Images of two folders of one name must not be taken for each other. */
function imageRepository(path: string): string {
  const words = basename(path)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
  return `runyard-folder/${words === '' ? 'worker' : words}-${createHash('sha256').update(path).digest('hex').slice(0, 8)}`
}

/** @returns the tag, which differs as the image does, so that another image is another version of its endpoint */
async function buildFolder(engine: EngineClient, folder: string, repository: string, log: Log): Promise<string> {
  log.info({ folder }, 'image.building')
  const labels = { 'runyard.folder': folder }
  const id = await buildImage({
    engine,
    folder,
    name: `${repository}:latest`,
    labels,
    added: await missingArchive(folder),
    onOutput: text => log.debug({ folder, output: text.trimEnd() }, 'image.output'),
  })
  const tag = id.replace(/^sha256:/, '').slice(0, 12)
  await engine.call({ method: 'POST', path: `/images/${id}/tag`, query: { repo: repository, tag } })
  log.info({ folder, image: `${repository}:${tag}` }, 'image.built')
  return tag
}

/** The engine refuses to remove an image of a container; the image is removed at a later start. */
async function removeOldTags(engine: EngineClient, repository: string, tag: string): Promise<void> {
  const query = { filters: { reference: [repository] } }
  const images = await engine
    .call<readonly { readonly RepoTags?: readonly string[] | null }[]>({ method: 'GET', path: '/images/json', query })
    .catch(() => [])
  const names = images.flatMap(({ RepoTags }) => RepoTags ?? [])
  const keptTags = [`${repository}:${tag}`, `${repository}:latest`]
  for (const name of names.filter(name => !keptTags.some(end => name.endsWith(end)))) {
    await engine.call({ method: 'DELETE', path: `/images/${name}` }).catch(() => {})
  }
}

function requireEngine(setting: string): EngineClient {
  const connection = connectEngine(setting, process.env, 0)
  if (connection !== null) return connection.engine
  if (setting === 'off')
    throw new AppError('unavailable', '--container needs a container engine, which --docker off forbids')
  throw new AppError(
    'unavailable',
    '--container needs a container engine; install Docker or Podman, or name one with --docker or DOCKER_HOST',
  )
}
