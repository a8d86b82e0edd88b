/** The endpoint of the torture run. */
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { patient } from '../../test/support/patience.ts'
import { request } from './clients.ts'
import type { RestartableServer } from './server.ts'

const WORKERS_MS = 60_000

/** Program and settings of its workers. */
export interface EndpointOptions {
  /** The Python with the official SDK, or null for `@runyard/worker`. */
  readonly python: string | null
  readonly workers: number
  /** Maximum number of jobs of a worker at a time. */
  readonly atOnce: number
  /** The file that records attempts. */
  readonly journal: string
  /** True if idle workers are frozen; otherwise they stay ready. */
  readonly freezes: boolean
}

/** Makes the endpoint. @returns its id */
export async function makeEndpoint(server: RestartableServer, wish: EndpointOptions): Promise<string> {
  const { python, workers, freezes } = wish
  const folder = fileURLToPath(new URL(python === null ? 'node' : 'python', import.meta.url))
  const template = {
    name: 'torture',
    imageName: `dir:${folder}`,
    containerDiskInGb: 1,
    volumeInGb: 0,
    isServerless: true,
    dockerArgs: python === null ? '' : `"${python}" handler.py`,
    env: Object.entries(environment(wish, 1)).map(([key, value]) => ({ key, value })),
  }
  const saved = await mutate(server, 'saveTemplate', 'SaveTemplateInput', template)
  return mutate(server, 'saveEndpoint', 'EndpointInput!', {
    name: 'torture',
    templateId: saved,
    instanceIds: ['cpu3g-2-8'],
    idleTimeout: 3_600,
    workersMin: freezes ? 0 : workers,
    workersMax: workers,
    scalerType: 'REQUEST_COUNT',
    scalerValue: 1,
    flashBootType: freezes ? 'FLASHBOOT' : 'OFF',
  })
}

/** Waits until all workers are ready. @throws Error after a minute */
export async function workersReady(server: RestartableServer, endpoint: string, workers: number): Promise<void> {
  const deadline = performance.now() + patient(WORKERS_MS)
  while (performance.now() < deadline) {
    const health = (await request(server, `/v2/${endpoint}/health`))?.json as { workers: { ready: number } } | undefined
    if (health?.workers.ready === workers) return
    await sleep(100)
  }
  throw new Error(`the workers did not start within ${WORKERS_MS / 1000} s`)
}

/** Releases a new version of the workers, unless the server is down. @returns true if it was acknowledged */
export async function release(server: RestartableServer, endpoint: string, wish: EndpointOptions, number: number) {
  const response = await request(server, `/v2/serverless/${endpoint}`, { env: environment(wish, number) }, 'PATCH')
  if (response !== null && response.status !== 200)
    throw new Error(`the release got ${response.status}: ${JSON.stringify(response.json)}`)
  return response !== null
}

function environment({ journal, atOnce }: EndpointOptions, release: number) {
  return { TORTURE_JOURNAL: journal, TORTURE_AT_ONCE: String(atOnce), TORTURE_RELEASE: String(release) }
}

/** Runs a mutation that saves something. @returns its id @throws Error with the errors of GraphQL */
export async function mutate(server: RestartableServer, name: string, type: string, input: object): Promise<string> {
  const query = `mutation ($input: ${type}) { ${name}(input: $input) { id } }`
  const response = await request(server, '/graphql', { query, variables: { input } })
  const { data, errors } = (response?.json ?? {}) as { data?: Record<string, { id: string }>; errors?: object }
  if (errors !== undefined || data?.[name] == null) throw new Error(`${name}: ${JSON.stringify(errors ?? response)}`)
  return data[name].id
}
