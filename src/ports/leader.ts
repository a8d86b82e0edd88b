/**
 * The role of a server among those on its database: `active` while it leads, `unsure` while that is not known, and `deposed` once
 * another one leads, which is final.
 */
export type Leadership = 'active' | 'unsure' | 'deposed'

/** Which of several servers on one database acts. A single server always leads. */
export interface Leader {
  /** Whether this server leads, as far as it knows. A server that does not lead may read and must change nothing. */
  isLeader(): boolean
  /** The same, checked again unless it was checked a moment ago; to be awaited before each change. Takes at most 5 s. */
  confirm(): Promise<boolean>
  /**
   * Watches for changes of the role.
   * @param changed is given what it is now and, unless that is `active`, why, as a sentence; never throws
   * @returns ends the watch
   */
  watch(changed: (now: Leadership, why: string | null) => void): () => void
}

/**
 * What the active server publishes of its keys and settings, so that one that stands by knows whether its takeover would change something
 * for clients.
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
  /** Where other servers and commands reach its management, as a URL; null while it starts. */
  readonly url: string | null
  /** Where they reach job operations and load-balancing endpoints, as a URL; undefined while it starts. */
  readonly openUrl?: string | undefined
  /** A port of it that has nothing but the calls of workers, as a URL; null for none, undefined while it starts. */
  readonly workersUrl?: string | null | undefined
  /** Its keys and settings; null while it starts. */
  readonly agreement: ServerAgreement | null
  /** Which machine it runs on: equal for servers of one machine. */
  readonly machine: string
  /** Whether its workers live and die with its machine, as processes and containers of an engine do. */
  readonly boundToMachine: boolean
  /** When it became active, in epoch milliseconds on the clock of the database. */
  readonly sinceMs: number
  /** Time until its lease runs out unless it is renewed, in milliseconds when this was read; negative once it has run out. */
  readonly leaseLeftMs: number
}

/** The time in which a server is active, from taking the lease to losing it. It is a {@link Leader} whose `deposed` is final. */
export interface Term extends Leader {
  readonly epoch: number
  /**
   * Publishes where this server is reached.
   * @param openUrl where job operations and load-balancing endpoints are; the same unless management has a port of its own
   * @param workersUrl a port that has nothing but the calls of workers; null for none
   */
  reachedAt(url: string, openUrl?: string, workersUrl?: string | null): void
  /** Ends the term and gives the lease up, so that another server need not wait for its end. */
  close(): Promise<void>
}

/** A server that may become active. */
export interface LeaseCandidate {
  /** Who is active now; null for nobody, and while that cannot be read. */
  active(): Promise<ActiveServer | null>
  /**
   * Waits for the lease and takes it.
   * @throws AppError `invalid` when this server must never act on this database, with the reason
   */
  lead(signal: AbortSignal): Promise<Term>
  /** Ends the wait and everything that it holds. */
  close(): Promise<void>
}
