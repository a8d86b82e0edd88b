import type { AuditDetail, AuditEntry, AuditObject, AuditOrigin, AuditSurface } from '../../core/audit/entry.ts'
import { readEntry, SERVER_ORIGIN } from '../../core/audit/entry.ts'
import { type AuditView, fieldChanges } from '../../core/audit/field-change.ts'
import { AppError, toAppError } from '../../core/errors.ts'
import type { OwnerId } from '../../core/ids.ts'
import type { Ports } from '../../ports/ports.ts'

/** An operation that changes something. */
export interface AuditedOperation {
  readonly surface: AuditSurface
  readonly operation: string
  readonly origin: AuditOrigin
  /** Its object; null for an object that the operation creates. */
  readonly object: AuditObject | null
  readonly detail?: AuditDetail
}

/** A change as the operation saw it: the object before and after. */
export interface SeenChange {
  readonly before: AuditView | null
  readonly after: AuditView | null
}

/** The functions that describe an operation for its entries. */
export interface AuditDescription<Result> {
  /** Its object; left out for the object of the beginning. */
  readonly objectFromResult?: (result: Result) => AuditObject | null
  /** The present object; null for an object that does not exist. Left out for an operation that reports its change. */
  readonly view?: (object: AuditObject) => Promise<AuditView | null>
  /** Facts about the result. */
  readonly detailFromResult?: (result: Result) => AuditDetail
}

/** An entry that waits to be written. */
interface WaitingEntry {
  readonly entry: AuditEntry
  readonly resolve: (sequence: number) => void
  readonly reject: (error: unknown) => void
}

/** Limits of waiting entries, of entries in one write, and of ends that could not be written yet. */
const MOST = { waiting: 10_000, write: 200, owed: 10_000 }

/**
 * Writes the audit log. Before an operation changes anything, an entry on stable storage announces it; before it is
 * answered, another entry has its outcome. Entries that arrive together are written together, one write after the
 * other.
 */
export class AuditLog {
  readonly #ports
  readonly #waiting: WaitingEntry[] = []
  /** Operations of this server that have begun and not ended. */
  readonly #open = new Set<number>()
  /** Ends that the store has yet to take. */
  #owed: AuditEntry[] = []
  #writing: Promise<void> | null = null

  /** @param ports those of the application; a command on a stopped server has no others */
  constructor(ports: Pick<Ports, 'store' | 'clock'>) {
    this.#ports = ports
  }

  /**
   * Runs an operation between the entries of its beginning and its end.
   * @param run gets a function with which it reports a change, so that no object is read for that
   * @throws AppError `unavailable`, before anything was done, when the first entry cannot be written, and after it
   *   when the second cannot; errors of `run`
   */
  async change<Result>(
    audited: AuditedOperation,
    run: (report: (change: SeenChange) => void) => Promise<Result>,
    { objectFromResult, view, detailFromResult }: AuditDescription<Result> = {},
  ): Promise<Result> {
    const viewOf = async (object: AuditObject | null) => (object === null ? null : ((await view?.(object)) ?? null))
    const previousView = await viewOf(audited.object)
    const begun = await this.#write(entryFromOperation(audited, this.#ports.clock.now()))
    const end = (fields: Partial<AuditEntry>) =>
      this.#end({ ...entryFromOperation(audited, this.#ports.clock.now()), ...fields, begun })
    const changes: SeenChange[] = []
    let result: Result
    try {
      result = await run(change => changes.push(change))
    } catch (thrown) {
      const { code, status } = toAppError(thrown)
      // The caller gets the error even if the entry cannot be written.
      await end({ outcome: status < 500 ? 'refused' : 'failed', problem: code }).catch(() => {})
      throw thrown
    }
    const object = objectFromResult?.(result) ?? audited.object
    // A completed change gets its entry even if the object cannot be read.
    const change = changes.at(-1) ?? { before: previousView, after: await viewOf(object).catch(() => previousView) }
    const detail = { ...audited.detail, ...detailFromResult?.(result) }
    await end({ object, changes: fieldChanges(change.before, change.after), detail, outcome: 'done' })
    return result
  }

  /**
   * Writes an entry for an operation that is about to happen.
   * @throws AppError `unavailable` when it cannot be written: then the operation must not happen
   */
  async note(audited: AuditedOperation): Promise<void> {
    await this.#write({ ...entryFromOperation(audited, this.#ports.clock.now()), outcome: 'done' })
  }

  /** Writes an entry for a refused operation. */
  async refused(audited: AuditedOperation, problem: string): Promise<void> {
    await this.#write({ ...entryFromOperation(audited, this.#ports.clock.now()), outcome: 'refused', problem })
  }

  /**
   * Writes an entry for an operation of the server itself.
   * @param account the account that it concerns; null for no account
   * @throws AppError `unavailable`
   */
  ofServer(
    operation: string,
    object: AuditObject | null,
    detail: AuditDetail,
    account: OwnerId | null = null,
  ): Promise<void> {
    return this.note({ surface: 'server', operation, origin: { ...SERVER_ORIGIN, account }, object, detail })
  }

  /** Ends operations that earlier servers began and did not end: their outcome is unknown. */
  async endForgotten(): Promise<void> {
    const { head } = await this.#ports.store.audit.ends()
    for (;;) {
      // After this, #open has all operations that this server began up to that head.
      while (this.#writing !== null) await this.#writing
      const begun = await this.#ports.store.audit.begun(MOST.write)
      const forgotten = begun.filter(({ sequence }) => sequence <= head.sequence && !this.#open.has(sequence))
      for (const { sequence, content } of forgotten) {
        const { at: _, sequence: _number, ...rest } = readEntry(content)
        await this.#write({ ...rest, atMs: this.#ports.clock.now(), outcome: 'unknown', begun: sequence })
      }
      if (forgotten.length < MOST.write) return
    }
  }

  /** Writes the ends that the store refused earlier. */
  async settle(): Promise<void> {
    const owed = this.#owed.splice(0, MOST.write)
    try {
      for (const entry of owed) {
        await this.#write(entry)
        this.#open.delete(entry.begun!)
      }
    } catch {
      // Written ends are not written again.
      this.#owed = [...owed, ...this.#owed]
    }
  }

  async #end(entry: AuditEntry): Promise<void> {
    try {
      await this.#write(entry)
      this.#open.delete(entry.begun!)
    } catch (error) {
      // The next start ends it, unless the store takes it before that.
      if (this.#owed.length < MOST.owed) this.#owed.push(entry)
      throw error
    }
  }

  #write(entry: AuditEntry): Promise<number> {
    if (this.#waiting.length >= MOST.waiting) return Promise.reject(cannotWrite())
    return new Promise((resolve, reject) => {
      this.#waiting.push({ entry, resolve, reject })
      this.#writing ??= this.#writeAll()
    })
  }

  async #writeAll(): Promise<void> {
    // Entries of the same turn are written together.
    await Promise.resolve()
    while (this.#waiting.length > 0) {
      const writes = this.#waiting.splice(0, MOST.write)
      try {
        const numbers = await this.#ports.store.audit.append(writes.map(({ entry }) => entry))
        for (const [index, { entry, resolve }] of writes.entries()) {
          const sequence = numbers[index]!
          if (entry.outcome === 'begun') this.#open.add(sequence)
          resolve(sequence)
        }
      } catch (error) {
        for (const { reject } of writes) reject(cannotWrite(error))
      }
    }
    this.#writing = null
  }
}

function entryFromOperation(
  { surface, operation, origin, object, detail = {} }: AuditedOperation,
  atMs: number,
): AuditEntry {
  const end = { changes: [], outcome: 'begun', problem: null, begun: null } as const
  return { ...origin, atMs, surface, operation, object, detail, ...end }
}

function cannotWrite(cause?: unknown): AppError {
  const reason = cause === undefined ? 'too many entries wait' : toAppError(cause).message
  const message = `the audit log cannot be written, so nothing is changed; the requested operation may have begun (${reason})`
  return new AppError('unavailable', message, { cause })
}
