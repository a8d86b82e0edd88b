/**
 * Nodes of a cluster that run nothing: they are ready, set the pods that the scheduler gives them to Running,
 * and remove them after their deletion. Each pod takes jobs as a worker of a queue does and returns an empty
 * result, all in this process.
 */
import { Agent, request } from 'node:http'
import type { Api } from './api.ts'

const MERGE = 'application/strategic-merge-patch+json'
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases'
/** Interval at which a node renews its lease, well below the limit of the controllers of the tests' clusters. */
const RENEWAL_MS = 3_000

/** Running fake nodes. */
export interface FakeNodes {
  /** Number of pods that run on them now. */
  running(): number
  /** Number of jobs that their workers have done. */
  done(): number
  close(): void
}

interface Pod {
  readonly metadata: {
    readonly name: string
    readonly namespace: string
    readonly deletionTimestamp?: string
    readonly resourceVersion: string
  }
  readonly spec: {
    readonly nodeName?: string
    readonly containers: readonly {
      readonly name: string
      readonly image: string
      readonly env?: readonly Variable[]
      readonly envFrom?: readonly { readonly secretRef?: { readonly name: string } }[]
    }[]
  }
  readonly status?: { readonly phase?: string }
}

interface Variable {
  readonly name: string
  readonly value?: string
}

/** Adds nodes to a cluster. @param each maximum number of pods of a node */
export async function addFakeNodes(api: Api, count: number, each: number): Promise<FakeNodes> {
  const names = Array.from({ length: count }, (_, at) => `fake${at}`)
  await Promise.all(names.map(name => addNode(api, name, each)))
  const renewals = setInterval(() => names.forEach(name => void renew(api, name).catch(() => {})), RENEWAL_MS)
  const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY })
  const workers = new Map<string, FakeWorker>()
  let address = 0
  let done = 0
  const onPod = (type: string, pod: Pod) => {
    const { name, namespace, deletionTimestamp } = pod.metadata
    if (!names.includes(pod.spec.nodeName ?? '')) return
    const path = `/api/v1/namespaces/${namespace}/pods/${name}`
    const worker = workers.get(name)
    if (type === 'DELETED') {
      worker?.stop()
      workers.delete(name)
    } else if (deletionTimestamp !== undefined) {
      if (worker?.isLeaving === true) return
      worker?.stop()
      void api('DELETE', `${path}?gracePeriodSeconds=0`).catch(() => {})
    } else if (worker === undefined) {
      address += 1
      const newWorker = new FakeWorker(agent, () => (done += 1))
      workers.set(name, newWorker)
      void startPod(api, path, pod, `10.217.${address >> 8}.${address & 255}`)
        .then(env => newWorker.run(env))
        .catch(error => console.error(String(error)))
    }
  }
  const watch = await followPods(api, onPod)
  return {
    running: () => workers.size,
    done: () => done,
    close() {
      clearInterval(renewals)
      watch.close()
      for (const worker of workers.values()) worker.stop()
      agent.destroy()
    },
  }
}

async function addNode(api: Api, name: string, pods: number): Promise<void> {
  const room = { cpu: '4000', memory: '16Ti', 'ephemeral-storage': '100Ti', pods: String(pods) }
  const labels = { 'kubernetes.io/hostname': name, 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'amd64' }
  await api('POST', '/api/v1/nodes', { metadata: { name, labels } })
  await api('PATCH', `/api/v1/nodes/${name}/status`, { status: { capacity: room, allocatable: room } }, MERGE)
  await renew(api, name)
}

/**
 * Renews the lease of a node, and sets it ready again: the controllers may take it for lost, such as
 * while the API server is down.
 */
async function renew(api: Api, name: string): Promise<void> {
  const now = new Date().toISOString()
  const spec = { holderIdentity: name, leaseDurationSeconds: 40, renewTime: now.replace('Z', '000Z') }
  const { status } = await api('PATCH', `${LEASES}/${name}`, { spec }, 'application/merge-patch+json')
  if (status === 404) await api('POST', LEASES, { metadata: { name }, spec })
  const ready = { type: 'Ready', status: 'True', reason: 'KubeletReady', lastHeartbeatTime: now }
  await api('PATCH', `/api/v1/nodes/${name}/status`, { status: { conditions: [ready] } }, MERGE)
}

/** Passes each pod of the cluster and its changes to `onPod`; after the end of a watch, all pods again. */
async function followPods(api: Api, onPod: (type: string, pod: Pod) => void): Promise<{ close(): void }> {
  let current: { close(): void } | null = null
  let isClosed = false
  const follow = async () => {
    const { json } = await api('GET', '/api/v1/pods')
    const { items, metadata } = json as {
      readonly items: readonly Pod[]
      readonly metadata: { readonly resourceVersion: string }
    }
    for (const pod of items) onPod('ADDED', pod)
    const path = `/api/v1/pods?watch=true&resourceVersion=${metadata.resourceVersion}`
    current = api.follow(
      path,
      line => {
        const { type, object } = JSON.parse(line) as { readonly type: string; readonly object: Pod }
        if (type !== 'ERROR') onPod(type, object)
      },
      () => {
        if (!isClosed) void follow().catch(() => {})
      },
    )
  }
  await follow()
  return {
    close() {
      isClosed = true
      current?.close()
    },
  }
}

/** Lets a pod run. @returns its environment */
async function startPod(api: Api, path: string, pod: Pod, podIP: string): Promise<Map<string, string>> {
  const startedAt = new Date().toISOString()
  const containerStatuses = pod.spec.containers.map(({ name, image }) => ({
    name,
    image,
    imageID: image,
    ready: true,
    started: true,
    restartCount: 0,
    containerID: `fake://${name}`,
    state: { running: { startedAt } },
  }))
  const conditions = [{ type: 'Ready', status: 'True' }]
  const status = {
    phase: 'Running',
    podIP,
    podIPs: [{ ip: podIP }],
    startTime: startedAt,
    containerStatuses,
    conditions,
  }
  await api('PATCH', `${path}/status`, { status }, MERGE)
  const env = new Map<string, string>()
  for (const { envFrom = [], env: variables = [] } of pod.spec.containers) {
    for (const { secretRef } of envFrom) {
      if (secretRef === undefined) continue
      const { json } = await api('GET', `/api/v1/namespaces/${pod.metadata.namespace}/secrets/${secretRef.name}`)
      const { data = {} } = json as { readonly data?: Readonly<Record<string, string>> }
      for (const [name, value] of Object.entries(data)) env.set(name, Buffer.from(value, 'base64').toString())
    }
    for (const { name, value = '' } of variables) env.set(name, value)
  }
  return env
}

/** The side of the worker protocol that a worker of a queue has. */
class FakeWorker {
  isLeaving = false
  readonly #agent
  readonly #onDone

  constructor(agent: Agent, onDone: () => void) {
    this.#agent = agent
    this.#onDone = onDone
  }

  /** Takes jobs until it is stopped. */
  async run(env: ReadonlyMap<string, string>): Promise<void> {
    const worker = env.get('RUNPOD_POD_ID') ?? ''
    const urlFor = (name: string, id: string) =>
      (env.get(name) ?? '').replace('$RUNPOD_POD_ID', worker).replace('$ID', id)
    const token = env.get('RUNPOD_AI_API_KEY') ?? ''
    while (!this.isLeaving) {
      const response = await this.#call('GET', urlFor('RUNPOD_WEBHOOK_GET_JOB', worker), token).catch(() => null)
      if (response?.status === 200) {
        const { id } = JSON.parse(response.text) as { readonly id: string }
        await this.#call('POST', urlFor('RUNPOD_WEBHOOK_POST_OUTPUT', id), token, '{"output":{}}').catch(() => null)
        this.#onDone()
      } else if (response === null || response.status >= 400) await new Promise(resolve => setTimeout(resolve, 1_000))
    }
  }

  stop(): void {
    this.isLeaving = true
  }

  #call(method: string, url: string, token: string, body?: string): Promise<{ status: number; text: string }> {
    return new Promise((resolve, reject) => {
      const headers = { authorization: token, ...(body === undefined ? {} : { 'content-type': 'application/json' }) }
      const call = request(url, { method, agent: this.#agent, headers }, response => {
        let text = ''
        response.setEncoding('utf8').on('data', (block: string) => (text += block))
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text })).on('error', reject)
      })
      call.on('error', reject)
      call.end(body)
    })
  }
}
