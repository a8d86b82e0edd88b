/** The folders that a run of the server was given: each becomes an endpoint, in processes or in containers. */
import { createHash } from 'node:crypto'
import { basename, resolve } from 'node:path'
import type { App } from './app.ts'
import type { Config } from './config.ts'
import type { Endpoint } from './core/endpoint.ts'
import { AppError, toAppError } from './core/errors.ts'
import { buildImage } from './drivers/docker/build.ts'
import { connectEngine, type EngineConnection } from './drivers/docker/connection.ts'
import { StartError } from './main-listeners.ts'
import type { createLog } from './system/log.ts'

/** A folder that was given with `--worker`, with the endpoint that runs it. */
export interface ServedFolder {
  readonly folder: string
  readonly endpoint: Endpoint
}

/** Folders by what their workers run in. */
export interface FoldersToServe {
  readonly inProcesses: readonly string[]
  readonly inContainers: readonly string[]
}

/** The folders that the settings name. @throws StartError when there is nothing to build */
export function foldersIn({ workers, container, sample }: Config, sampleFolder: string): FoldersToServe {
  if (container && workers.length === 0) throw new StartError('--container builds the folders of --worker; name one')
  const samples = sample ? [sampleFolder] : []
  return container
    ? { inProcesses: samples, inContainers: workers }
    : { inProcesses: [...workers, ...samples], inContainers: [] }
}

type Log = ReturnType<typeof createLog>

/**
 * Makes the endpoints of the folders, or finds them again. Those for containers are built first, each time.
 * @throws StartError with what is wrong with a folder
 */
export async function serveFolders(app: App, folders: FoldersToServe, log: Log): Promise<ServedFolder[]> {
  const served: ServedFolder[] = []
  const serve = async (folder: string, inContainer: boolean) => {
    const path = resolve(folder)
    const name = basename(path)
    const repository = repositoryOf(path)
    try {
      const tag = inContainer ? await buildFolder(path, repository, log) : null
      served.push({ folder: path, endpoint: await app.services.folderEndpoint({ name, path, repository, tag }) })
      if (tag !== null) await removeOldTags(repository, tag)
    } catch (error) {
      throw new StartError(`--worker ${folder}: ${sentences(error)}`)
    }
  }
  for (const folder of folders.inContainers) await serve(folder, true)
  for (const folder of folders.inProcesses) await serve(folder, false)
  return served
}

function sentences(error: unknown): string {
  const { message, failures } = toAppError(error)
  return [message, ...failures.filter(failure => failure !== message).map(failure => `  ${failure}`)].join('\n')
}

/** Images of two folders of one name must not be taken for each other. */
function repositoryOf(path: string): string {
  const words = basename(path)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
  return `runyard-folder/${words === '' ? 'worker' : words}-${createHash('sha256').update(path).digest('hex').slice(0, 8)}`
}

/** @returns the tag, which differs as the image does, so that another image is another version of its endpoint */
async function buildFolder(folder: string, repository: string, log: Log): Promise<string> {
  const engine = requireEngine()
  log.info({ folder }, 'image.building')
  const labels = { 'runyard.folder': folder }
  const id = await buildImage({
    ...{ engine, folder, name: `${repository}:latest`, labels },
    onOutput: text => log.debug({ folder, output: text.trimEnd() }, 'image.output'),
  })
  const tag = id.replace(/^sha256:/, '').slice(0, 12)
  await engine.getImage(id).tag({ repo: repository, tag })
  log.info({ folder, image: `${repository}:${tag}` }, 'image.built')
  return tag
}

/** The engine keeps an image as long as a container has it, and says so; it goes at a later start. */
async function removeOldTags(repository: string, tag: string): Promise<void> {
  const engine = requireEngine()
  const images = await engine.listImages({ filters: { reference: [repository] } }).catch(() => [])
  const names = images.flatMap(({ RepoTags }) => RepoTags ?? [])
  const kept = [`${repository}:${tag}`, `${repository}:latest`]
  for (const name of names.filter(name => !kept.some(end => name.endsWith(end)))) {
    await engine
      .getImage(name)
      .remove()
      .catch(() => {})
  }
}

function requireEngine(): EngineConnection['engine'] {
  const connection = connectEngine('auto', process.env, 0)
  if (connection !== null) return connection.engine
  throw new AppError(
    'unavailable',
    '--container needs a container engine; install Docker or Podman, or set DOCKER_HOST',
  )
}
