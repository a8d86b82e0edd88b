import type { EndpointId, WorkerId } from '../../src/core/ids.ts'
import type { Reclaim } from '../../src/core/workers/platform-report.ts'
import { fencedApi } from '../../src/drivers/kubernetes/fenced-api.ts'
import { KubernetesDriver } from '../../src/drivers/kubernetes/kubernetes.ts'
import { CONTAINER, NAMES } from '../../src/drivers/kubernetes/names.ts'
import { PRODUCT_LABEL } from '../../src/drivers/kubernetes/node-choice.ts'
import type { DriverParts, Platform, SimDriver } from '../platform.ts'
import type { SeededRandom } from '../random.ts'
import type { World } from '../world.ts'
import { type ApiFaults, NO_API_FAULTS } from './api-faults.ts'
import { type AnyObject, type AnyPod, Objects, timestamp } from './objects.ts'
import { SimApi } from './sim-api.ts'

/** Program that a node starts. */
export interface PodProgram {
  readonly workerId: WorkerId
  readonly endpointId: EndpointId
  readonly env: Readonly<Record<string, string>>
  readonly serves: boolean
}

/** Calls of the processes of pods. */
export interface PodHooks {
  readonly start: (program: PodProgram) => void
  readonly terminate: (worker: WorkerId) => void
  readonly die: (worker: WorkerId) => void
  /** The cluster has taken a worker away. */
  readonly reclaimed: (worker: WorkerId, cause: Reclaim['kind']) => void
}

/** A machine of the cluster. */
export interface Node {
  readonly name: string
  readonly product: string | null
  readonly gpus: number
  readonly pods: number
  isCordoned: boolean
  isLost: boolean
}

interface Process {
  readonly worker: WorkerId
  readonly pod: string
  readonly node: string
}

const NAMESPACE = 'sim'
const INSTALLATION = 'simulated1'
const GPU = 'nvidia.com/gpu'
const MAX_WORKERS = 40
/** Silence of a node after which its pods are taken from it. */
const NODE_LOST_S = 20
const STOP_S = 10

/** A cluster: objects, a scheduler, and nodes that run pods. It outlives the servers. */
export class Cluster implements Platform {
  readonly objects: Objects
  readonly frozen: ReadonlySet<WorkerId> = new Set()
  faults: ApiFaults = NO_API_FAULTS
  isAway = false
  readonly nodes: readonly Node[]
  readonly #world: World
  readonly #hooks: PodHooks
  readonly #random: SeededRandom
  readonly #processes = new Map<WorkerId, Process>()
  #isScheduling = false
  #drivers = 0

  constructor(world: World, hooks: PodHooks, gpus: { readonly ada: number; readonly ampere: number }) {
    this.#world = world
    this.#hooks = hooks
    this.#random = world.random('cluster')
    this.objects = new Objects(() => world.clock.now())
    const node = (name: string, product: string | null, count: number): Node => ({
      name,
      product,
      gpus: count,
      pods: 6,
      isCordoned: false,
      isLost: false,
    })
    this.nodes = [
      node('node-1', 'NVIDIA-GeForce-RTX-4090', gpus.ada),
      node('node-2', 'NVIDIA-L4', gpus.ampere),
      node('node-3', null, 0),
    ]
    this.objects.watch(({ kind }) => {
      if (kind === 'pods') this.#scheduleSoon()
    })
  }

  running(): WorkerId[] {
    return [...this.#processes.keys()]
  }

  present(): WorkerId[] {
    return [...this.objects.pods(), ...this.objects.all('secrets')].map(workerFromObject)
  }

  /** The workers whose processes run on a node. */
  on({ name }: Node): WorkerId[] {
    return [...this.#processes.values()].flatMap(({ node, worker }) => (node === name ? [worker] : []))
  }

  /** The worker whose pod has an address. */
  workerAt(ip: string): WorkerId | undefined {
    return this.objects.pods().find(({ status }) => status?.podIP === ip)?.metadata.labels?.[NAMES.worker] as
      | WorkerId
      | undefined
  }

  exit(worker: WorkerId, { code = null, signal = null }: { code?: number | null; signal?: string | null }): void {
    const process = this.#processes.get(worker)
    if (process === undefined) return
    this.#processes.delete(worker)
    this.#ended(process, signal === 'SIGKILL' ? 137 : (code ?? 0))
  }

  driver({ life, clock, notifier, leader }: DriverParts): SimDriver {
    this.#drivers += 1
    const api = new SimApi({
      world: this.#world,
      objects: this.objects,
      life,
      random: this.#world.random(`calls of the cluster ${this.#drivers}`),
      faults: () => this.faults,
      isAway: () => this.isAway,
      end: (pod, graceS) => this.end(pod, graceS),
    })
    const driver = new KubernetesDriver({
      api: fencedApi(api, leader),
      namespace: NAMESPACE,
      clock,
      notifier,
      installation: INSTALLATION,
      maxWorkers: MAX_WORKERS,
      reachesPods: true,
      outputs: { copy: () => ({ finish: async () => {}, resume() {}, close: async () => {} }), forget() {} },
      settings: {
        gpus: { resource: GPU, products: new Map() },
        graceS: 30,
        stopS: STOP_S,
        nodeLostS: NODE_LOST_S,
        volumeClaim: null,
        modelFolder: null,
        priorityClass: null,
        runtimeClass: null,
        nodeSelector: {},
        tolerations: [],
      },
      note: event => this.#world.count(event),
    })
    return { driver, close: () => void driver.close() }
  }

  /** Stops a pod. @returns false for one that is removed at once */
  end(pod: AnyPod, graceS: number): boolean {
    const { name } = pod.metadata
    const worker = workerFromObject(pod)
    const hasEnded = pod.status?.phase === 'Failed' || pod.status?.phase === 'Succeeded'
    if (pod.spec?.nodeName === undefined || hasEnded) return false
    if (graceS === 0) {
      // Nobody waits for its node, which ends it when it learns of that.
      this.#world.clock.after(this.#random.int(50, 1_000), () => this.#kill(worker))
      return false
    }
    if (pod.metadata.deletionTimestamp !== undefined) return true
    this.objects.put('pods', {
      ...pod,
      metadata: {
        ...pod.metadata,
        deletionTimestamp: timestamp(this.#world.clock.monotonic()),
        deletionGracePeriodSeconds: graceS,
      },
    })
    this.#world.clock.after(this.#random.int(20, 500), () => this.#terminate(name, worker, graceS))
    return true
  }

  /** Takes a worker away as the cluster does, in the way of `why`. */
  reclaim(worker: WorkerId, cause: 'evicted' | 'drained' | 'deleted' | 'preempted'): void {
    const process = this.#processes.get(worker)
    const pod = process === undefined ? undefined : (this.objects.find('pods', process.pod) as AnyPod | undefined)
    if (process === undefined || pod === undefined || pod.metadata.deletionTimestamp !== undefined) return
    this.#world.count(`kubernetes: workers that were ${cause}`)
    this.#world.trace.add('cluster', `${worker} is ${cause}`)
    this.#hooks.reclaimed(worker, cause === 'drained' ? 'node_drained' : cause)
    if (cause === 'evicted') {
      this.#processes.delete(worker)
      this.#hooks.die(worker)
      const status = { phase: 'Failed', reason: 'Evicted', message: 'The node was low on resource: memory.' }
      this.objects.put('pods', { ...pod, status: { ...pod.status, ...status } })
      return
    }
    const reason = { drained: 'EvictionByEvictionAPI', preempted: 'PreemptionByScheduler', deleted: '' }[cause]
    const condition = { type: 'DisruptionTarget', status: 'True', reason, message: `it is ${cause}` }
    const conditions = reason === '' ? [] : [condition]
    const marked = { ...pod, status: { ...pod.status, conditions } }
    this.end(reason === '' ? pod : (this.objects.put('pods', marked) as AnyPod), this.#random.pick([1, 5, 30]))
  }

  /** A node loses its power. */
  lose(node: Node): void {
    if (node.isLost) return
    const { clock, trace } = this.#world
    this.#world.count('kubernetes: lost nodes')
    trace.add('cluster', `${node.name} is lost`)
    node.isLost = true
    for (const { worker } of [...this.#processes.values()].filter(process => process.node === node.name)) {
      this.#processes.delete(worker)
      this.#hooks.reclaimed(worker, 'node_lost')
      this.#hooks.die(worker)
    }
    clock.after(5_000, () => this.#silence(node))
    clock.after(5_000 + NODE_LOST_S * 1_000, () => this.#taint(node))
  }

  /** A lost node returns without its pods. */
  restore(node: Node): void {
    node.isCordoned = false
    this.#scheduleSoon()
    if (!node.isLost) return
    node.isLost = false
    this.#world.trace.add('cluster', `${node.name} is back`)
    for (const pod of this.objects.pods()) {
      if (pod.spec?.nodeName !== node.name || this.#processes.has(workerFromObject(pod))) continue
      if (pod.metadata.deletionTimestamp !== undefined) this.objects.remove('pods', pod.metadata.name)
      else if (pod.status?.phase === 'Running') this.#finish(pod, 255, 'Unknown')
      else if (pod.status?.phase === 'Pending') {
        const { name } = pod.metadata
        this.#world.clock.after(this.#random.int(50, 2_000), () => this.#run(name, node))
      }
    }
  }

  /** The control plane receives nothing from a node. */
  #silence(node: Node): void {
    if (!node.isLost) return
    for (const pod of this.objects.pods()) {
      if (pod.spec?.nodeName !== node.name || pod.status?.phase !== 'Running') continue
      this.objects.put('pods', {
        ...pod,
        status: { ...pod.status, conditions: [{ type: 'Ready', status: 'False' }] },
      })
    }
  }

  /** The pods of a silent node are taken from it; they stay until it is back. */
  #taint(node: Node): void {
    if (!node.isLost) return
    for (const pod of this.objects.pods()) {
      if (pod.spec?.nodeName !== node.name || pod.metadata.deletionTimestamp !== undefined) continue
      const condition = { type: 'DisruptionTarget', status: 'True', reason: 'DeletionByTaintManager', message: '' }
      const conditions = [...(pod.status?.conditions ?? []), condition]
      const marked = this.objects.put('pods', { ...pod, status: { ...pod.status, conditions } }) as AnyPod
      this.end(marked, 30)
    }
  }

  #terminate(name: string, worker: WorkerId, graceS: number): void {
    const pod = this.objects.find('pods', name) as AnyPod | undefined
    const node = this.nodes.find(other => other.name === pod?.spec?.nodeName)
    if (pod === undefined || node === undefined || node.isLost) return
    if (!this.#processes.has(worker)) {
      this.objects.remove('pods', name)
      return
    }
    this.#hooks.terminate(worker)
    this.#world.clock.after(graceS * 1_000, () => {
      if (this.objects.find('pods', name)?.metadata.uid === pod.metadata.uid) this.#kill(worker)
    })
  }

  #kill(worker: WorkerId): void {
    if (!this.#processes.has(worker)) return
    this.#hooks.die(worker)
    this.exit(worker, { signal: 'SIGKILL' })
  }

  #ended({ pod: name }: Process, exitCode: number): void {
    const pod = this.objects.find('pods', name) as AnyPod | undefined
    if (pod === undefined) return
    this.#finish(pod, exitCode, exitCode === 0 ? 'Completed' : 'Error')
    if (pod.metadata.deletionTimestamp !== undefined)
      this.#world.clock.after(this.#random.int(1, 300), () => this.objects.remove('pods', name))
  }

  #finish(pod: AnyPod, exitCode: number, reason: string): void {
    const state = { terminated: { exitCode, reason } }
    const status = {
      ...pod.status,
      phase: exitCode === 0 ? 'Succeeded' : 'Failed',
      containerStatuses: [{ name: CONTAINER, state }],
    }
    this.objects.put('pods', { ...pod, status })
  }

  #scheduleSoon(): void {
    if (this.#isScheduling) return
    this.#isScheduling = true
    this.#world.clock.after(this.#random.int(20, 400), () => {
      this.#isScheduling = false
      for (const pod of this.objects.pods()) if (pod.spec?.nodeName === undefined) this.#schedule(pod)
    })
  }

  #schedule(pod: AnyPod): void {
    const { count, products } = gpuDemand(pod)
    const node = this.nodes.find(candidate => {
      if (candidate.isCordoned || candidate.isLost) return false
      const podsOnNode = this.objects.pods().filter(({ spec, status }) => {
        const hasEnded = status?.phase === 'Failed' || status?.phase === 'Succeeded'
        return spec?.nodeName === candidate.name && !hasEnded
      })
      const usedGpus = podsOnNode.reduce((sum, other) => sum + gpuDemand(other).count, 0)
      const isWanted = count === 0 || (candidate.product !== null && products.includes(candidate.product))
      return isWanted && podsOnNode.length < candidate.pods && usedGpus + count <= candidate.gpus
    })
    if (node === undefined) {
      const message = `0/${this.nodes.length} nodes are available: ${this.nodes.length} Insufficient ${GPU}.`
      const conditions = [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }]
      const isReported = pod.status?.conditions?.[0]?.message === message
      if (!isReported) this.objects.put('pods', { ...pod, status: { ...pod.status, phase: 'Pending', conditions } })
      return
    }
    const placed = this.objects.put('pods', {
      ...pod,
      spec: { ...pod.spec, nodeName: node.name },
      status: { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'True' }] },
    })
    this.#world.clock.after(this.#random.int(50, 2_000), () => this.#run(placed.metadata.name, node))
  }

  /** A node starts the container of a pod. */
  #run(name: string, node: Node): void {
    const pod = this.objects.find('pods', name) as AnyPod | undefined
    if (pod === undefined || pod.metadata.deletionTimestamp !== undefined || node.isLost) return
    if (this.#processes.has(workerFromObject(pod)) || pod.status?.phase !== 'Pending') return
    const secret = this.objects.find('secrets', name) as { readonly stringData?: Record<string, string> } | undefined
    if (secret === undefined) {
      const waiting = { reason: 'CreateContainerConfigError', message: `secret "${name}" not found` }
      const containerStatuses = [{ name: CONTAINER, state: { waiting } }]
      this.objects.put('pods', { ...pod, status: { ...pod.status, containerStatuses } })
      this.#world.clock.after(5_000, () => this.#run(name, node))
      return
    }
    const worker = workerFromObject(pod)
    this.#processes.set(worker, { worker, pod: name, node: node.name })
    const podIP = `10.1.${this.objects.version >> 8}.${this.objects.version & 255}`
    const containerStatuses = [{ name: CONTAINER, state: { running: {} } }]
    const conditions = [{ type: 'Ready', status: 'True' }]
    this.objects.put('pods', { ...pod, status: { phase: 'Running', podIP, containerStatuses, conditions } })
    this.#hooks.start({
      workerId: worker,
      endpointId: (pod.metadata.labels?.[NAMES.endpoint] ?? '') as EndpointId,
      env: secret.stringData ?? {},
      serves: pod.metadata.annotations?.[NAMES.serves] !== undefined,
    })
  }
}

function workerFromObject(object: AnyObject): WorkerId {
  return (object.metadata.labels?.[NAMES.worker] ?? '') as WorkerId
}

interface PodAffinity {
  readonly nodeAffinity?: {
    readonly requiredDuringSchedulingIgnoredDuringExecution?: {
      readonly nodeSelectorTerms: readonly {
        readonly matchExpressions: readonly { readonly key: string; readonly values: readonly string[] }[]
      }[]
    }
  }
}

/** The GPUs that a pod asks for, and of which products. */
function gpuDemand({ spec }: AnyPod): { readonly count: number; readonly products: readonly string[] } {
  const count = Number(spec?.containers?.[0]?.resources?.limits?.[GPU] ?? 0)
  const { affinity } = (spec ?? {}) as { readonly affinity?: PodAffinity }
  const terms = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []
  const expressions = terms.flatMap(({ matchExpressions }) => matchExpressions)
  return { count, products: expressions.flatMap(({ key, values }) => (key === PRODUCT_LABEL ? values : [])) }
}
