import type { ApiKey } from '../../core/accounts/permission.ts'
import { AppError } from '../../core/errors.ts'
import { textBefore } from '../../core/text-parts.ts'
import type { KeyFailure } from '../../events.ts'
import type { Ports } from '../../ports/ports.ts'

/** Limit of failed keys of one address within {@link WINDOW_MS}; then the address is slowed down. */
const MAX_FAILURES = 20
const WINDOW_MS = 60_000
/** Time for which failed keys of a slowed address are answered with 429. */
const SLOWED_MS = 60_000
const MAX_ADDRESSES = 10_000

/** Finds the address of a request. Called only for requests whose key fails. */
export type ReadAddress = () => string

/**
 * Error for a key that is unknown, disabled or expired, which look the same to callers, or for a token of no worker.
 */
export class InvalidKeyError extends AppError {
  readonly reason: KeyFailure

  constructor(reason: KeyFailure, message = 'the API key is invalid or has expired') {
    super('unauthorized', message)
    this.reason = reason
  }
}

/** Reason why a key is not valid. @param record null for an unknown key */
export function keyFailure(record: Pick<ApiKey, 'disabled'> | null): KeyFailure {
  if (record === null) return 'unknown'
  return record.disabled ? 'disabled' : 'expired'
}

/** The failures of one address since `sinceMs`; it is slowed down until `untilMs`. */
interface Failures {
  sinceMs: number
  count: number
  untilMs: number
}

/**
 * Counts failed keys by their address, and slows down addresses that guess. Only failures are slowed down: a valid
 * key works from each address at any time, so a caller cannot lock out others behind the same address.
 */
export class FailedKeys {
  readonly #ports
  readonly #maxAddresses
  /** The address with the latest failure is last. */
  readonly #byAddress = new Map<string, Failures>()

  constructor(ports: Ports, maxAddresses = MAX_ADDRESSES) {
    this.#ports = ports
    this.#maxAddresses = maxAddresses
  }

  /**
   * Counts keys that failed.
   * @param address source of the keys; a missing address counts as one of its own
   * @param count number of keys that the request had
   * @returns the error to answer with: `error` itself, or `rate_limited` after too many failures of the address
   */
  refusal(address: string, error: InvalidKeyError, count = 1): AppError {
    const nowMs = this.#ports.clock.monotonic()
    const block = addressBlock(address)
    this.#ports.emit('key.failed', { address: block, reason: error.reason, count })
    const failures = this.#latest(block, nowMs)
    if (failures.untilMs > nowMs) {
      const retryAfterSeconds = Math.ceil((failures.untilMs - nowMs) / 1_000)
      const message = 'too many invalid API keys came from this address; valid ones still work'
      return new AppError('rate_limited', message, { retryAfterSeconds })
    }
    failures.count += count
    if (failures.count >= MAX_FAILURES) {
      failures.untilMs = nowMs + SLOWED_MS
      failures.sinceMs = failures.untilMs
      failures.count = 0
    }
    return error
  }

  /** Counts the failed token of a worker. Never slows its address down: all workers have the address of the relay. */
  failedToken(address: string): void {
    this.#ports.emit('key.failed', { address: addressBlock(address), reason: 'worker_token', count: 1 })
  }

  #latest(block: string, nowMs: number): Failures {
    const failures = this.#byAddress.get(block) ?? { sinceMs: nowMs, count: 0, untilMs: nowMs }
    if (nowMs - failures.sinceMs >= WINDOW_MS) {
      failures.sinceMs = nowMs
      failures.count = 0
    }
    this.#byAddress.delete(block)
    if (this.#byAddress.size >= this.#maxAddresses) this.#byAddress.delete(this.#byAddress.keys().next().value!)
    this.#byAddress.set(block, failures)
    return failures
  }
}

/** The part of an address that identifies a sender: all of an IPv4 address, the first 64 bits of an IPv6 address. */
export function addressBlock(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '')
  if (!plain.includes(':')) return plain
  const [start = '', end] = textBefore(plain, '%').split('::')
  const head = splitGroups(start)
  const tail = splitGroups(end ?? '')
  // An IPv4 address at the end stands for two groups.
  const width = tail.length + (tail.at(-1)?.includes('.') === true ? 1 : 0)
  const zeros = end === undefined ? [] : Array<string>(Math.max(0, 8 - head.length - width)).fill('0')
  const groups = [...head, ...zeros, ...tail].slice(0, 4)
  return `${groups.map(group => Number.parseInt(group, 16).toString(16)).join(':')}::/64`
}

function splitGroups(text: string): string[] {
  return text === '' ? [] : text.split(':')
}
