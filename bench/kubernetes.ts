/**
 * Costs of workers in pods for a server and the API server of their cluster, while an endpoint scales
 * from zero to many and back:
 *
 *     ./bin/node bench/kubernetes.ts [workers, 1000 unless given]
 *
 * The cluster is a real one of `scripts/kubernetes`, on this machine; its nodes are fake and run nothing,
 * and the workers take jobs from this process. It prints the durations, the memory of the server at each
 * stage, and the calls of the server by verb and kind of object, from the audit log of the API server.
 * Nodes without a kubelet have no output to read: each `get pods/log` is refused and repeated, so these calls are
 * more frequent than on a real node, where most pods have one stream.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Cluster, startCluster } from '../scripts/kubernetes/cluster.ts'
import { addFakeNodes, type FakeNodes } from '../scripts/kubernetes/fake-nodes.ts'
import { buildPrograms, usualFolder } from '../scripts/kubernetes/programs.ts'
import { freePort } from '../test/support/free-ports.ts'
import { type ReadyServer, ready } from './harness/ready.ts'

const WORKERS = Number(process.argv[2] ?? 1_000)
const PODS_OF_NODE = 100
const STEADY_MS = 60_000
const LONGEST_MS = 600_000
const began = performance.now()

const printLine = (text: string) =>
  console.log(`${((performance.now() - began) / 1000).toFixed(1).padStart(6)} s  ${text}`)

interface Server extends ReadyServer {
  readonly child: ChildProcess
}

async function startServer(cluster: Cluster, programs: string, folder: string): Promise<Server> {
  const host = cluster.hostAddress
  const port = String(await freePort(host))
  const args = [
    ...['serve', '--port', '0', '--json', '--log-level', 'warn', '--data-dir', folder],
    ...['--docker', 'off', '--kubernetes', 'kubeconfig', '--kubernetes-worker-url', `http://${host}:${port}`],
    ...['--kubernetes-worker-host', host, '--kubernetes-worker-port', port, '--max-workers', String(WORKERS)],
  ]
  const env = { ...process.env, KUBECONFIG: cluster.kubeconfig, PATH: `${programs}:${process.env.PATH}` }
  const child = spawn('./bin/runyard', args, { env, stdio: ['ignore', 'pipe', 'inherit'] })
  return { child, ...(await ready(child)) }
}

async function ask({ url, key }: Server, method: string, path: string, body?: object) {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const response = await fetch(`${url}${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path} got ${response.status}: ${text}`)
  return text === '' ? {} : JSON.parse(text)
}

async function until(condition: string, isSo: () => Promise<boolean> | boolean): Promise<void> {
  const end = performance.now() + LONGEST_MS
  while (!(await isSo())) {
    if (performance.now() > end) throw new Error(`timed out while waiting until ${condition}`)
    await sleep(250)
  }
}

function memoryMb({ pid }: ReadyServer): number {
  const [, kb] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Math.round(Number(kb) / 1024)
}

/** A function that returns the calls of the server since its previous call. */
function callCounter(cluster: Cluster): () => string {
  let read = 0
  return () => {
    const lines = readFileSync(join(cluster.folder, 'audit.log'), 'utf8').trimEnd().split('\n')
    const counts = new Map<string, number>()
    for (const line of lines.slice(read)) {
      const { user, userAgent, verb, stage, objectRef } = JSON.parse(line) as Note
      // Other callers have other names; the log has a watch when it begins, and again when it ends.
      if (user.username !== 'admin' || userAgent !== 'runyard' || (verb === 'watch' && stage !== 'ResponseStarted'))
        continue
      const name = `${verb} ${objectRef?.resource ?? ''}${objectRef?.subresource === undefined ? '' : `/${objectRef.subresource}`}`
      counts.set(name, (counts.get(name) ?? 0) + 1)
    }
    read = lines.length
    const sorted = [...counts].sort((a, b) => b[1] - a[1])
    return sorted.map(([name, count]) => `${name} ${count}`).join(', ')
  }
}

interface Note {
  readonly user: { readonly username: string }
  readonly userAgent?: string
  readonly verb: string
  readonly stage: string
  readonly objectRef?: { readonly resource?: string; readonly subresource?: string }
}

async function measure(cluster: Cluster, nodes: FakeNodes, server: Server): Promise<void> {
  const calls = callCounter(cluster)
  const stage = (state: string) =>
    printLine(`${state}; the server has ${memoryMb(server)} MB\n          its calls: ${calls()}`)
  const scaling = { type: 'REQUEST_COUNT', requestCount: 1 }
  const settings = { name: 'many', type: 'QUEUE', scaling, cpu: [{ id: 'cpu3c', vcpuCount: 2 }], image: 'worker:1' }
  const { id } = await ask(server, 'POST', '/v2/serverless', {
    ...settings,
    workers: { min: 0, max: WORKERS },
  })
  stage('without workers')
  const idle = async () => (await ask(server, 'GET', `/v2/${id}/health`)).workers.idle as number
  await ask(server, 'PATCH', `/v2/serverless/${id}`, { workers: { min: WORKERS, max: WORKERS } })
  await until(`${WORKERS} pods run`, () => nodes.running() >= WORKERS)
  printLine(`${WORKERS} pods run`)
  await until(`${WORKERS} workers are ready`, async () => (await idle()) >= WORKERS)
  stage(`${WORKERS} workers are ready`)
  await sleep(STEADY_MS)
  stage(`after a minute in which nothing happened`)
  for (let count = 0; count < 5 * WORKERS; count += 100)
    await Promise.all(Array.from({ length: 100 }, () => ask(server, 'POST', `/v2/${id}/run`, { input: {} })))
  await until(
    'all jobs are done',
    async () => (await ask(server, 'GET', `/v2/${id}/health`)).jobs.completed >= 5 * WORKERS,
  )
  stage(`${5 * WORKERS} jobs were done`)
  await ask(server, 'PATCH', `/v2/serverless/${id}`, { workers: { min: 0, max: 0 } })
  await until('no pod is left', () => nodes.running() === 0)
  stage('no pod is left')
}

const programs = process.env.RUNYARD_TEST_KUBERNETES ?? usualFolder()
const folder = mkdtempSync(join(tmpdir(), 'runyard-bench-'))
await buildPrograms(programs)
const cluster = await startCluster({ programs, audits: true })
const unschedulable = { spec: { unschedulable: true } }
await cluster.api('PATCH', `/api/v1/nodes/${cluster.node}`, unschedulable, 'application/merge-patch+json')
const nodes = await addFakeNodes(cluster.api, Math.ceil(WORKERS / PODS_OF_NODE), PODS_OF_NODE)
const server = await startServer(cluster, programs, folder)
try {
  await measure(cluster, nodes, server)
} finally {
  server.child.kill('SIGKILL')
  nodes.close()
  await cluster.stop()
  rmSync(folder, { recursive: true, force: true })
}
