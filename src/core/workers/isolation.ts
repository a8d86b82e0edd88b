/** Isolation of a worker from the machine and from other workers. */

/** Kinds of isolation: only the rights of the server's user, a cage around the process, or a container. */
export const ISOLATIONS = ['none', 'cage', 'container'] as const
/** One of {@link ISOLATIONS}. */
export type IsolationKind = (typeof ISOLATIONS)[number]

/** Resources with an enforced limit. */
export const LIMITS = ['memory', 'processes', 'cpu', 'disk', 'network'] as const
/** One of {@link LIMITS}. */
export type Limit = (typeof LIMITS)[number]

/** Isolation of one worker since its start. */
export interface Isolation {
  readonly kind: IsolationKind
  readonly limits: readonly Limit[]
}

/** No isolation. */
export const NO_ISOLATION: Isolation = { kind: 'none', limits: [] }

/** The reason for workers that are processes without a cage, and their rights. */
export interface Uncaged {
  /** A clause. */
  readonly reason: string
  /** The remedy, as an imperative; null if the setting asks for no cage. */
  readonly action: string | null
  /** The folder with the keys and secrets of the server. */
  readonly dataDir: string
  /** True if the server runs as root, who may do everything. */
  readonly isRoot: boolean
}

/** Reason why the processes of workers without a cage have no mark, and the remedy, as clauses. */
export interface LackOfMarks {
  readonly problem: string
  readonly action: string
}

/** Processes that outlive a worker without a cage, as a sentence without a full stop. */
export function strayProblem({ problem }: LackOfMarks): string {
  return `a process that leaves the session, the parents and the variables of its worker outlives it: ${problem}`
}

/** {@link strayProblem} with the remedy, for the person who starts the server. */
export function strayText(lack: LackOfMarks): string {
  return `Without a mark ${strayProblem(lack)}. To change that, ${lack.action}`
}

/** Reason why workers have no network of their own, and the remedy, as clauses. */
export interface LackOfNetworks {
  readonly problem: string
  readonly action: string
}

/** The effect of the lack on programs with a fixed port, as a sentence without a full stop. */
export function sharedPortsProblem({ problem }: Pick<LackOfNetworks, 'problem'>): string {
  return `workers of folders share the network of this machine, so that two of them cannot listen on one port, such as 8000 of worker-vllm, and reach what listens on its loopback: ${problem}`
}

/** The rights of workers without a cage, as sentences for the person who starts the server. */
export function uncagedText({ reason, action, dataDir, isRoot }: Uncaged): string {
  const files = isRoot ? 'every file of this machine' : 'every file that the user of this server can'
  const [reads, reaches] = [`read and change ${files}, the keys in ${dataDir} among them`, 'every port of this machine']
  const remedy = action === null ? 'keep them apart with --worker-sandbox auto' : action
  return `Workers run without a cage (${reason}): a worker can ${reads}, see and end other workers, and reach ${reaches}. To change that, ${remedy}`
}
