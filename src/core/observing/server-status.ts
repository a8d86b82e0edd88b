/** `unsure`: by its own state it is active, but it cannot reach its database now. */
export type ServerRole = 'active' | 'unsure' | 'standby'

/** Status of a server, and of the active one. All servers of a database report the same active server. */
export interface ServerStatus {
  readonly role: ServerRole
  readonly version: string
  readonly pid: number
  readonly host: string
  /** Address of this server for management. */
  readonly url: string
  /** The name of the database, without a password. */
  readonly database: string
  /**
   * The damage of the database that this server has met, with the path of its file and the remedy; null without
   * damage, and left out by older servers.
   */
  readonly damage?: string | null
  /** Null if no active server is known. */
  readonly active: ActiveStatus | null
}

/** The active server. */
export interface ActiveStatus {
  /** Number of the servers that have acted on the database; null for the embedded one, which has one server. */
  readonly epoch: number | null
  readonly pid: number
  readonly host: string
  /** Null while it starts. */
  readonly url: string | null
  /** Time at which it became active, as in RFC 3339. */
  readonly since: string
  /** Time until its lease ends unless it is renewed, below zero once it has ended; null without a lease. */
  readonly leaseLeftMs: number | null
}

/** The status as lines for people. */
export function statusLines(status: ServerStatus): string[] {
  const { role, version, pid, host, url, database, damage, active } = status
  const own = `This server: ${ROLES[role]} (pid ${pid} on ${host}, ${url}, version ${version})`
  const damaged = damage === null || damage === undefined ? [] : [`DAMAGED:     ${damage}`]
  return [own, `Database:    ${database}`, ...damaged, ...(active === null ? [NOBODY] : activeLines(active))]
}

const ROLES: Readonly<Record<ServerRole, string>> = {
  active: 'active',
  unsure: 'active, but it cannot reach its database now and changes nothing',
  standby: 'standby',
}

const NOBODY = 'Active:      no known server; a standby server takes over as soon as the database permits it'

function activeLines({ epoch, pid, host, url, since, leaseLeftMs }: ActiveStatus): string[] {
  const where = url === null ? 'it is starting' : `at ${url}`
  const lines = [`Active:      pid ${pid} on ${host}, ${where}`, `Since:       ${since}`]
  if (epoch !== null) lines.push(`Epoch:       ${epoch}`)
  if (leaseLeftMs !== null) lines.push(`Lease:       ${leaseText(leaseLeftMs)}`)
  return lines
}

function leaseText(leftMs: number): string {
  const seconds = (Math.abs(leftMs) / 1_000).toFixed(1)
  return leftMs >= 0 ? `${seconds} s left unless it is renewed` : `ran out ${seconds} s ago`
}
