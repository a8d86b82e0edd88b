/**
 * The role of a server among those on its database: `active` while it leads, `unsure` while it cannot check, and
 * `deposed` after another one took over, which is final.
 */
export type Leadership = 'active' | 'unsure' | 'deposed'

/** The role of this server among several on one database. A single server always leads. */
export interface Leader {
  /** True while this server leads, as last checked. A server that does not lead may read and must change nothing. */
  isLeader(): boolean
  /** The same, checked again unless the last check is recent; awaited before each change. Takes at most 5 s. */
  confirm(): Promise<boolean>
  /**
   * Watches for changes of the role.
   * @param changed receives the role and, unless it is `active`, the reason as a sentence; never throws
   * @returns ends the watch
   */
  watch(changed: (now: Leadership, why: string | null) => void): () => void
}

/**
 * Keys and settings as the active server publishes them. A standby server compares them to find out if its takeover
 * would change something for clients.
 */
export interface ServerAgreement {
  /** SHA-256 of the API key, in hex. */
  readonly apiKey: string
  /** The id of the encryption key that seals. */
  readonly sealsWith: string
  /** A hash of each setting that clients notice and that is not its default, by its option. */
  readonly settings: Readonly<Record<string, string>>
}

/** The server that acts on a database, as all servers of the database see it. */
export interface ActiveServer {
  /** Counts the servers that have acted on the database; each new one has a greater epoch. */
  readonly epoch: number
  readonly pid: number
  readonly host: string
  /** URL of its management for other servers and commands; null while it starts. */
  readonly url: string | null
  /** URL of its job operations and load-balancing endpoints; undefined while it starts. */
  readonly openUrl?: string | undefined
  /** URL of its port for the calls of workers alone; null without such a port, undefined while it starts. */
  readonly workersUrl?: string | null | undefined
  /** Its keys and settings; null while it starts. */
  readonly agreement: ServerAgreement | null
  /** Id of its machine: equal for servers of one machine. */
  readonly machine: string
  /** True if its workers end with its machine, as processes and containers of an engine do. */
  readonly boundToMachine: boolean
  /** Start of its term, in epoch milliseconds on the clock of the database. */
  readonly sinceMs: number
  /**
   * Time until its lease runs out unless it is renewed, in milliseconds when this was read;
   * negative once it has run out.
   */
  readonly leaseLeftMs: number
}

/**
 * The time in which a server is active, from taking the lease to losing it. It is a {@link
 * Leader} whose `deposed` is final.
 */
export interface Term extends Leader {
  readonly epoch: number
  /**
   * Publishes the URLs of this server.
   * @param openUrl URL of job operations and load-balancing endpoints; the same unless management has its own port
   * @param workersUrl URL of the port for the calls of workers alone; null without such a port
   */
  reachedAt(url: string, openUrl?: string, workersUrl?: string | null): void
  /** Ends the term and gives the lease up, so that another server need not wait for its end. */
  close(): Promise<void>
}

/** A server that may become active. */
export interface LeaseCandidate {
  /** The active server; null without one, and while the database cannot be read. */
  active(): Promise<ActiveServer | null>
  /**
   * Waits for the lease and takes it.
   * @throws AppError `invalid` when this server must never act on this database, with the reason
   */
  lead(signal: AbortSignal): Promise<Term>
  /** Ends the wait and everything that it holds. */
  close(): Promise<void>
}
