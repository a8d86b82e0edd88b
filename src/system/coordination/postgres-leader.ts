import { hostname } from 'node:os'
import { AppError } from '../../core/errors.ts'
import type { Leader, Leadership } from '../../ports/leader.ts'
import { addressOf } from '../../store/engines/postgres-connection.ts'
import {
  GONE_AFTER_MS,
  type LockHolder,
  type ServerLock,
  type ServerName,
  takeServerLock,
} from '../../store/engines/postgres-lock.ts'

/** What {@link leadPostgres} is given. */
export interface PostgresLeaderOptions {
  /** The database. */
  readonly url: string
  /** How long a start waits for the server before, whose end PostgreSQL may not have seen yet. */
  readonly graceMs?: number
}

/** A leader that holds a lock. */
export interface PostgresLeader extends Leader {
  /** Publishes where this server listens, as host and port. */
  listensAt(address: string): void
  /** Releases the lock for the next server. */
  close(): Promise<void>
}

/** A server that was killed has ended by then, and PostgreSQL has seen it. */
const GRACE_MS = 5_000
/** How often PostgreSQL is asked whether the lock is still held. */
const BEAT_MS = 2_000
/** Time without a response after which the lock counts as lost: well before PostgreSQL gives it to another server. */
const SURE_MS = 10_000
/** Maximum age of a response that a change may rely on. */
const FRESH_MS = 1_000
const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 1_000
/** How long a lost lock may keep a call waiting. */
const DOUBT_MS = 2_000

/**
 * Takes the lead of a database, before anything is read of it or written to it. From then on the lock is watched: when its
 * connection is lost, this server does not lead until it has it again, and never again once another server has it.
 * @throws AppError `conflict` when another server leads, with its name; `unavailable` when PostgreSQL cannot be reached
 */
export async function leadPostgres({ url, graceMs = GRACE_MS }: PostgresLeaderOptions): Promise<PostgresLeader> {
  const leader = new LockedLeader(url)
  const deadline = performance.now() + graceMs
  for (;;) {
    const other = await leader.take().catch(error => {
      if (!(error instanceof AppError)) throw error
      throw new AppError(error.code, `${error.message} (${addressOf(url)})`, { cause: error.cause })
    })
    if (leader.isLeader()) return leader
    if (performance.now() > deadline) throw new AppError('conflict', refusal(url, other))
    await pause(FIRST_PAUSE_MS * 4)
  }
}

class LockedLeader implements PostgresLeader {
  readonly #url: string
  readonly #watchers = new Set<(now: Leadership, why: string | null) => void>()
  #name: ServerName = { pid: process.pid, host: hostname(), address: null, sinceMs: Date.now() }
  #state: Leadership = 'unsure'
  #lock: ServerLock | null = null
  /** The last session that held the lock for this server; PostgreSQL may take a while to end it. */
  #own: ServerLock['session'] | null = null
  /** When the last question began to which PostgreSQL answered, by both clocks: one stands still while the machine sleeps. */
  #sureAt = { monotonicMs: 0, clockMs: 0 }
  #checking: Promise<void> | null = null
  /** Settles when the first try to have a lost lock again is over. */
  #doubt: PromiseWithResolvers<void> | null = null
  #timer: NodeJS.Timeout | undefined
  #closed = false

  constructor(url: string) {
    this.#url = url
  }

  isLeader(): boolean {
    return this.#state === 'active' && this.#ageMs() < SURE_MS
  }

  async confirm(): Promise<boolean> {
    if (this.#state === 'unsure') await Promise.race([this.#doubt?.promise, pause(DOUBT_MS)])
    if (this.#state !== 'active') return false
    // A process that was stopped for a while, or whose machine slept, does not know what became of the lock.
    if (this.#ageMs() >= FRESH_MS) {
      await this.#checking
      await this.#check()
    } else if (this.#ageMs() >= FRESH_MS / 2) {
      void this.#check()
    }
    return this.isLeader()
  }

  watch(changed: (now: Leadership, why: string | null) => void): () => void {
    this.#watchers.add(changed)
    return () => void this.#watchers.delete(changed)
  }

  listensAt(address: string): void {
    this.#name = { ...this.#name, address }
    this.#lock?.tell(this.#name).catch(() => {})
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    this.#watchers.clear()
    this.#doubt?.resolve()
    await this.#lock?.release()
  }

  /** Tries once. @returns who has the lock instead, as far as that is known */
  async take(): Promise<LockHolder | null> {
    const asked = bothClocks()
    let over = false
    const taken = await takeServerLock(this.#url, this.#name, () => {
      over = true
      this.#lost()
    })
    if (taken === null || 'heldBy' in taken) return taken?.heldBy ?? null
    if (this.#closed) await taken.release()
    if (this.#closed || over) return null
    this.#lock = taken
    this.#own = taken.session
    this.#sureAt = asked
    this.#become('active', null)
    this.#timer = setTimeout(() => void this.#beat(), BEAT_MS)
    return null
  }

  async #beat(): Promise<void> {
    const lock = this.#lock
    await this.#check()
    if (!this.#closed && lock !== null && this.#lock === lock)
      this.#timer = setTimeout(() => void this.#beat(), BEAT_MS)
  }

  /** The lock itself reports failures. */
  #check(): Promise<void> {
    const asked = bothClocks()
    this.#checking ??= (this.#lock?.check() ?? Promise.resolve())
      .then(
        () => {
          this.#sureAt = asked
        },
        () => {},
      )
      .finally(() => {
        this.#checking = null
      })
    return this.#checking
  }

  #lost(): void {
    if (this.#closed || this.#lock === null) return
    clearTimeout(this.#timer)
    this.#lock = null
    this.#doubt = Promise.withResolvers()
    this.#become('unsure', 'the connection to PostgreSQL that holds the lock of this server was lost')
    void this.#again()
  }

  async #again(): Promise<void> {
    for (let pauseMs = FIRST_PAUSE_MS; !this.#closed; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
      try {
        const other = await this.take()
        if (this.#lock !== null) break
        if (other !== null && !this.#isOwn(other)) {
          this.#become('deposed', deposition(other))
          break
        }
      } catch {
        // Callers do not wait for a database that is away.
        this.#doubt?.resolve()
      }
      await pause(pauseMs)
    }
    this.#doubt?.resolve()
  }

  #ageMs(): number {
    const { monotonicMs, clockMs } = this.#sureAt
    return Math.max(performance.now() - monotonicMs, Date.now() - clockMs)
  }

  #isOwn({ session }: LockHolder): boolean {
    const own = this.#own
    if (own === null || session.pid !== own.pid) return false
    return session.startMs === null || own.startMs === null || session.startMs === own.startMs
  }

  #become(state: Leadership, why: string | null): void {
    if (this.#state === state) return
    this.#state = state
    for (const changed of [...this.#watchers]) changed(state, why)
  }
}

function bothClocks(): { monotonicMs: number; clockMs: number } {
  return { monotonicMs: performance.now(), clockMs: Date.now() }
}

function refusal(url: string, other: LockHolder | null): string {
  const holder = other === null ? 'another server' : holderText(other)
  const gone = `if its machine is gone, PostgreSQL lets go of it within ${GONE_AFTER_MS / 1_000} s`
  return `the database ${addressOf(url)} is in use by ${holder}; stop it or give another --database (${gone})`
}

function deposition(other: LockHolder): string {
  return `${holderText(other)} has taken over the database while this one could not reach it; this one ends, and leaves its workers running`
}

/** The names of servers are for people; nothing depends on them. */
function holderText({ session, server }: LockHolder): string {
  if (server === null) return `another server (process ${session.pid} of PostgreSQL)`
  const { pid, host, address, sinceMs } = server
  const where = address === null ? 'which is starting' : `at ${address}`
  return `the server with pid ${pid} on ${host}, ${where}, since ${new Date(sinceMs).toISOString()}`
}

function pause(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}
