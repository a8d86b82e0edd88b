/** Servers of Runyard for benchmarks. */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type ReadyServer, readyServer } from './ready.ts'
import { type Bench, requestText } from './sides.ts'

/** A server that answers. */
export interface RunyardServer extends ReadyServer {
  readonly port: number
  readonly dataDir: string
}

let count = 0

/** A small job. */
export const SMALL_JOB = { input: { prompt: 'x'.repeat(400) } }

/** Settings of a server. */
export interface ServerSettings {
  /** Level of its log; `warn` unless given. The access log is `debug`. */
  readonly logLevel?: 'warn' | 'debug'
  /** Its data folder; a new one unless given. */
  readonly dataDir?: string
  /** More variables of its environment. */
  readonly env?: Readonly<Record<string, string>>
  /** More arguments of `runyard serve`. */
  readonly args?: readonly string[]
}

/** Starts a server. @param database address of a PostgreSQL; null for the embedded database */
export async function startRunyard(
  bench: Bench,
  database: string | null,
  { logLevel = 'warn', dataDir, env: extraEnv = {}, args: extraArgs = [] }: ServerSettings = {},
): Promise<RunyardServer> {
  count += 1
  const folder = dataDir ?? `${bench.folder}/runyard-${count}`
  const args = [
    'serve',
    '--port',
    '0',
    '--json',
    '--log-level',
    logLevel,
    '--data-dir',
    folder,
    '--process-root',
    '/',
    // The compared programs have no sandboxes either.
    ...['--worker-sandbox', 'off'],
    ...extraArgs,
  ]
  const env = { ...extraEnv, ...(database === null ? {} : { RUNYARD_DATABASE: database }) }
  const { line } = await bench.start('./bin/runyard', args, env, `${bench.folder}/runyard-${count}.log`)
  const server = readyServer(line)
  return { ...server, port: Number(new URL(server.url).port), dataDir: folder }
}

/** A request to a server with its key, head and body. @param body null for a GET */
export function requestTo(
  { port, key }: RunyardServer,
  path: string,
  body: object | null,
  headers: Readonly<Record<string, string>> = {},
): string {
  return requestText(port, path, { authorization: `Bearer ${key}`, ...headers }, body)
}

/** Makes a folder with a TypeScript worker. */
export function workerFolder(bench: Bench, handler: string): string {
  count += 1
  const folder = join(bench.folder, `worker-${count}`)
  mkdirSync(join(folder, 'node_modules', '@runyard'), { recursive: true })
  symlinkSync(resolve('packages/worker'), join(folder, 'node_modules', '@runyard', 'worker'))
  writeFileSync(join(folder, 'handler.mjs'), handler)
  return folder
}

/** Settings of an endpoint. */
export interface EndpointSettings {
  readonly workersMax: number
  readonly workersMin?: number
  /** In seconds; an hour unless given. */
  readonly idleTimeout?: number
  /** Jobs for each worker; by the delay of the queue unless given. */
  readonly requestCount?: number
  /** Folder of its workers; one whose workers do nothing unless given. */
  readonly folder?: string
  /** Image of its workers in place of a folder. */
  readonly image?: string
  /** Command of its workers; that of the folder or image unless given. */
  readonly args?: string
  readonly env?: Readonly<Record<string, string>>
  /** Treatment of idle workers; they end unless given. */
  readonly flashBootType?: 'OFF' | 'FLASHBOOT'
  /** Type of the endpoint; a queue unless given. */
  readonly type?: 'QB' | 'LB'
}

/** Makes an endpoint. @returns its id */
export async function makeEndpoint(server: RunyardServer, settings: EndpointSettings): Promise<string> {
  const {
    workersMax,
    workersMin = 0,
    idleTimeout = 3_600,
    requestCount = settings.type === 'LB' ? 4 : undefined,
    folder = resolve('test/wire/fixtures/silent-worker'),
    args = '',
    env = {},
    flashBootType = 'OFF',
    image = `dir:${folder}`,
    type = 'QB',
  } = settings
  count += 1
  const templateId = await mutate(
    server,
    'mutation ($input: SaveTemplateInput) { saveTemplate(input: $input) { id } }',
    {
      name: `bench-${count}`,
      imageName: image,
      dockerArgs: args,
      containerDiskInGb: 1,
      volumeInGb: 0,
      isServerless: true,
      env: Object.entries(env).map(([key, value]) => ({ key, value })),
    },
  )
  return mutate(server, 'mutation ($input: EndpointInput!) { saveEndpoint(input: $input) { id } }', {
    name: `bench-${count}`,
    templateId,
    instanceIds: ['cpu3g-2-8'],
    idleTimeout,
    flashBootType,
    type,
    ...(requestCount === undefined ? {} : { scalerType: 'REQUEST_COUNT', scalerValue: requestCount }),
    workersMin,
    workersMax,
  })
}

/** Makes an endpoint with one worker of a folder, and waits until the worker has done a job. @returns its id */
export async function createFolderEndpoint(
  server: RunyardServer,
  folder: string,
  job: object,
  args = '',
): Promise<string> {
  const endpoint = await makeEndpoint(server, { workersMin: 1, workersMax: 1, folder, args })
  const first = (await ask(server, `/v2/${endpoint}/runsync?wait=60000`, job)) as { status: string }
  if (first.status !== 'COMPLETED') throw new Error(`the first job is ${JSON.stringify(first)}`)
  return endpoint
}

/** Calls a server. @param body null for a GET */
export async function ask({ url, key }: RunyardServer, path: string, body: object | null = null): Promise<unknown> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const init = body === null ? {} : { method: 'POST', body: JSON.stringify(body) }
  const response = await fetch(`${url}${path}`, { headers, ...init })
  const text = await response.text()
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${text}`)
  return text.startsWith('{') || text.startsWith('[') ? JSON.parse(text) : text
}

async function mutate(server: RunyardServer, query: string, input: object): Promise<string> {
  const { data, errors } = (await ask(server, '/graphql', { query, variables: { input } })) as {
    data?: Record<string, { id: string }>
    errors?: object
  }
  if (errors !== undefined || data === undefined) throw new Error(JSON.stringify(errors))
  return Object.values(data)[0]!.id
}
