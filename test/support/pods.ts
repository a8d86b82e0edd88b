/** Installations that run their workers as pods, on the cluster of a test. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { EndpointId, WorkerId } from '../../src/core/ids.ts'
import { ANY_PLACE } from '../../src/core/workers/worker-wish.ts'
import { clusterAccess } from '../../src/drivers/kubernetes/access.ts'
import { HttpsApi } from '../../src/drivers/kubernetes/https-api.ts'
import { KubernetesDriver, type KubernetesDriverOptions } from '../../src/drivers/kubernetes/kubernetes.ts'
import { podName } from '../../src/drivers/kubernetes/names.ts'
import { createPodOutputs } from '../../src/drivers/kubernetes/pod-output.ts'
import type { WorkerSpec } from '../../src/ports/driver.ts'
import { systemClock } from '../../src/system/clock.ts'
import { createNotifier } from '../../src/system/coordination/notifier.ts'
import { createWorkerLogs } from '../../src/system/worker-logs/worker-logs.ts'
import { nodeImage, type TestCluster } from './kubernetes.ts'
import { patience } from './patience.ts'
import { PLAIN_WORKER, POD_SETTINGS } from './worker-spec.ts'

/** Namespace of the pods of tests. */
export const NAMESPACE = 'default'

/** A pod, as far as tests look at it. */
export interface SeenPod {
  readonly metadata: {
    readonly name: string
    readonly uid: string
    readonly deletionTimestamp?: string
    readonly labels?: Readonly<Record<string, string>>
  }
  readonly spec: { readonly nodeName?: string }
  readonly status: {
    readonly phase: string
    readonly containerStatuses?: readonly { readonly containerID?: string }[]
  }
}

/** The GPUs that {@link giveGpus} gives. */
export const GPU_TYPE = 'NVIDIA L4'

/**
 * Makes the node of a cluster report GPUs. Pods that request GPUs request nothing
 * else, so that many have room.
 */
export async function giveGpus(cluster: TestCluster, number: number): Promise<void> {
  const node = `/api/v1/nodes/${cluster.node}`
  const labels = { 'nvidia.com/gpu.product': GPU_TYPE.replaceAll(' ', '-') }
  const capacity = { 'nvidia.com/gpu': String(number) }
  const type = 'application/merge-patch+json'
  await cluster.api('PATCH', node, { metadata: { labels } }, type)
  await cluster.api('PATCH', `${node}/status`, { status: { capacity } }, type)
  const allocatable = async () => {
    const { json } = await cluster.api('GET', node)
    const { status } = json as { readonly status: { readonly allocatable: Readonly<Record<string, string>> } }
    return status.allocatable['nvidia.com/gpu']
  }
  while ((await allocatable()) !== String(number)) await new Promise<void>(done => systemClock.after(100, done))
}

/** Longest delay until the kubelet receives a change of its node. */
const KUBELET_MS = 1_000

async function cordon(cluster: TestCluster, unschedulable: boolean): Promise<void> {
  const type = 'application/merge-patch+json'
  await cluster.api('PATCH', `/api/v1/nodes/${cluster.node}`, { spec: { unschedulable } }, type)
}

let count = 0

/** The spec of a new worker that runs a command. */
function workerSpec(words: readonly string[], changes: Partial<WorkerSpec> = {}): WorkerSpec {
  count += 1
  const workerId = `w${process.pid}x${count}` as WorkerId
  return {
    ...PLAIN_WORKER,
    workerId,
    endpointId: 'endpoint' as EndpointId,
    image: nodeImage,
    args: JSON.stringify({ cmd: words }),
    protocolEnv: { RUNPOD_POD_ID: workerId },
    ...changes,
  }
}

/** Creates an installation on a cluster. Each start of its server creates a driver. */
export function openPodMachine(cluster: TestCluster) {
  const folder = mkdtempSync(join(tmpdir(), 'runyard-pods-'))
  const installation = createHash('sha256').update(folder).digest('hex').slice(0, 12)
  const notifier = createNotifier()
  const logs = createWorkerLogs({ folder: join(folder, 'logs'), clock: systemClock })
  const access = clusterAccess({ where: 'kubeconfig', context: null, env: cluster.env, clock: systemClock })
  const opened: { readonly driver: KubernetesDriver; readonly close: () => void }[] = []
  const podPath = (worker: WorkerId) => `/api/v1/namespaces/${NAMESPACE}/pods/${podName(worker)}`
  const signal = async (worker: WorkerId, name: string) => {
    const { json } = await cluster.api('GET', podPath(worker))
    const id = (json as SeenPod).status.containerStatuses?.[0]?.containerID?.replace('containerd://', '') ?? ''
    const socket = join(cluster.folder, 'containerd.sock')
    execFileSync('ctr', ['--address', socket, '--namespace', 'k8s.io', 'tasks', 'kill', '--signal', name, id])
  }
  const output = async (worker: WorkerId) => (await logs.tail(worker, 10_000)).map(({ line }) => line)
  const countLines = async (worker: WorkerId, wanted: string) =>
    (await output(worker)).filter(line => line === wanted).length
  const untilPrinted = async (worker: WorkerId, wanted: string, times = 1) => {
    while ((await countLines(worker, wanted)) < times) await new Promise<void>(done => systemClock.after(20, done))
  }
  return {
    notifier,
    output,
    said: untilPrinted,
    /** Creates a driver, like a server that starts. */
    driver(changes: Partial<KubernetesDriverOptions> = {}): KubernetesDriver {
      const api = new HttpsApi(access, systemClock)
      const outputs = createPodOutputs({ api, namespace: NAMESPACE, clock: systemClock, logs, stateDir: folder })
      const driver = new KubernetesDriver({
        api,
        outputs,
        notifier,
        installation,
        namespace: NAMESPACE,
        clock: systemClock,
        settings: {
          ...POD_SETTINGS,
          graceS: 120,
          stopS: Math.ceil(3 * patience()),
        },
        maxWorkers: 8,
        reachesPods: true,
        note: () => {},
        ...changes,
      })
      opened.push({ driver, close: () => api.close() })
      return driver
    },
    spec: workerSpec,
    /**
     * Number of SIGTERMs that a worker got, once it got one. The worker writes `asked` then, and `later` on SIGWINCH.
     */
    async asked(worker: WorkerId): Promise<number> {
      await untilPrinted(worker, 'asked')
      const count = await countLines(worker, 'later')
      // Of two pending signals, the one with the lower number is delivered first.
      await signal(worker, 'SIGWINCH')
      await untilPrinted(worker, 'later', count + 1)
      return countLines(worker, 'asked')
    },
    /** Waits until a worker that writes `later` on SIGWINCH has done so for one that is sent now. */
    async responds(worker: WorkerId): Promise<void> {
      const count = await countLines(worker, 'later')
      await signal(worker, 'SIGWINCH')
      await untilPrinted(worker, 'later', count + 1)
    },
    /**
     * Control of the platform. A worker without room requests a GPU; the cluster has no GPU
     * until the test makes room.
     */
    platform: {
      async homeless(kind: 'no_room' | 'no_such_node'): Promise<WorkerSpec> {
        await giveGpus(cluster, 0)
        const type = kind === 'no_room' ? GPU_TYPE : 'NVIDIA H100 PCIe'
        const words = ['sh', '-c', 'trap "exit 0" TERM; echo ready; while :; do sleep 0.05; done']
        return workerSpec(words, { wish: { ...ANY_PLACE, gpuTypes: [type], gpuCount: 1 } })
      },
      async makeRoom(): Promise<void> {
        // The kubelet receives its own GPUs after the scheduler, and rejects pods until then.
        await cordon(cluster, true)
        await giveGpus(cluster, 8)
        await new Promise<void>(done => systemClock.after(KUBELET_MS, done))
        await cordon(cluster, false)
      },
      async remove(worker: WorkerId): Promise<void> {
        await cluster.api('DELETE', podPath(worker))
      },
    },
    async close(): Promise<void> {
      for (const { driver, close } of opened) {
        await driver.close()
        close()
      }
      const selector = encodeURIComponent(`runyard.dev/installation=${installation}`)
      for (const kind of ['pods', 'secrets'])
        await cluster.api(
          'DELETE',
          `/api/v1/namespaces/${NAMESPACE}/${kind}?labelSelector=${selector}&gracePeriodSeconds=0`,
        )
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}
