/** Headers of the relay between workers and their server, in the worker calls that it passes on. */
export const RELAY_HEADERS = {
  /**
   * On a chunk that may be stored already, by a call whose response was lost with the server: the number of its
   * copies in a row, if it is.
   */
  again: 'x-runyard-again',
  /** On a result or chunk without its body, with its size in bytes: it killed servers, and is not passed on. */
  dropped: 'x-runyard-dropped',
  /** Beside `dropped`, the name of the file with the body; absent if the disk had no room. */
  setAside: 'x-runyard-set-aside',
  /**
   * On a take that requests no jobs: jobs that were claimed after this instant (in ms) never reached the worker,
   * because the response was lost.
   */
  undeliveredSince: 'x-runyard-undelivered-since',
  /**
   * Beside `undeliveredSince`, the present time of the relay's clock in ms, which may differ from the time of the
   * server.
   */
  relayNow: 'x-runyard-relay-now',
  /**
   * Beside `relayNow`, the machine's monotonic clock in whole ms at the same instant. A server that starts reads the
   * call late, and subtracts that delay. A relay that is older than the server does not send it.
   */
  relayMonotonic: 'x-runyard-relay-monotonic',
} as const

/** Limit of counted copies of a chunk in a row. */
export const MAX_COPIES = 50
