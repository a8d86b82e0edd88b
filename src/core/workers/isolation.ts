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
