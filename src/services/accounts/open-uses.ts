import { type ApiKey, type Caller, callerFromKey, isValidAt } from '../../core/accounts/permission.ts'
import { AppError } from '../../core/errors.ts'
import type { KeyId } from '../../core/ids.ts'
import { type Slot, Slots } from '../../core/slots.ts'
import type { Ports } from '../../ports/ports.ts'
import { InvalidKeyError, keyFailure } from './failed-keys.ts'

/**
 * Interval at which uses are checked against the clock and keys of new uses against the store. The promise is a
 * second.
 */
const CHECK_MS = 500
/** Delay of the next read after the store did not respond. */
const RETRY_MS = 2_000
/** Time after a change of a key in which callers may still use what was read before the change. */
const RECENT_MS = 60_000
/** Limit of keys of which a recent change is remembered. */
const MAX_RECENT = 1_000
/** Limit of keys that are read at once. */
const READS = 20

/** Something that a caller holds open. */
interface Use {
  readonly requires: (caller: Caller) => void
  readonly end: (why: AppError) => void
  slot: Slot
}

/** Open uses of one key. */
interface KeyUses {
  readonly uses: Slots<Use>
  readonly unsubscribe: () => void
  /** Earliest end of the key by the records of its callers; null for no end. */
  expiresAtMs: number | null
  /** Time of the next read of the key, of the monotonic clock; null when no read is planned. */
  readAtMs: number | null
}

/** Open uses of keys: streams, sockets and calls that wait. Each ends within a second of its key, or of its right. */
export class OpenUses {
  readonly #ports
  readonly #findKey
  readonly #byKey = new Map<KeyId, KeyUses>()
  readonly #changedMs = new Map<KeyId, number>()
  #cancelTimer: (() => void) | null = null
  #reading = false

  /** @param findKey the record of a key; null for one that does not exist, or has ended */
  constructor(ports: Pick<Ports, 'clock' | 'notifier'>, findKey: (id: KeyId) => Promise<ApiKey | null>) {
    this.#ports = ports
    this.#findKey = findKey
  }

  /**
   * Holds a use open until it is released. The key was checked already; it is read again only for uses that last.
   * @param requires throws when a caller lacks the right that the use needs
   * @param end called at most once, never in the call of `hold`: with `unauthorized` when the key is no longer valid,
   *   with the error of `requires` when it lost the right
   * @returns releases the use; may be called more than once
   */
  hold(caller: Caller, requires: (caller: Caller) => void, end: (why: AppError) => void): () => void {
    const { keyId, expiresAtMs } = caller
    const use: Use = { requires, end, slot: -1 }
    let keyUses = this.#byKey.get(keyId)
    if (keyUses === undefined) {
      const unsubscribe = this.#ports.notifier.subscribe(`key:${keyId}`, () => this.#readSoon(keyId))
      // The key may have changed on another server between its check and the subscription.
      keyUses = { uses: new Slots(), unsubscribe, expiresAtMs, readAtMs: this.#ports.clock.monotonic() }
      this.#byKey.set(keyId, keyUses)
    } else if (this.#isRecent(keyId)) keyUses.readAtMs = this.#ports.clock.monotonic()
    use.slot = keyUses.uses.add(use)
    this.#cancelTimer ??= this.#ports.clock.after(CHECK_MS, () => this.#check())
    return () => this.#release(keyId, use)
  }

  /**
   * A key changed here: each server checks the open uses, also those that begin soon by callers of an earlier check.
   */
  changed(keyId: KeyId): void {
    if (this.#changedMs.size >= MAX_RECENT) this.#changedMs.clear()
    this.#changedMs.set(keyId, this.#ports.clock.monotonic())
    this.#ports.notifier.publish(`key:${keyId}`)
  }

  /** Number of keys that hold something open. */
  get keys(): number {
    return this.#byKey.values().reduce((count, { uses }) => count + (uses.size > 0 ? 1 : 0), 0)
  }

  #isRecent(keyId: KeyId): boolean {
    if (this.#changedMs.size === 0) return false
    const changedMs = this.#changedMs.get(keyId)
    return changedMs !== undefined && this.#ports.clock.monotonic() - changedMs < RECENT_MS
  }

  #readSoon(keyId: KeyId): void {
    const keyUses = this.#byKey.get(keyId)
    if (keyUses === undefined) return
    keyUses.readAtMs = this.#ports.clock.monotonic()
    void this.#read()
  }

  #release(keyId: KeyId, use: Use): void {
    const keyUses = this.#byKey.get(keyId)
    keyUses?.uses.remove(use.slot, use)
  }

  #check(): void {
    this.#cancelTimer = null
    const nowMs = this.#ports.clock.now()
    for (const [keyId, { uses, unsubscribe, expiresAtMs }] of this.#byKey) {
      if (uses.size === 0) {
        unsubscribe()
        this.#byKey.delete(keyId)
      } else if (expiresAtMs !== null && expiresAtMs <= nowMs) this.#end(keyId, () => new InvalidKeyError('expired'))
    }
    void this.#read()
    if (this.#byKey.size > 0) this.#cancelTimer ??= this.#ports.clock.after(CHECK_MS, () => this.#check())
  }

  /** Reads the keys that are due, a few at once. */
  async #read(): Promise<void> {
    if (this.#reading) return
    this.#reading = true
    try {
      for (;;) {
        const nowMs = this.#ports.clock.monotonic()
        const isDue = ({ readAtMs }: KeyUses) => readAtMs !== null && readAtMs <= nowMs
        const due = this.#byKey
          .entries()
          .filter(([, keyUses]) => isDue(keyUses))
          .map(([keyId]) => keyId)
          .take(READS)
          .toArray()
        if (due.length === 0) return
        await Promise.all(due.map(keyId => this.#readOne(keyId)))
      }
    } finally {
      this.#reading = false
    }
  }

  async #readOne(keyId: KeyId): Promise<void> {
    const { clock } = this.#ports
    const keyUses = this.#byKey.get(keyId)
    if (keyUses === undefined) return
    keyUses.readAtMs = null
    try {
      const key = await this.#findKey(keyId)
      if (key === null || !isValidAt(key, clock.now()))
        return this.#end(keyId, () => new InvalidKeyError(keyFailure(key)))
      keyUses.expiresAtMs = key.expiresAtMs
      const caller = callerFromKey(key)
      this.#end(keyId, ({ requires }) => findRefusal(() => requires(caller)))
    } catch {
      // Valid keys stay valid while the store is unavailable.
      keyUses.readAtMs ??= clock.monotonic() + RETRY_MS
    }
  }

  #end(keyId: KeyId, findError: (use: Use) => AppError | null): void {
    for (const use of [...(this.#byKey.get(keyId)?.uses ?? [])]) {
      const refusal = findError(use)
      if (refusal === null) continue
      this.#release(keyId, use)
      use.end(refusal)
    }
  }
}

function findRefusal(check: () => void): AppError | null {
  try {
    check()
    return null
  } catch (error) {
    if (error instanceof AppError) return error
    throw error
  }
}
