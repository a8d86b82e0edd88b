/** Plain HTTP against a server: the job operations and GraphQL, with nothing in between. */
import type { Server } from './server.ts'
import { until } from './until.ts'
import { shareFolder, workerFields } from './workers.ts'

/** An answer, read to its end. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** Body as JSON; undefined if it is not JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: answers are compared with what the test expects
  readonly json: any
}

/** Parts of a request beside its path. */
export interface Ask {
  readonly method?: string
  /** Sent as it is when it is a string, else as JSON. */
  readonly body?: unknown
  /** Headers; a null takes a default one away. */
  readonly headers?: Readonly<Record<string, string | null>>
  /** Gives the request up. */
  readonly signal?: AbortSignal
}

/** Sends one request with the server's own key. */
export async function ask(server: Pick<Server, 'url' | 'apiKey'>, path: string, request: Ask = {}): Promise<Answer> {
  const headers = new Headers({ authorization: `Bearer ${server.apiKey}` })
  const { body } = request
  if (body !== undefined) headers.set('content-type', 'application/json')
  for (const [name, value] of Object.entries(request.headers ?? {})) {
    if (value === null) headers.delete(name)
    else headers.set(name, value)
  }
  const method = request.method ?? (body === undefined ? 'GET' : 'POST')
  const payload = body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }
  const signal = request.signal ?? null
  const answer = await fetch(`${server.url}${path}`, { method, headers, signal, ...payload })
  const text = await answer.text()
  return { status: answer.status, headers: answer.headers, text, json: parseJson(text) }
}

/** Sends a GraphQL document and gives its data. @throws with the first message when there are errors */
export async function graphql(
  server: Pick<Server, 'url' | 'apiKey'>,
  query: string,
  variables?: Readonly<Record<string, unknown>>,
  // biome-ignore lint/suspicious/noExplicitAny: answers are compared with what the test expects
): Promise<any> {
  const { json } = await ask(server, '/graphql', { body: { query, ...(variables ? { variables } : {}) } })
  if (json?.errors !== undefined) throw new Error(json.errors[0].message)
  return json.data
}

/** Program and settings of an endpoint; names are unique by themselves. */
export interface EndpointWish {
  /** Absolute path of the worker's folder. */
  readonly folder: string
  readonly args?: string
  readonly env?: Readonly<Record<string, string>>
  /** Fields of saveEndpoint. */
  readonly settings?: Readonly<Record<string, unknown>>
}

let endpointCount = 0

/** Makes a template and an endpoint, and gives the endpoint's id. */
export async function makeEndpoint(server: Server, wish: EndpointWish): Promise<string> {
  endpointCount += 1
  const name = `wire-${endpointCount}`
  const { image, args, env, shared } = await workerFields(wish)
  const { saveTemplate } = await graphql(server, SAVE_TEMPLATE, {
    input: {
      name,
      imageName: image,
      dockerArgs: args,
      containerDiskInGb: 1,
      volumeInGb: 0,
      isServerless: true,
      env: Object.entries(env).map(([key, value]) => ({ key, value })),
    },
  })
  const volume = shared === null ? {} : { networkVolumeId: await folderVolume(server, shared) }
  const { saveEndpoint } = await graphql(server, SAVE_ENDPOINT, {
    input: { name, templateId: saveTemplate.id, instanceIds: ['cpu3g-2-8'], ...volume, ...wish.settings },
  })
  return saveEndpoint.id
}

const volumes = new Map<string, Promise<string>>()

/** The network volume whose contents are a folder of the test. */
function folderVolume(server: Server, folder: string): Promise<string> {
  const cached = volumes.get(folder)
  if (cached !== undefined) return cached
  const make = async () => {
    const body = { name: `wire-volume-${volumes.size}`, size: 10, dataCenter: 'EU-RO-1' }
    const { json, text } = await ask(server, '/v2/network-volumes', { body })
    if (json?.id === undefined) throw new Error(text)
    shareFolder(server.dataDir, json.id, folder)
    return json.id as string
  }
  const volume = make()
  volumes.set(folder, volume)
  return volume
}

/** Changes an endpoint; what is left out is kept. */
export async function changeEndpoint(server: Server, id: string, settings: Readonly<Record<string, unknown>>) {
  const { myself } = await graphql(server, 'query ($id: String!) { myself { endpoint(id: $id) { name } } }', { id })
  await graphql(server, SAVE_ENDPOINT, { input: { id, name: myself.endpoint.name, ...settings } })
}

const SAVE_TEMPLATE = 'mutation ($input: SaveTemplateInput) { saveTemplate(input: $input) { id } }'
const SAVE_ENDPOINT = 'mutation ($input: EndpointInput!) { saveEndpoint(input: $input) { id } }'

/** Submits a job and gives its id. */
export async function submit(
  server: Server,
  endpoint: string,
  input: object,
  fields: Readonly<Record<string, unknown>> = {},
): Promise<string> {
  const { status, json, text } = await ask(server, `/v2/${endpoint}/run`, { body: { input, ...fields } })
  if (status !== 200) throw new Error(`run answered ${status}: ${text}`)
  return json.id
}

/** Answer of the status operation about a job. */
export async function statusOf(server: Server, endpoint: string, job: string) {
  return (await ask(server, `/v2/${endpoint}/status/${job}`)).json as JobStatus
}

/** A job as clients see it. */
export interface JobStatus {
  readonly id: string
  readonly status: string
  // biome-ignore lint/suspicious/noExplicitAny: it is whatever the worker returned
  readonly output?: any
  readonly error?: string
  readonly warning?: string
  readonly retries?: number
  readonly workerId?: string
  readonly delayTime: number
  readonly executionTime?: number
}

/** Waits until a job is in one of the states. */
export function whenStatus(
  server: Server,
  endpoint: string,
  job: string,
  states: readonly string[],
  forMs = 30_000,
): Promise<JobStatus> {
  return until(
    `job ${job} to be ${states.join(' or ')}`,
    async () => {
      const state = await statusOf(server, endpoint, job)
      return states.includes(state.status) && state
    },
    forMs,
  )
}

/** Waits until a job is final. */
export function whenFinal(server: Server, endpoint: string, job: string, forMs = 30_000): Promise<JobStatus> {
  return whenStatus(server, endpoint, job, ['COMPLETED', 'FAILED', 'CANCELLED', 'TIMED_OUT'], forMs)
}

/** Submits a job and waits until it is final. */
export async function runJob(server: Server, endpoint: string, input: object, forMs = 30_000): Promise<JobStatus> {
  return whenFinal(server, endpoint, await submit(server, endpoint, input), forMs)
}

/** The health of an endpoint. */
export async function healthOf(server: Pick<Server, 'url' | 'apiKey'>, endpoint: string) {
  return (await ask(server, `/v2/${endpoint}/health`)).json as {
    jobs: { completed: number; failed: number; inProgress: number; inQueue: number; retried: number }
    workers: Record<'idle' | 'initializing' | 'ready' | 'running' | 'throttled' | 'unhealthy', number>
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
