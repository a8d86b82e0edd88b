/** The settings of the program that holds the network of a worker. */

/** The name of the processes that hold networks of workers; at most 15 characters. */
export const DOOR_PROGRAM = 'runyard-door'
/** The open file with the options of the cage. */
export const OPTIONS_FD = 3
/** The open file with its filter of system calls; the null device where it has none. */
export const FILTER_FD = 4
/** The line to the server that starts a worker, where its network leads to the outside. */
export const SERVER_FD = 5

/** One worker's network. */
export interface DoorSettings {
  /** The address at which the worker calls the server; null for a worker that does not call. */
  readonly surface: { readonly host: string; readonly port: number } | null
  /** The socket of the worker surface. */
  readonly socket: string
  /** Ports of loopback at which functions of apps find the server, and its socket for them; null for other workers. */
  readonly functions: { readonly ports: readonly number[]; readonly socket: string } | null
  /** The ports that it may serve, and the sockets that lead to them. */
  readonly serves: readonly { readonly port: number; readonly path: string }[]
  /** The socket that is open for as long as the worker lives; null where its network has no outside. */
  readonly control: string | null
}
