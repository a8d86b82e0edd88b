/**
 * The endpoints of the soak: two queues with RunPod's SDK and `@runyard/worker`, one of
 * streams, and a load-balanced one.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { request } from '../clients.ts'
import { mutate } from '../endpoint.ts'
import type { RestartableServer } from '../server.ts'

const READY_MS = 120_000
const AT_ONCE = 8

/** The ids of the endpoints. */
export interface SoakEndpoints {
  /** Endpoint on RunPod's SDK, or on `@runyard/worker` without a Python that has it. */
  readonly python: string
  readonly node: string
  readonly streams: string
  readonly balanced: string
}

interface NewEndpoint {
  readonly name: string
  readonly folder: string
  readonly command: string
  readonly type?: 'LB'
  readonly streams?: boolean
  readonly workersMin: number
  readonly workersMax: number
}

/** Makes the endpoints and waits until each has a ready worker. @throws Error after two minutes */
export async function makeEndpoints(
  server: RestartableServer,
  python: string | null,
  journal: string,
): Promise<SoakEndpoints> {
  const node = { folder: 'node', command: '' }
  const sdk = python === null ? node : { folder: 'python', command: `"${python}" handler.py` }
  const make = (wish: NewEndpoint) => makeOne(server, wish, journal)
  const endpoints = {
    python: await make({ name: 'soak-python', ...sdk, workersMin: 2, workersMax: 4 }),
    // This endpoint scales up and down with its load.
    node: await make({ name: 'soak-node', ...node, workersMin: 1, workersMax: 3 }),
    streams: await make({ name: 'soak-streams', ...sdk, streams: true, workersMin: 1, workersMax: 1 }),
    balanced: await make({
      name: 'soak-balanced',
      folder: 'balanced',
      command: `"${process.execPath}" server.mjs`,
      type: 'LB',
      workersMin: 1,
      workersMax: 2,
    }),
  }
  const deadline = performance.now() + READY_MS
  for (const id of Object.values(endpoints)) {
    while (!(await hasReadyWorker(server, id))) {
      if (performance.now() > deadline) throw new Error(`no worker of ${id} started within ${READY_MS / 1_000} s`)
      await sleep(200)
    }
  }
  return endpoints
}

async function hasReadyWorker(server: RestartableServer, endpoint: string): Promise<boolean> {
  const health = (await request(server, `/v2/${endpoint}/health`))?.json as { workers: { ready: number } } | undefined
  return (health?.workers.ready ?? 0) > 0
}

async function makeOne(server: RestartableServer, wish: NewEndpoint, journal: string): Promise<string> {
  const env = {
    TORTURE_JOURNAL: journal,
    TORTURE_AT_ONCE: String(AT_ONCE),
    TORTURE_STREAMS: wish.streams === true ? 'yes' : 'no',
  }
  const templateId = await mutate(server, 'saveTemplate', 'SaveTemplateInput', {
    name: wish.name,
    imageName: `dir:${fileURLToPath(new URL(wish.folder, import.meta.url))}`,
    containerDiskInGb: 1,
    volumeInGb: 0,
    isServerless: true,
    dockerArgs: wish.command,
    env: Object.entries(env).map(([key, value]) => ({ key, value })),
  })
  return mutate(server, 'saveEndpoint', 'EndpointInput!', {
    name: wish.name,
    templateId,
    ...(wish.type === undefined ? {} : { type: wish.type }),
    instanceIds: ['cpu3g-2-8'],
    idleTimeout: 30,
    workersMin: wish.workersMin,
    workersMax: wish.workersMax,
    scalerType: 'REQUEST_COUNT',
    scalerValue: 8,
  })
}
