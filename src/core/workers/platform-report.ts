/** What a platform with machines of its own, such as Kubernetes, reports about a worker that it places by itself. */

/** Where a platform placed a worker, and with what. */
export interface ReportedPlace {
  /** Name of the node. */
  readonly node: string
  /** The catalogue's id of its GPUs; the platform's own word for a type that the catalogue does not have; null for none. */
  readonly gpuType: string | null
  readonly gpuCount: number
}

/** Why a worker waits for a place on its platform. `said` is the platform's own text. */
export type WaitForPlace =
  /** No node has room for it now; a cluster autoscaler may add one. */
  | { readonly kind: 'no_room'; readonly said: string }
  /** No node is of the kind that it asks for, whatever room there is. */
  | { readonly kind: 'no_such_node'; readonly said: string }
  /** A quota of the platform refuses it. */
  | { readonly kind: 'platform_quota'; readonly said: string }
  /** The platform does not respond, or refuses calls for a while. */
  | { readonly kind: 'platform_away'; readonly said: string }
  /** It has a place, and what it mounts is not there yet. */
  | { readonly kind: 'volume_pending'; readonly said: string }

/** Why a platform takes a worker away, or took it. None of them is the fault of the worker or its jobs. */
export type Reclaim =
  /** Its node is drained or shut down, or its room is given to others. `said` is the platform's own text, or empty. */
  | { readonly kind: 'node_drained'; readonly node: string | null; readonly said: string }
  | { readonly kind: 'evicted'; readonly node: string | null; readonly said: string }
  | { readonly kind: 'preempted'; readonly node: string | null; readonly said: string }
  /** Its node has been silent beyond a limit, so that the worker counts as ended. */
  | { readonly kind: 'node_lost'; readonly node: string | null; readonly said: string }
  /** Somebody other than this server deleted it. */
  | { readonly kind: 'deleted'; readonly said: string }

/** The wait as a clause: "no node of the cluster has room: 0/3 nodes are available". */
export function waitForPlaceText({ kind, said }: WaitForPlace): string {
  const tail = said === '' ? '' : `: ${said}`
  return `${WAITS[kind]}${tail}`
}

const WAITS: Readonly<Record<WaitForPlace['kind'], string>> = {
  no_room: 'no node of the cluster has room',
  no_such_node: 'no node of the cluster is of the kind that it asks for',
  platform_quota: 'a quota of the cluster refuses it',
  platform_away: 'the cluster does not respond',
  volume_pending: 'its network volume is not there yet',
}

/** The reason as a clause without its subject: "was evicted from node a: The node was low on memory". */
export function reclaimText(reclaim: Reclaim): string {
  const tail = reclaim.said === '' ? '' : `: ${reclaim.said}`
  const from = 'node' in reclaim && reclaim.node !== null ? ` ${reclaim.node}` : ''
  switch (reclaim.kind) {
    case 'node_drained':
      return `had to leave its node${from}, which is drained or shut down${tail}`
    case 'evicted':
      return `was evicted from its node${from}${tail}`
    case 'preempted':
      return `had to make room on its node${from} for others${tail}`
    case 'node_lost':
      return `ran on a node that is lost${from}${tail}`
    case 'deleted':
      return `was deleted by somebody other than this server${tail}`
  }
}
