/** What the relay between workers and their server says to the server, in headers of the worker calls that it passes on. */
export const RELAY_HEADERS = {
  /**
   * On a chunk that may have been kept already, by a call whose answer was lost with the server: how many copies of it in a row
   * there are then.
   */
  again: 'x-runyard-again',
  /** On a result or chunk without its body, with its size in bytes: servers have died of it, and it is not passed on. */
  dropped: 'x-runyard-dropped',
  /** Beside it, the name of the file in which the body is kept; absent where there was no room. */
  setAside: 'x-runyard-set-aside',
  /**
   * On a take that asks for nothing: jobs that were claimed after this instant (in ms) never reached the worker, because
   * the answer was lost on its way.
   */
  undeliveredSince: 'x-runyard-undelivered-since',
  /** Beside it, what the clock shows that it is an instant of, in ms: that of the relay need not be the time of the server. */
  relayNow: 'x-runyard-relay-now',
} as const

/** Limit of copies of a chunk in a row that are counted. */
export const MAX_COPIES = 50
