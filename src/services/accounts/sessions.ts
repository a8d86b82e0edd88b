import type { Caller } from '../../core/accounts/permission.ts'
import {
  LINK_MS,
  MAX_LINKS,
  MAX_SESSIONS,
  SECRET_BYTES,
  SESSION_MS,
  type SessionHalves,
  sessionText,
} from '../../core/accounts/session.ts'
import { AppError } from '../../core/errors.ts'
import type { OwnerId } from '../../core/ids.ts'
import type { Ports } from '../../ports/ports.ts'
import type { KeyedSession } from '../../ports/store/session-store.ts'
import type { Access } from './access.ts'
import { InvalidKeyError, type ReadAddress } from './failed-keys.ts'

/** Time for which a session is not read again. */
const CACHE_MS = 5_000
const CACHE_SIZE = 1_000
/** Limit of remembered sessions that ended before their time. */
const MAX_CLOSED = 10_000

/** Credential for a sign-in: an API key, or the code of a link. */
export type Credential = { readonly key: string } | { readonly link: string }

/** A session at its start. */
export interface NewSession {
  readonly halves: SessionHalves
  readonly caller: Caller
  readonly expiresAtMs: number
}

/** A session that a request was made with. */
export interface OpenSession {
  readonly caller: Caller
  readonly expiresAtMs: number
  /**
   * Holds a use open until it is released, or the session expires or is signed out.
   * @param end called with the reason, at most once; at once for a session that ended since it was found
   * @returns releases the use
   */
  hold(end: (why: AppError) => void): () => void
}

/** A code that signs in once. */
export interface SignInLink {
  readonly code: string
  readonly expiresAtMs: number
}

/** A link that was not used yet, by the hash of its code. */
interface WaitingLink {
  readonly owner: OwnerId
  readonly keyHash: string
  readonly expiresAtMs: number
}

/** Open uses of a session. */
interface SessionUses {
  readonly ends: Set<(why: AppError) => void>
  readonly cancelTimer: () => void
}

/** Sessions of the console: sign-in, sign-out and sign-in links. No session outlives its key. */
export class Sessions {
  readonly #ports
  readonly #access
  readonly #cache = new Map<string, { readonly session: KeyedSession; readonly untilMs: number }>()
  /** The oldest is first. */
  readonly #links = new Map<string, WaitingLink>()
  readonly #uses = new Map<string, SessionUses>()
  /** Sessions that ended before their time: earlier reads of them no longer count. */
  readonly #closed = new Set<string>()

  constructor(ports: Ports, access: Access) {
    this.#ports = ports
    this.#access = access
  }

  /**
   * Signs in.
   * @param readAddress address of the request, for which failed credentials are counted
   * @throws AppError `unauthorized` or `rate_limited` as {@link Access.authenticate}, also for a used or expired link
   */
  async open(credential: Credential, readAddress: ReadAddress): Promise<NewSession> {
    const { store, clock, vault, emit } = this.#ports
    const caller = await this.#findCaller(credential, readAddress)
    const halves = { cookie: this.#newSecret(), token: this.#newSecret() }
    const hash = vault.hash(sessionText(halves)!)
    const createdAtMs = clock.now()
    const expiresAtMs = Math.min(createdAtMs + SESSION_MS, caller.expiresAtMs ?? Number.POSITIVE_INFINITY)
    const { owner, keyId } = caller
    const replacedHashes = await store.sessions.insert({ hash, owner, keyId, createdAtMs, expiresAtMs }, MAX_SESSIONS)
    // The key was removed in the meantime.
    if (replacedHashes === null) throw new InvalidKeyError('unknown')
    for (const old of replacedHashes) this.#end(old, replaced)
    emit('session.opened', { account: owner, keyId, by: 'key' in credential ? 'key' : 'link', address: readAddress() })
    return { halves, caller, expiresAtMs }
  }

  /**
   * The session of two halves.
   * @throws AppError `unauthorized` for halves of no session, or of one that ended itself or with its key
   */
  async find(halves: SessionHalves): Promise<OpenSession> {
    const hash = this.#hashHalves(halves)
    const session = hash === null ? null : await this.#read(hash)
    if (session === null || session.expiresAtMs <= this.#ports.clock.now()) throw ended()
    const caller = await this.#access.ofKeyHash(session.keyHash)
    return { caller, expiresAtMs: session.expiresAtMs, hold: end => this.#hold(session, end) }
  }

  /** Signs out: uses that the session holds open end. Halves of no session change nothing. */
  async close(halves: SessionHalves): Promise<void> {
    const hash = this.#hashHalves(halves)
    const session = hash === null ? null : await this.#read(hash)
    if (session === null) return
    await this.#ports.store.sessions.remove(session.hash)
    this.#end(session.hash, ended)
    this.#ports.emit('session.closed', { account: session.owner, keyId: session.keyId })
  }

  /**
   * The caller whom a link signs in, and the expiry of the link. The link stays valid.
   * @throws AppError as {@link open}
   */
  async offer(
    link: string,
    readAddress: ReadAddress,
  ): Promise<{ readonly caller: Caller; readonly expiresAtMs: number }> {
    const { keyHash, expiresAtMs } = this.#waiting(this.#ports.vault.hash(link), readAddress)
    return { caller: await this.#access.ofKeyHash(keyHash), expiresAtMs }
  }

  /** Makes a link that signs in once with the key of the caller. */
  async link(caller: Caller): Promise<SignInLink> {
    const { store, clock, vault } = this.#ports
    const key = await store.keys.find(caller.keyId)
    if (key === null) throw new InvalidKeyError('unknown')
    const code = this.#newSecret()
    const expiresAtMs = clock.now() + LINK_MS
    this.#dropLinks(caller.owner)
    this.#links.set(vault.hash(code), { owner: caller.owner, keyHash: key.hash, expiresAtMs })
    return { code, expiresAtMs }
  }

  async #findCaller(credential: Credential, readAddress: ReadAddress): Promise<Caller> {
    if ('key' in credential) return this.#access.authenticate(credential.key, readAddress)
    const hash = this.#ports.vault.hash(credential.link)
    const { keyHash } = this.#waiting(hash, readAddress)
    this.#links.delete(hash)
    return this.#access.ofKeyHash(keyHash)
  }

  /** @throws AppError for a used or expired link */
  #waiting(hash: string, readAddress: ReadAddress): WaitingLink {
    const link = this.#links.get(hash)
    if (link !== undefined && link.expiresAtMs > this.#ports.clock.now()) return link
    const error = new InvalidKeyError('unknown', 'this link was used or is too old; runyard console prints a new one')
    throw this.#access.failedKeys.refusal(readAddress(), error)
  }

  /** Makes room for one link more. */
  #dropLinks(owner: OwnerId): void {
    const nowMs = this.#ports.clock.now()
    for (const [hash, { expiresAtMs }] of this.#links) if (expiresAtMs <= nowMs) this.#links.delete(hash)
    const ownLinks = [...this.#links].filter(([, link]) => link.owner === owner)
    if (ownLinks.length >= MAX_LINKS.ofAccount) this.#links.delete(ownLinks[0]![0])
    if (this.#links.size >= MAX_LINKS.ofAll) this.#links.delete(this.#links.keys().next().value!)
  }

  #newSecret(): string {
    return Buffer.from(this.#ports.random.bytes(SECRET_BYTES)).toString('base64url')
  }

  #hashHalves(halves: SessionHalves): string | null {
    const text = sessionText(halves)
    return text === null ? null : this.#ports.vault.hash(text)
  }

  async #read(hash: string): Promise<KeyedSession | null> {
    const { store, clock, vault } = this.#ports
    const cached = this.#cache.get(hash)
    if (cached !== undefined && cached.untilMs > clock.now()) return cached.session
    const session = await store.sessions.find(hash)
    if (session === null || !vault.equal(session.hash, hash) || this.#closed.has(hash)) return null
    if (this.#cache.size >= CACHE_SIZE) this.#cache.clear()
    this.#cache.set(hash, { session, untilMs: clock.now() + CACHE_MS })
    return session
  }

  #hold({ hash, expiresAtMs }: KeyedSession, end: (why: AppError) => void): () => void {
    if (this.#closed.has(hash)) {
      end(ended())
      return () => {}
    }
    let use = this.#uses.get(hash)
    if (use === undefined) {
      const { clock } = this.#ports
      const cancelTimer = clock.after(Math.max(0, expiresAtMs - clock.now()), () => this.#endUses(hash, ended))
      use = { ends: new Set(), cancelTimer }
      this.#uses.set(hash, use)
    }
    const { ends, cancelTimer } = use
    ends.add(end)
    return () => {
      ends.delete(end)
      if (ends.size > 0 || this.#uses.get(hash)?.ends !== ends) return
      cancelTimer()
      this.#uses.delete(hash)
    }
  }

  /** Ends a session before its time. */
  #end(hash: string, makeError: () => AppError): void {
    this.#cache.delete(hash)
    if (this.#closed.size >= MAX_CLOSED) this.#closed.clear()
    this.#closed.add(hash)
    this.#endUses(hash, makeError)
  }

  #endUses(hash: string, makeError: () => AppError): void {
    const use = this.#uses.get(hash)
    if (use === undefined) return
    this.#uses.delete(hash)
    use.cancelTimer()
    for (const end of use.ends) end(makeError())
  }
}

function ended(): AppError {
  return new AppError('unauthorized', 'you are not signed in, or the session has ended; sign in again')
}

function replaced(): AppError {
  return new AppError('unauthorized', 'the account has too many sessions, and this one was the oldest; sign in again')
}
