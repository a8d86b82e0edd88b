/** Load-balancing endpoints in a rig, with requests that a test begins and ends itself. */

import type { TestContext } from 'node:test'
import type { OpenCircuit } from '../../src/core/balancing/circuit-breaker.ts'
import { NO_TRAFFIC, type TrafficLoad } from '../../src/core/balancing/traffic.ts'
import type { EndpointId, WorkerId } from '../../src/core/ids.ts'
import type { BalancedEndpoint, Target } from '../../src/core/workers/socket-address.ts'
import type { Notifier } from '../../src/ports/notifier.ts'
import type { Targets, Traffic } from '../../src/ports/targets.ts'
import { type EndpointFields, openRig, type Rig, type RigOptions, type RigWorker } from './rig.ts'

/** The default input of a load-balancing endpoint. */
export const BALANCED: EndpointFields = { type: 'LB', scalerType: 'REQUEST_COUNT', scalerValue: 2, idleTimeout: 10 }

interface Table {
  waiting: number
  waitingSinceMs: number | null
  readonly inFlight: Map<WorkerId, number>
  readonly idleSince: Map<WorkerId, number>
  readonly busySince: Map<WorkerId, number>
  readonly busyMs: Map<WorkerId, number>
  resumed: readonly WorkerId[]
}

/** A gateway for the control loops: records their calls, and reports the requests that a test sets. */
export class FakeGateway implements Targets, Traffic {
  readonly endpoints = new Map<EndpointId, BalancedEndpoint>()
  readonly targets = new Map<EndpointId, readonly Target[]>()
  readonly forgotten = new Set<EndpointId>()
  /** The open circuit breakers, by endpoint. */
  readonly outages = new Map<EndpointId, OpenCircuit>()
  /** Minimum number of ready targets by endpoint, since a test set it. */
  readonly fewestReady = new Map<EndpointId, number>()
  /** Called before it takes over targets. */
  beforeKeep: (targets: readonly Target[]) => void = () => {}
  readonly #tables = new Map<EndpointId, Table>()
  readonly #ports: { readonly clock: { now(): number }; readonly notifier: Pick<Notifier, 'publish'> }

  constructor(ports: { readonly clock: { now(): number }; readonly notifier: Pick<Notifier, 'publish'> }) {
    this.#ports = ports
  }

  keep(endpoint: BalancedEndpoint, targets: readonly Target[]): void {
    this.beforeKeep(targets)
    const readyIds = this.ready(endpoint.id)
    this.endpoints.set(endpoint.id, endpoint)
    this.targets.set(endpoint.id, targets)
    const fewest = this.fewestReady.get(endpoint.id)
    if (fewest !== undefined) this.fewestReady.set(endpoint.id, Math.min(fewest, this.ready(endpoint.id).length))
    const { idleSince, inFlight } = this.#table(endpoint.id)
    const readyBefore = new Set(readyIds)
    for (const { workerId, state } of targets) {
      const isNew = !idleSince.has(workerId) || (state === 'ready' && !readyBefore.has(workerId))
      if (isNew) idleSince.set(workerId, this.#ports.clock.now())
    }
    const ids = new Set(targets.map(({ workerId }) => workerId))
    for (const map of [idleSince, inFlight]) for (const id of map.keys()) if (!ids.has(id)) map.delete(id)
  }

  setCircuit(id: EndpointId, outage: OpenCircuit | null): void {
    if (outage === null) this.outages.delete(id)
    else this.outages.set(id, outage)
  }

  forget(id: EndpointId): void {
    this.endpoints.delete(id)
    this.targets.delete(id)
    this.forgotten.add(id)
  }

  load(id: EndpointId): TrafficLoad {
    const table = this.#tables.get(id)
    if (table === undefined) return NO_TRAFFIC
    const { waiting, waitingSinceMs, inFlight, idleSince, resumed } = table
    const workers = [...new Set([...idleSince.keys(), ...inFlight.keys()])].map(workerId => {
      const count = inFlight.get(workerId) ?? 0
      return { workerId, inFlight: count, idleSinceMs: count > 0 ? null : (idleSince.get(workerId) ?? null) }
    })
    return { waiting, waitingSinceMs, workers, resumed, named: [] }
  }

  busyMs(id: EndpointId, worker: WorkerId): number {
    const table = this.#tables.get(id)
    const busySinceMs = table?.busySince.get(worker)
    return (table?.busyMs.get(worker) ?? 0) + (busySinceMs === undefined ? 0 : this.#ports.clock.now() - busySinceMs)
  }

  /** The workers that may get requests. */
  ready(id: EndpointId): WorkerId[] {
    return (this.targets.get(id) ?? []).flatMap(({ workerId, state }) => (state === 'ready' ? [workerId] : []))
  }

  /** Last observed state of a worker; undefined before the first. */
  stateOf(id: EndpointId, worker: WorkerId): Target['state'] | undefined {
    return this.targets.get(id)?.find(({ workerId }) => workerId === worker)?.state
  }

  /** Sets the number of requests in the request queue. */
  wait(id: EndpointId, waiting: number): void {
    const table = this.#table(id)
    table.waitingSinceMs = waiting === 0 ? null : (table.waitingSinceMs ?? this.#ports.clock.now())
    table.waiting = waiting
    this.#ports.notifier.publish(`load:${id}`)
  }

  /** Sets the number of requests in flight at a worker. */
  serve(id: EndpointId, worker: WorkerId, inFlight: number): void {
    const table = this.#table(id)
    const nowMs = this.#ports.clock.now()
    const sinceMs = table.busySince.get(worker)
    if (inFlight === 0) {
      table.idleSince.set(worker, nowMs)
      table.busyMs.set(worker, (table.busyMs.get(worker) ?? 0) + nowMs - (sinceMs ?? nowMs))
      table.busySince.delete(worker)
    } else if (sinceMs === undefined) table.busySince.set(worker, nowMs)
    table.inFlight.set(worker, inFlight)
    this.#ports.notifier.publish(`load:${id}`)
  }

  /** Sets the ended workers that requests require. */
  resume(id: EndpointId, ...workers: WorkerId[]): void {
    this.#table(id).resumed = workers
    this.#ports.notifier.publish(`load:${id}`)
  }

  #table(id: EndpointId): Table {
    const table = this.#tables.get(id)
    if (table !== undefined) return table
    const maps = { inFlight: new Map(), idleSince: new Map(), busySince: new Map(), busyMs: new Map() }
    const created: Table = { waiting: 0, waitingSinceMs: null, resumed: [], ...maps }
    this.#tables.set(id, created)
    return created
  }
}

/** Creates a load-balancing endpoint with a target of two requests per worker by default. */
export function balancedEndpoint(rig: Rig, fields: EndpointFields = {}): Promise<EndpointId> {
  return rig.endpoint({ ...BALANCED, ...fields })
}

/** A rig whose requests are set by the test; `gateway` is that of its last start. */
export interface BalancedRig {
  readonly rig: Rig
  readonly gateway: FakeGateway
}

/** Has a first request start the first worker of the rig; the worker serves it, and is idle from then on. */
export async function serveOnce({ rig, gateway }: BalancedRig, id: EndpointId): Promise<RigWorker> {
  gateway.wait(id, 1)
  await rig.clock.advance(1_000)
  const worker = rig.worker(0)
  gateway.wait(id, 0)
  gateway.serve(id, worker.id, 1)
  await rig.clock.advance(100)
  gateway.serve(id, worker.id, 0)
  return worker
}

/** Opens a {@link BalancedRig}, which is closed after the test. */
export async function openBalancedRig(context: TestContext, options: RigOptions = {}): Promise<BalancedRig> {
  const gateways: FakeGateway[] = []
  const requests = (ports: ConstructorParameters<typeof FakeGateway>[0]) => {
    gateways.push(new FakeGateway(ports))
    return gateways.at(-1)!
  }
  const rig = await openRig(context, { ...options, requests })
  return {
    rig,
    get gateway() {
      return gateways.at(-1)!
    },
  }
}
