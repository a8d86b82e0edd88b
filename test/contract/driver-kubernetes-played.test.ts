/**
 * The contract of drivers for pods of a cluster in memory, with nodes that do what nodes do. On a real one
 * it runs where there is one.
 */
import assert from 'node:assert/strict'
import type { EndpointId, WorkerId } from '../../src/core/ids.ts'
import type { KubernetesCall, PodObject } from '../../src/drivers/kubernetes/api.ts'
import { KubernetesDriver } from '../../src/drivers/kubernetes/kubernetes.ts'
import { podName } from '../../src/drivers/kubernetes/names.ts'
import { systemClock } from '../../src/system/clock.ts'
import { createNotifier } from '../../src/system/coordination/notifier.ts'
import { PlayedKubernetes } from '../support/played-kubernetes.ts'
import { PLAIN_WORKER, POD_SETTINGS } from '../support/worker-spec.ts'
import { type DriverHarness, driverContract, type PlatformHand } from './driver.ts'

const WAITS: Readonly<Record<string, string>> = {
  no_room: '0/3 nodes are available: 3 Insufficient cpu.',
  no_such_node: "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.",
}

/** A cluster whose scheduler and nodes act at once. What a pod does stands in its command. */
class LivingKubernetes extends PlayedKubernetes {
  /** Number of stop signals to the program of each pod. */
  readonly stopSignals = new Map<string, number>()
  #count = 0

  override async call<Result>(call: KubernetesCall): Promise<Result> {
    const isPod = call.path.includes('/pods')
    const name = call.method === 'POST' ? (call.body as PodObject).metadata.name : (call.path.split('/').at(-1) ?? '')
    const before = this.find('pods', name)
    const result = await super.call<Result>(call)
    if (isPod && call.method === 'POST') queueMicrotask(() => this.#place(name))
    if (isPod && call.method === 'DELETE' && before !== undefined) this.#signal(name, before.metadata.deletionTimestamp)
    return result
  }

  /** Its node and its program. */
  settle(name: string): void {
    const [behavior] = this.#words(name)
    this.#count += 1
    const podIP = `10.1.0.${this.#count}`
    this.status(name, { running: {} }, { podIP })
    if (behavior === 'failing') this.end(name, { exitCode: 3, reason: 'Error' })
  }

  #words(name: string): readonly string[] {
    const { spec } = this.find('pods', name) as PodObject & { spec?: { containers: { args?: string[] }[] } }
    return spec?.containers[0]?.args ?? []
  }

  #place(name: string): void {
    if (this.find('pods', name) === undefined) return
    const message = WAITS[this.#words(name)[1] ?? '']
    if (message === undefined) {
      this.settle(name)
      return
    }
    const conditions = [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }]
    this.change(name, () => ({ status: { phase: 'Pending', conditions } }))
  }

  /** A program receives the first deletion; it is killed when its time is over, which is at once for a short one. */
  #signal(name: string, earlier: string | undefined): void {
    const pod = this.find('pods', name)
    if (pod === undefined) return
    if (earlier === undefined) this.stopSignals.set(name, (this.stopSignals.get(name) ?? 0) + 1)
    const [behavior] = this.#words(name)
    if (behavior !== 'stubborn' && earlier === undefined) this.end(name, { exitCode: 0, reason: 'Completed' })
    else if (pod.metadata.deletionGracePeriodSeconds === 1) this.end(name, { exitCode: 137, reason: 'Error' })
  }
}

async function open(): Promise<DriverHarness> {
  const api = new LivingKubernetes()
  const notifier = createNotifier()
  const make = () =>
    new KubernetesDriver({
      api,
      notifier,
      clock: systemClock,
      outputs: { copy: () => ({ finish: async () => {}, resume: () => {}, close: async () => {} }), forget: () => {} },
      namespace: 'n',
      installation: 'inst1',
      settings: POD_SETTINGS,
      maxWorkers: 8,
      reachesPods: true,
      note: () => {},
    })
  let driver = make()
  let count = 0
  const spec: DriverHarness['spec'] = (behavior, changes) => {
    count += 1
    return { ...aSpec(`w${count}`), args: behavior, ...changes }
  }
  const platform: PlatformHand = {
    homeless: async kind => spec('obedient', { args: `obedient ${kind}` }),
    makeRoom: async worker => api.settle(podName(worker)),
    async remove(worker) {
      await api.call({ method: 'DELETE', path: `/api/v1/namespaces/n/pods/${podName(worker)}`, body: {} })
    },
  }
  return {
    notifier,
    get driver() {
      return driver
    },
    spec,
    sharesPorts: false,
    answers: false,
    unusable: { image: 'No Image', args: '' },
    ready: async () => {},
    asked: async worker => api.stopSignals.get(podName(worker)) ?? 0,
    frozen: async () => assert.fail('no pod can be frozen'),
    responds: async () => {},
    async restart() {
      await driver.close()
      driver = make()
      return driver
    },
    close: () => driver.close(),
    platform,
  }
}

function aSpec(id: string) {
  return {
    ...PLAIN_WORKER,
    workerId: id as WorkerId,
    endpointId: 'e1' as EndpointId,
    image: 'app:1',
    args: '',
  }
}

driverContract('Kubernetes', open, { freezes: false, places: true })
