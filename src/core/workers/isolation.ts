/** How a worker is kept from the machine and from others. */

/** Nothing but the rights of the server's user, a cage of a process, or a container. */
export const ISOLATIONS = ['none', 'cage', 'container'] as const
/** One of {@link ISOLATIONS}. */
export type IsolationKind = (typeof ISOLATIONS)[number]

/** What a worker cannot take more of than it was given. */
export const LIMITS = ['memory', 'processes', 'cpu', 'disk', 'network'] as const
/** One of {@link LIMITS}. */
export type Limit = (typeof LIMITS)[number]

/** What is in force for one worker since it was started. */
export interface Isolation {
  readonly kind: IsolationKind
  readonly limits: readonly Limit[]
}

/** Nothing is in force. */
export const NO_ISOLATION: Isolation = { kind: 'none', limits: [] }

/** Why workers that are processes run without a cage, and whose rights they have. */
export interface Uncaged {
  /** A clause. */
  readonly reason: string
  /** The remedy, as an imperative; null where the setting asks for it. */
  readonly action: string | null
  /** The folder with the keys and secrets of the server. */
  readonly dataDir: string
  /** True when the server runs as root, who may do everything. */
  readonly isRoot: boolean
}

/** Why the processes of workers without a cage get no mark, and what to do, as clauses. */
export interface LackOfMarks {
  readonly problem: string
  readonly action: string
}

/** What outlives a worker without a cage, as a sentence without a full stop. */
export function strayProblem({ problem }: LackOfMarks): string {
  return `a process that leaves the session, the parents and the variables of its worker outlives it: ${problem}`
}

/** The same with what to do, for the person who starts the server. */
export function strayText(lack: LackOfMarks): string {
  return `Without a mark ${strayProblem(lack)}. To change that, ${lack.action}`
}

/** The reason why workers have no network of their own, and the remedy, as clauses. */
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
