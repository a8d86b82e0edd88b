/**
 * Explains why workers have no place on their platform, which finds one for them: the causes of a wait and their
 * remedies.
 */
import type { WorkerId } from '../ids.ts'
import { desiredWorkers, type EndpointSnapshot } from '../scaling/scale.ts'
import { reclaimText, type WaitForPlace, waitForPlaceText } from '../workers/platform-report.ts'
import { waitsForPlace } from '../workers/worker.ts'
import type { Action } from './action.ts'
import { counted, currentWorkers } from './explain-facts.ts'
import { endpointWords } from './explain-words.ts'
import { machine, run, settings } from './fix-actions.ts'

/** The causes of {@link findPlaceWait} and {@link findLostNode}. */
export const PLACE_CAUSES = ['unschedulable', 'cluster_quota', 'cluster_away', 'volume_pending', 'node_lost'] as const
/** One of {@link PLACE_CAUSES}, or a cause that a machine without room shares. */
export type PlaceCause = (typeof PLACE_CAUSES)[number] | 'no_capacity' | 'throttled'

/** The part of an explanation that the wait for a place decides. */
export interface PlaceWait {
  readonly cause: PlaceCause
  readonly summary: string
  readonly advice: string
  readonly actions: readonly Action[]
  readonly sinceMs: number | null
}

const CAUSES: Readonly<Record<WaitForPlace['kind'], PlaceCause>> = {
  no_room: 'no_capacity',
  no_such_node: 'unschedulable',
  platform_quota: 'cluster_quota',
  platform_away: 'cluster_away',
  volume_pending: 'volume_pending',
}

const ADVICE: Readonly<Record<WaitForPlace['kind'], string>> = {
  no_room:
    'wait, if the cluster gets further nodes by itself; else lower workersMin or workersMax of the endpoints that use its nodes, choose more pools, or add a node',
  no_such_node:
    'wait, if the cluster gets such nodes by itself; else choose pools whose GPUs its nodes have (kubectl get nodes --show-labels), or add such a node',
  platform_quota:
    'lower workersMax of the endpoints that share it, or have the quota raised (kubectl describe resourcequota)',
  platform_away:
    'see that the cluster is up and that this server reaches it (kubectl get --raw /readyz); workers that run go on',
  volume_pending: 'see why the claim of its volume is not bound or mounted (kubectl describe pvc, kubectl get events)',
}

const WORKERS = machine('See who has the nodes', 'workers')
const OTHER_HARDWARE = settings('hardware', 'Choose other hardware')

const ACTIONS: Readonly<Record<WaitForPlace['kind'], readonly Action[]>> = {
  no_room: [WORKERS, OTHER_HARDWARE],
  no_such_node: [OTHER_HARDWARE, run('See the nodes of the cluster', 'kubectl', 'get', 'nodes', '--show-labels')],
  platform_quota: [
    settings('hardware', 'Ask for less hardware'),
    run('See the quotas of the cluster', 'kubectl', 'describe', 'resourcequota'),
  ],
  platform_away: [
    machine('See what is wrong with the machine'),
    run('Ask the cluster', 'kubectl', 'get', '--raw', '/readyz'),
  ],
  volume_pending: [
    run('See the claims of the cluster', 'kubectl', 'describe', 'pvc'),
    settings('volumes', 'Choose another volume'),
  ],
}

/**
 * The wait for a place, if all starting workers wait for one; null if another one starts, or the ready ones are
 * enough. It names the worker that has waited longest.
 */
export function findPlaceWait(snapshot: EndpointSnapshot, nowMs: number): PlaceWait | null {
  const current = currentWorkers(snapshot)
  const starting = current.filter(({ state }) => state === 'STARTING')
  const waiting = starting.filter(waitsForPlace)
  const [worker] = waiting
  const wait = worker?.platform?.waits
  if (worker === undefined || wait == null || waiting.length < starting.length) return null
  const ready = current.length - waiting.length
  if (ready > 0 && desiredWorkers(snapshot, nowMs).desired <= ready) return null
  const cause = CAUSES[wait.kind]
  const others =
    waiting.length === 1
      ? ''
      : `, and so ${waiting.length === 2 ? 'does' : 'do'} ${counted(waiting.length - 1, 'other')}`
  const beside =
    ready === 0 ? '' : `${counted(ready, 'worker')} ${ready === 1 ? 'works' : 'work'}, and another one has no place: `
  return {
    cause: cause === 'no_capacity' && ready > 0 ? 'throttled' : cause,
    summary: `${beside}worker ${worker.id} waits for a place on the cluster${others}: ${waitForPlaceText(wait)}`,
    advice: ADVICE[wait.kind],
    actions: ACTIONS[wait.kind],
    sinceMs: worker.createdAtMs,
  }
}

/** The wait because of a lost node, whose workers keep new ones from starting; null if no node is lost. */
export function findLostNode(snapshot: EndpointSnapshot): PlaceWait | null {
  const { workers } = snapshot
  const lost = workers.filter(({ platform }) => platform?.leaves?.kind === 'node_lost')
  const [worker] = lost
  if (worker?.platform?.leaves == null) return null
  const held = lost.reduce((sum, { held }) => sum + held, 0)
  const work =
    held === 0
      ? ''
      : `; ${counted(held, endpointWords(snapshot).thing)} of it ${held === 1 ? 'goes' : 'go'} back once the cluster has given it up`
  return {
    cause: 'node_lost',
    summary: `worker ${worker.id} ${reclaimText(worker.platform.leaves)}${work}`,
    advice:
      'bring the node back (kubectl get nodes); or delete it from the cluster if it is gone for good (kubectl delete node <node>), so that its workers count as ended at once',
    actions: [run('See the nodes of the cluster', 'kubectl', 'get', 'nodes')],
    sinceMs: worker.stopRequestedAtMs,
  }
}

/** A clause, to follow the name of a worker with a running job, if the platform takes it away; else empty. */
export function leavingText({ workers }: EndpointSnapshot, worker: WorkerId | null): string {
  const leaves = workers.find(({ id }) => id === worker)?.platform?.leaves ?? null
  if (leaves === null) return ''
  return `, which ${reclaimText(leaves)}; unless it is done before the end of that worker, it is queued again, and the attempt does not count`
}
