/** Servers whose workers are pods, and jobs of such workers that wait for the test. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { freePort } from '../../support/free-ports.ts'
import { nodeImage, type TestCluster } from '../../support/kubernetes.ts'
import type { SeenPod } from '../../support/pods.ts'
import { atEnd } from './cleanup.ts'
import { ask, statusOf, submit, whenFinal } from './client.ts'
import { type ContainerWish, containerEndpoint, explanationOf } from './containers.ts'
import { root, type Server, type ServerOptions, startServer } from './server.ts'
import { until } from './until.ts'

const PODS = '/api/v1/namespaces/default/pods'
const MERGE = 'application/merge-patch+json'
/** A pool with the GPUs that {@link giveGpus} gives. */
const POOL = 'AMPERE_24'

/** A worker of ours. A job may wait for a gate, or take more memory than there is when it comes there first. */
const WORKER = `import { start } from '@runyard/worker'
const pause = () => new Promise(done => setTimeout(done, 50))
const handler = async ({ input }) => {
  if (input.eat !== undefined && (await (await fetch(input.eat)).text()) === '1')
    for (const all = []; ; ) all.push(Buffer.alloc(64 << 20, 1))
  while (input.gate !== undefined && !(await fetch(input.gate).catch(() => null))?.ok) await pause()
  return input.say ?? null
}
console.log('this worker is', process.env.RUNPOD_POD_ID)
await start({ handler })`

/** The command of the worker of these tests. */
export const nodeWords = ['node', '--input-type=module', '-e', WORKER]

/** Longest start of a pod while the machine is busy. */
export const POD_MS = 60_000

/** A server whose workers are pods. */
export interface PodServer extends Server {
  /** The port that its workers call. */
  readonly workerPort: number
}

/**
 * Starts a server that runs pods on a cluster, as somebody outside of the cluster does who has a route to its pods.
 * @param previous the server whose workers it takes over
 */
export async function startPodServer(
  cluster: TestCluster,
  options: ServerOptions = {},
  previous?: PodServer,
): Promise<PodServer> {
  const host = cluster.hostAddress
  const workerPort = previous?.workerPort ?? (await freePort(host))
  const port = String(workerPort)
  const same = previous === undefined ? {} : { dataDir: previous.dataDir, port: previous.port }
  const args = [
    ...['--docker', 'off', '--kubernetes', 'kubeconfig', '--kubernetes-pods-reachable'],
    ...['--kubernetes-worker-url', `http://${host}:${port}`, '--kubernetes-worker-host', host],
    ...['--kubernetes-worker-port', port, ...(options.args ?? [])],
  ]
  const server = await startServer({ ...same, ...options, args, env: { ...cluster.env, ...options.env } })
  return Object.assign(server, { workerPort })
}

/** Makes an endpoint whose workers request one of these GPUs; that of {@link nodeWords} by default. */
export function podEndpoint(server: Server, wish: ContainerWish = {}): Promise<string> {
  const { settings = {}, ...rest } = wish
  const gpu = { instanceIds: undefined, gpuIds: POOL, gpuCount: 1, idleTimeout: 3600 }
  const words = rest.image === undefined ? { words: nodeWords } : {}
  return containerEndpoint(server, { image: nodeImage, ...words, ...rest, settings: { ...gpu, ...settings } })
}

/** Deletes an endpoint. */
export async function dropEndpoint(server: Server, endpoint: string): Promise<void> {
  await ask(server, `/v2/serverless/${endpoint}`, { method: 'DELETE' })
}

/** All pods of workers on a cluster. */
export async function podsOf(cluster: TestCluster): Promise<readonly SeenPod[]> {
  const { json } = await cluster.api('GET', `${PODS}?labelSelector=app.kubernetes.io%2Fmanaged-by%3Drunyard`)
  return (json as { readonly items: readonly SeenPod[] }).items
}

/** Removes all pods of workers and what belongs to them, whoever started them, for the next test file. */
export async function removePods(cluster: TestCluster): Promise<void> {
  const ours = 'labelSelector=app.kubernetes.io%2Fmanaged-by%3Drunyard'
  for (const kind of ['pods', 'secrets'])
    await cluster.api('DELETE', `/api/v1/namespaces/default/${kind}?${ours}&gracePeriodSeconds=0`)
  await until('all pods to be gone', async () => (await podsOf(cluster)).length === 0, POD_MS)
}

/** The path of the pod of a worker. */
export function podPath(worker: string): string {
  return `${PODS}/runyard-${worker}`
}

/** Evicts the pod of a worker, as the drain of its node does. */
export async function evict(cluster: TestCluster, worker: string): Promise<number> {
  const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: `runyard-${worker}` } }
  return (await cluster.api('POST', `${podPath(worker)}/eviction`, eviction)).status
}

/** Lets the node take new pods, or not. */
export async function cordon(cluster: TestCluster, unschedulable: boolean): Promise<void> {
  await cluster.api('PATCH', `/api/v1/nodes/${cluster.node}`, { spec: { unschedulable } }, MERGE)
}

/** The options with which the guide drains a node. */
export function guideOptions(): string[] {
  const guide = readFileSync(join(root, 'docs/guides/kubernetes.md'), 'utf8')
  const [, options = ''] = /^kubectl drain <node> (.*)$/m.exec(guide) ?? []
  return options.split(' ')
}

/**
 * Drains the node of a cluster.
 * @param onText receives the output of the command as it grows
 * @returns its end, and its whole output
 */
export async function drain(
  cluster: TestCluster,
  options: readonly string[],
  onText: (said: string) => void = () => {},
): Promise<{ readonly code: number | null; readonly said: string }> {
  const child = spawn('kubectl', ['drain', cluster.node, ...options, '--timeout=120s'], { env: cluster.env })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
      onText(output)
    })
  const code = await new Promise<number | null>(resolve => child.once('close', resolve))
  return { code, said: output }
}

/** Gates at which jobs in pods wait. */
export interface Gates {
  /** The address of a gate. */
  url(name: string): string
  /** Waits until a job reached a gate. */
  reached(name: string): Promise<void>
  /** Lets all jobs at a gate pass. */
  open(name: string): void
}

/** Opens a server of gates that pods of a cluster reach. */
export async function openGates(cluster: TestCluster): Promise<Gates> {
  const visits = new Map<string, number>()
  const opened = new Set<string>()
  const server = createServer((request, response) => {
    const name = request.url ?? ''
    visits.set(name, (visits.get(name) ?? 0) + 1)
    response.writeHead(opened.has(name) ? 200 : 503).end(String(visits.get(name)))
  })
  await new Promise<void>(resolve => server.listen(0, cluster.hostAddress, resolve))
  atEnd(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return {
    url: name => `http://${cluster.hostAddress}:${port}/${name}`,
    reached: async name => void (await until(`a job to come to ${name}`, () => visits.has(`/${name}`), POD_MS)),
    open: name => void opened.add(`/${name}`),
  }
}

/** Waits until the explanation of an endpoint's waiting jobs matches. */
export async function explained(server: Server, endpoint: string, pattern: RegExp, forMs = POD_MS) {
  let last = ''
  const look = async () => {
    const explanation = await explanationOf(server, endpoint)
    last = `${explanation.cause}: ${explanation.summary}`
    return pattern.test(explanation.summary) && explanation
  }
  return until(`the reason ${pattern}`, look, forMs).catch(error => {
    throw new Error(`${error.message}; the last one is ${last}`)
  })
}

/** A job that waits at the gate of its name, with its endpoint and its worker. */
export interface GatedJob {
  readonly gate: string
  readonly endpoint: string
  readonly job: string
  readonly worker: string
}

/** Makes an endpoint with a job, and waits until the job reached its gate. */
export async function jobAtGate(
  server: Server,
  gates: Gates,
  gate: string,
  wish: ContainerWish = {},
): Promise<GatedJob> {
  const endpoint = await podEndpoint(server, wish)
  const job = await submit(server, endpoint, { say: gate, gate: gates.url(gate) })
  await gates.reached(gate)
  const { workerId = '' } = await statusOf(server, endpoint, job)
  return { gate, endpoint, job, worker: workerId }
}

/** Lets a job pass, holds it to its result, and deletes its endpoint. */
export async function passGate(server: Server, gates: Gates, { gate, endpoint, job }: GatedJob, forMs = POD_MS) {
  gates.open(gate)
  const done = await whenFinal(server, endpoint, job, forMs)
  assert.deepEqual([done.status, done.output], ['COMPLETED', gate])
  await dropEndpoint(server, endpoint)
  return done
}
