import {
  LOGIN_ID_BYTES,
  LOGIN_MS,
  type LoginRequest,
  type LoginStatus,
  MAX_LOGINS,
  shownAgent,
} from '../../core/accounts/login-request.ts'
import type { Caller, KeyRecord } from '../../core/accounts/permission.ts'
import { AppError, notFound } from '../../core/errors.ts'
import type { Ports } from '../../ports/ports.ts'
import type { Access } from './access.ts'
import { addressBlock, InvalidKeyError } from './failed-keys.ts'
import type { KeyInput, Keys } from './keys.ts'

/** A login while it is remembered. */
interface OpenLogin {
  readonly askedBy: Pick<LoginRequest, 'address' | 'agent' | 'askedAtMs' | 'expiresAtMs'>
  readonly block: string
  status: LoginStatus
  /** The approved key until it is handed out. */
  key: string | null
  /** Stops the end of an approved key that nobody takes. */
  cancelEnd: () => void
}

/**
 * Logins of command lines: a program asks, a person who is signed in approves, and the program gets a new key, once.
 * Logins are in memory: a restart of the server ends them, and the program asks again. An approved key that no program
 * takes in time is revoked.
 */
export class LoginRequests {
  readonly #ports
  readonly #keys
  readonly #access
  /** The oldest is first. */
  readonly #logins = new Map<string, OpenLogin>()

  constructor(ports: Ports, keys: Keys, access: Pick<Access, 'failedKeys'>) {
    this.#ports = ports
    this.#keys = keys
    this.#access = access
  }

  /**
   * A new login for a program without a key. Beyond the limits of an address and of all, the oldest login ends.
   * @param address of the program
   * @param agent its name for itself
   */
  ask(address: string, agent: string): LoginRequest {
    const askedAtMs = this.#ports.clock.now()
    const block = addressBlock(address)
    this.#makeRoom(block, askedAtMs)
    const id = Buffer.from(this.#ports.random.bytes(LOGIN_ID_BYTES)).toString('base64url')
    const askedBy = { address, agent: shownAgent(agent), askedAtMs, expiresAtMs: askedAtMs + LOGIN_MS }
    const login: OpenLogin = { askedBy, block, status: 'PENDING', key: null, cancelEnd: () => {} }
    this.#logins.set(id, login)
    return this.#view(id, login)
  }

  /**
   * The state of a login for the program that asked, with its key the first time after the approval.
   * @param address of the program, for which ids of no login are counted as failed keys
   * @throws AppError `unauthorized` or `rate_limited` for an id of no login
   */
  poll(id: string, address: string): LoginRequest & { readonly key: string | null } {
    const login = this.#logins.get(id)
    if (login === undefined) {
      const unknown = new InvalidKeyError('unknown', 'this login is unknown or ended; run the login again')
      throw this.#access.failedKeys.refusal(address, unknown)
    }
    const { key } = login
    const view = this.#view(id, login)
    if (key === null || view.status !== 'APPROVED') return { ...view, key: null }
    login.key = null
    login.status = 'CONSUMED'
    login.cancelEnd()
    return { ...view, key }
  }

  /** A login for the person who decides. @throws AppError `not_found` */
  find(id: string): LoginRequest {
    return this.#view(id, this.#find(id))
  }

  /**
   * Creates a key for the program of a login.
   * @throws AppError `not_found`, `conflict` for a login that was decided or is too late, and as {@link Keys.create}
   */
  async approve(
    caller: Caller,
    id: string,
    input: Pick<KeyInput, 'name' | 'scope' | 'expiresAtMs'>,
  ): Promise<KeyRecord> {
    const login = this.#decide(id, 'APPROVED')
    try {
      const { key, record } = await this.#keys.create(caller, input)
      login.key = key
      const { clock } = this.#ports
      const endMs = Math.max(0, login.askedBy.expiresAtMs - clock.now())
      login.cancelEnd = clock.after(endMs, () => void this.#revoke(caller, login, record).catch(() => {}))
      return record
    } catch (error) {
      login.status = 'PENDING'
      throw error
    }
  }

  /** Refuses a login. @throws AppError `not_found`, `conflict` for a login that was decided or is too late */
  deny(id: string): LoginRequest {
    return this.#view(id, this.#decide(id, 'DENIED'))
  }

  #find(id: string): OpenLogin {
    const login = this.#logins.get(id)
    if (login === undefined) throw notFound('login', id)
    return login
  }

  #decide(id: string, status: LoginStatus): OpenLogin {
    const login = this.#find(id)
    const present = this.#view(id, login).status
    if (present !== 'PENDING') throw new AppError('conflict', `this login is ${present.toLowerCase()} already`)
    login.status = status
    return login
  }

  /** The key was shown to nobody. It may have been removed meanwhile, or its author's rights may have ended. */
  async #revoke(caller: Caller, login: OpenLogin, { id }: KeyRecord): Promise<void> {
    login.key = null
    await this.#keys.remove(caller, id)
  }

  #view(id: string, { askedBy, status }: OpenLogin): LoginRequest {
    const isOver = askedBy.expiresAtMs <= this.#ports.clock.now() && (status === 'PENDING' || status === 'APPROVED')
    return { id, status: isOver ? 'EXPIRED' : status, ...askedBy }
  }

  /** Forgets logins whose time is over, and the oldest ones beyond the limits. An approved one keeps its timer. */
  #makeRoom(block: string, nowMs: number): void {
    // A program reads the end of its login for a while after it.
    for (const [id, { askedBy }] of this.#logins) if (askedBy.expiresAtMs + LOGIN_MS <= nowMs) this.#logins.delete(id)
    const ofBlock = [...this.#logins].filter(([, login]) => login.block === block)
    if (ofBlock.length >= MAX_LOGINS.ofAddress) this.#logins.delete(ofBlock[0]![0])
    if (this.#logins.size >= MAX_LOGINS.ofAll) this.#logins.delete(this.#logins.keys().next().value!)
  }
}
