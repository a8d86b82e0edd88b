/** Reports of a platform with machines of its own, such as Kubernetes, about a worker that it places by itself. */

/** Place and GPUs that a platform gave a worker. */
export interface ReportedPlace {
  /** Name of the node. */
  readonly node: string
  /**
   * The catalog's id of its GPUs; the platform's own name for a type that is missing in the catalog; null
   * without GPUs.
   */
  readonly gpuType: string | null
  readonly gpuCount: number
}

/** Reason why a worker waits for a place on its platform. `said` is the platform's own text. */
export type WaitForPlace =
  /** No node has room for it now; a cluster autoscaler may add one. */
  | { readonly kind: 'no_room'; readonly said: string }
  /** No node has the requested kind, independent of its room. */
  | { readonly kind: 'no_such_node'; readonly said: string }
  /** A quota of the platform refuses it. */
  | { readonly kind: 'platform_quota'; readonly said: string }
  /** The platform does not respond, or refuses calls temporarily. */
  | { readonly kind: 'platform_away'; readonly said: string }
  /** It has a place, but its volumes are not ready. */
  | { readonly kind: 'volume_pending'; readonly said: string }

/**
 * Reason why a platform removes a worker, or removed it. The worker and its jobs are not responsible for any
 * of them.
 */
export type Reclaim =
  /**
   * Its node is drained or shut down, or its room is given to others. `said` is the platform's own text, or empty.
   */
  | { readonly kind: 'node_drained'; readonly node: string | null; readonly said: string }
  | { readonly kind: 'evicted'; readonly node: string | null; readonly said: string }
  | { readonly kind: 'preempted'; readonly node: string | null; readonly said: string }
  /** Its node was silent beyond a limit, so that the worker counts as ended. */
  | { readonly kind: 'node_lost'; readonly node: string | null; readonly said: string }
  /** Deleted by another client of the platform. */
  | { readonly kind: 'deleted'; readonly said: string }

/** Stored reports of a worker's platform. */
export interface PlatformReport {
  /** Null while it has no place, and if its platform does not report one. */
  readonly place: ReportedPlace | null
  /** Reason for its wait; null while it has a place. */
  readonly waits: WaitForPlace | null
  /** Reason why its platform is about to remove it; null while it is not. */
  readonly leaves: Reclaim | null
}

/** State before the first report. */
const NO_REPORT: PlatformReport = { place: null, waits: null, leaves: null }

/** Observation of a worker on its platform at one instant, by a driver. */
export type PlatformNews =
  | { readonly state: 'unplaced'; readonly reason: WaitForPlace }
  | { readonly state: 'placed' | 'running'; readonly place?: ReportedPlace }
  | { readonly state: 'leaving'; readonly why: Reclaim; readonly place?: ReportedPlace }

/**
 * The report after news, with texts of bounded length. A worker that has a place keeps it, and can wait there only
 * for its volume; one that is being removed stays so.
 * @param previous null before the first report
 */
export function afterNews(previous: PlatformReport | null, news: PlatformNews): PlatformReport {
  const { place, waits, leaves } = previous ?? NO_REPORT
  const hasPlace = previous !== null && waits === null
  if (news.state === 'unplaced') {
    const keeps = hasPlace && news.reason.kind !== 'volume_pending'
    return keeps ? previous : { place, waits: bounded(news.reason), leaves }
  }
  const now = news.place ?? place
  if (news.state !== 'leaving') return { place: now, waits: null, leaves }
  return { place: now, waits: now === null ? waits : null, leaves: bounded(news.why) }
}

/** Limit of the stored text of a platform, in characters. */
const MAX_SAID = 500

function bounded<Of extends WaitForPlace | Reclaim>(of: Of): Of {
  return of.said.length <= MAX_SAID ? of : { ...of, said: `${of.said.slice(0, MAX_SAID)}...` }
}

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
  volume_pending: 'its network volume is not ready yet',
}

/** The reason as a clause without its subject: "was evicted from node a: The node was low on memory". */
export function reclaimText(reclaim: Reclaim): string {
  const tail = reclaim.said === '' ? '' : `: ${reclaim.said}`
  if (reclaim.kind === 'deleted') return `was deleted by another client of the cluster${tail}`
  const node = reclaim.node === null ? 'its node' : `node ${reclaim.node}`
  return `${LOSSES[reclaim.kind](node)}${tail}`
}

const LOSSES: Readonly<Record<Exclude<Reclaim['kind'], 'deleted'>, (node: string) => string>> = {
  node_drained: node => `had to leave ${node}, which is drained or shut down`,
  evicted: node => `was evicted from ${node}`,
  preempted: node => `had to make room for others on ${node}`,
  node_lost: node => `ran on ${node}, which is lost`,
}
