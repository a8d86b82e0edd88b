/**
 * Workers of a run of these tests: process groups, or containers of the engine of the tests with
 * RUNYARD_TEST_WORKERS=container. A test asks for a folder of a worker either way; for containers its image is built
 * here.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { buildImage } from '../../../src/drivers/docker/images/build.ts'
import { INSTALLATION_LABEL } from '../../../src/drivers/docker/network.ts'
import { engineAt, engineUrl, noDocker, workerImage } from '../../support/docker.ts'
import { atEnd, atExit, temporaryFolder } from './cleanup.ts'

/** True if workers are containers in this run. */
export const inContainers = process.env.RUNYARD_TEST_WORKERS === 'container'

if (inContainers && noDocker !== false) throw new Error(noDocker)

const VOLUME = '/runpod-volume'
/** The variable whose folder is the test's and the worker's. */
const SHARED = 'WIRE_FOLDER'

/** Program that a test wants to run: a folder, with the words and the variables for a process of this machine. */
export interface WorkerWish {
  readonly folder: string
  readonly args?: string
  readonly env?: Readonly<Record<string, string>>
}

/** The same as fields of a template; `shared` is the folder for the endpoint's network volume. */
export interface WorkerFields {
  readonly image: string
  readonly args: string
  readonly env: Readonly<Record<string, string>>
  readonly shared: string | null
}

/** Template fields for a wish. */
export async function workerFields(wish: WorkerWish): Promise<WorkerFields> {
  const { folder, args = '', env = {} } = wish
  if (!inContainers) return { image: `dir:${folder}`, args, env, shared: null }
  const { [SHARED]: shared = null, ...otherEnv } = env
  const inside = Object.entries(otherEnv).map(([name, value]) => [name, inImage(value)] as const)
  return {
    image: await imageFor(folder),
    args: inImage(args),
    env: {
      RUNPOD_SKIP_AUTO_SYSTEM_CHECKS: 'true',
      ...Object.fromEntries(inside),
      ...(shared === null ? {} : { [SHARED]: VOLUME }),
    },
    shared,
  }
}

/** Lets a network volume take the place of a folder of the test, which stays reachable by its path. */
export function shareFolder(dataDir: string, volume: string, folder: string): void {
  // The other way round does not work: a volume that is a link is refused.
  const place = join(dataDir, 'volumes', volume)
  cpSync(folder, place, { recursive: true })
  rmSync(folder, { recursive: true })
  symlinkSync(place, folder)
}

/** The options with which a server runs workers, and the given ones as they are then. */
export function serverArgs(args: readonly string[]): string[] {
  if (!inContainers) return [...args]
  const folders = args.flatMap((word, at) => {
    if (args[at - 1] !== '--worker' && args[at - 1] !== '--lb') return [word]
    const copy = withDockerfile(word)
    builtByServers.push(`label=runyard.folder=${copy}`)
    return [copy, '--container']
  })
  // The machine of the tests is smaller than what their endpoints may use.
  return ['--docker', engineUrl, '--cpu-overcommit', '100', '--memory-overcommit', '100', ...folders]
}

/**
 * Part of the environment that marks each worker of the server with this data directory, with a NUL before; null
 * before the first worker.
 */
export function signOf(dataDir: string): string | null {
  if (!inContainers) return `\0HOME=${dataDir}/workers/`
  try {
    // The address that its containers call is the server's own.
    const { url } = JSON.parse(readFileSync(join(dataDir, 'container-address.json'), 'utf8')) as { url: string }
    return `\0RUNPOD_WEBHOOK_PING=${url}/`
  } catch {
    return null
  }
}

/** The engines with the data directories whose installations are removed from them. */
const cleaned = new Set<string>()

/**
 * Removes all that a server has on its engine when the test file ends, also when a test failed or the
 * file is ended from outside.
 */
export function cleanEngine(engine: string, dataDir: string): void {
  const both = `${engine} ${dataDir}`
  if (cleaned.has(both)) return
  cleaned.add(both)
  const removeAll = () => {
    for (const label of labelsOf(dataDir)) {
      const filter = ['--filter', `label=${label}`]
      const containers = linesOf(docker(engine, ['ps', '-aq', ...filter]))
      if (containers.length > 0) docker(engine, ['rm', '-fv', ...containers])
      const networks = linesOf(docker(engine, ['network', 'ls', '-q', ...filter]))
      if (networks.length > 0) docker(engine, ['network', 'rm', ...networks])
    }
  }
  const takeBack = atExit(removeAll)
  atEnd(() => {
    removeAll()
    takeBack()
  })
}

function labelsOf(dataDir: string): string[] {
  const file = join(dataDir, 'installation')
  if (!existsSync(file)) return []
  const installation = readFileSync(file, 'utf8').trim()
  return [`dev.runyard.installation=${installation}`, `${INSTALLATION_LABEL}=${installation}`]
}

/** At the exit of this process nothing can wait for the engine but a program. */
function docker(engine: string, words: readonly string[]): string {
  try {
    const stdio = ['ignore', 'pipe', 'ignore'] as const
    return execFileSync('docker', ['--host', engine, ...words], { encoding: 'utf8', stdio: [...stdio] })
  } catch {
    // Nothing was left to remove, or the engine is down.
    return ''
  }
}

function linesOf(text: string): string[] {
  return text.split('\n').filter(line => line !== '')
}

const images = new Map<string, Promise<string>>()
const named: string[] = []
/** Filters for the images that servers have built. */
const builtByServers: string[] = []

/** Keeps the layers below, on which another test file may build at this moment. */
function removeImages(): void {
  const ids = builtByServers.flatMap(filter => linesOf(docker(engineUrl, ['images', '-q', '--filter', filter])))
  if (named.length + ids.length > 0) docker(engineUrl, ['rmi', '-f', '--no-prune', ...named, ...ids])
}

const takeBackImages = atExit(removeImages)
// The first action runs last at the end, after all containers were removed.
atEnd(() => {
  removeImages()
  takeBackImages()
})

/** Image in a template that runs this folder; an image is built once for a test file. */
export function imageFor(folder: string): Promise<string> {
  if (!inContainers) return Promise.resolve(`dir:${folder}`)
  const cached = images.get(folder)
  if (cached !== undefined) return cached
  const name = `runyard-wire-${process.pid}-${images.size + 1}`
  named.push(name)
  const built = build(folder, name)
  images.set(folder, built)
  return built
}

/** Called after a change of a folder that ran before: its image is built again. */
export async function folderChanged(folder: string): Promise<void> {
  if (inContainers) await build(folder, await imageFor(folder))
}

async function build(folder: string, name: string): Promise<string> {
  await buildImage({ engine: engineAt(engineUrl).client, folder: withDockerfile(folder), name })
  return name
}

/** A copy of a worker's folder from which an image can be built. */
function withDockerfile(folder: string): string {
  const copy = join(temporaryFolder(), basename(folder))
  cpSync(folder, copy, { recursive: true })
  const names = ['handler.py', 'handler.mjs', 'server.py', 'server.mjs']
  const program = names.find(name => existsSync(join(copy, name))) ?? 'handler.mjs'
  const run = program.endsWith('.py') ? ['python3', '-u', program] : ['node', program]
  // The SDK's checks want a way to the internet.
  const lines = [
    `FROM ${workerImage}`,
    'ENV RUNPOD_SKIP_AUTO_SYSTEM_CHECKS=true',
    'COPY . .',
    `CMD ${JSON.stringify(run)}`,
  ]
  writeFileSync(join(copy, 'Dockerfile'), lines.join('\n'))
  return copy
}

/** Words that name the Python of this machine name the image's own. */
function inImage(text: string): string {
  const python = process.env.RUNYARD_TEST_PYTHON ?? ''
  return python === '' ? text : text.replaceAll(python, 'python3')
}
