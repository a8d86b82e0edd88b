import { type Caller, requireOperator } from '../../core/accounts/permission.ts'
import {
  type AuditFilter,
  type ChainPlace,
  type KeptEntry,
  readEntry,
  type ShownEntry,
} from '../../core/audit/entry.ts'
import { invalidFields } from '../../core/errors.ts'
import { fieldProblem } from '../../core/field-problem.ts'
import { MAX_PAGE, type Page, type PageRequest } from '../../core/pages.ts'
import type { AuditHeadNote } from '../../ports/audit-head.ts'
import type { Ports } from '../../ports/ports.ts'
import type { AuditPart, BrokenEntry } from '../../ports/store/audit-store.ts'

/** An entry with the hash that binds it. */
export interface HashedEntry extends ShownEntry {
  readonly hash: string
}

/** Result of a check of the chain. */
export interface ChainReport {
  /** The entry before the first one that was checked. */
  readonly anchor: ChainPlace
  /** The last entry that fits. */
  readonly head: ChainPlace
  /** The first entry that does not fit; null when all do. */
  readonly broken: BrokenEntry | null
}

/** Entries of one read. */
const READ = 500
/** Entries that one read looks at, of which few may fit: other calls of the store are answered between the reads. */
const LOOKED_AT = 10_000

/**
 * The operator's view of the audit log. All methods refuse keys without all rights of the operator (AppError
 * `forbidden`).
 */
export class AuditReader {
  readonly #store
  readonly #note

  /** @param note place of the noted head of the log; null for none */
  constructor({ store }: Ports, note: AuditHeadNote | null = null) {
    this.#store = store
    this.#note = note
  }

  /** The matching entries, newest first. @throws AppError `invalid` for a cursor that no page had */
  async page(
    caller: Caller,
    filter: AuditFilter,
    { cursor, limit = MAX_PAGE }: PageRequest,
  ): Promise<Page<HashedEntry>> {
    requireOperator(caller)
    const endSequence = cursor == null ? Number.MAX_SAFE_INTEGER : Number(cursor)
    if (!Number.isSafeInteger(endSequence) || endSequence < 1) {
      throw invalidFields([fieldProblem('cursor', 'is not one that an earlier page has returned')])
    }
    const entries = await this.#list(filter, endSequence, limit + 1)
    const items = entries.slice(0, limit)
    const nextCursor = entries.length > limit ? String(items.at(-1)!.sequence) : null
    return { items: items.map(({ content, hash }) => ({ ...readEntry(content), hash })), nextCursor }
  }

  async #list(filter: AuditFilter, before: number, limit: number): Promise<KeptEntry[]> {
    const entries: KeptEntry[] = []
    for (let next: number | null = before; next !== null; ) {
      const part: AuditPart = await this.#store.audit.list(filter, next, limit - entries.length, LOOKED_AT)
      entries.push(...part.entries)
      next = part.next
    }
    return entries
  }

  /** All entries, oldest first, in parts; also entries that only have a beginning. */
  all(caller: Caller): AsyncGenerator<readonly KeptEntry[]> {
    requireOperator(caller)
    return this.#all()
  }

  async *#all(): AsyncGenerator<readonly KeptEntry[]> {
    const { anchor } = await this.#store.audit.ends()
    for (let after = anchor.sequence; ; ) {
      const entries = await this.#store.audit.read(after, READ)
      const last = entries.at(-1)
      if (last === undefined) return
      yield entries
      after = last.sequence
    }
  }

  /** Checks the whole chain, a part at a time, and ends early when `signal` aborts. */
  async verify(caller: Caller, signal: AbortSignal): Promise<ChainReport> {
    requireOperator(caller)
    // Read first, so that the log should have the noted entry.
    const noted = this.#noted()
    const { head, ...ends } = await this.#store.audit.ends()
    let { anchor } = ends
    let at = anchor
    while (at.sequence < head.sequence) {
      signal.throwIfAborted()
      const { last, broken } = await this.#store.audit.verify(at, READ)
      if (broken !== null) {
        const present = await this.#store.audit.ends()
        if (present.anchor.sequence < broken.sequence) return { anchor, head: last, broken }
        // Retention removed the next entries in the meantime.
        anchor = present.anchor
        at = anchor
      } else if (last.sequence === at.sequence) break
      else at = last
    }
    return { anchor, head: at, broken: await this.#findProblem(noted, at) }
  }

  /** Undefined for a note that exists and cannot be read. */
  #noted(): ChainPlace | null | undefined {
    try {
      return this.#note?.read() ?? null
    } catch {
      return undefined
    }
  }

  async #findProblem(noted: ChainPlace | null | undefined, head: ChainPlace): Promise<BrokenEntry | null> {
    if (noted === null) return null
    if (noted !== undefined) return problemOfNote(this.#store, noted)
    return { sequence: head.sequence, problem: 'the note of the last entry in the data directory cannot be read' }
  }
}

/**
 * The problem when the log lost the entry that was noted as its last; null when the log has it, or retention removed
 * it.
 */
export async function problemOfNote(
  store: Ports['store'],
  { sequence, hash }: ChainPlace,
): Promise<BrokenEntry | null> {
  const [entry] = await store.audit.read(sequence - 1, 1)
  if (entry?.sequence === sequence && entry.hash === hash) return null
  const { anchor } = await store.audit.ends()
  if (anchor.sequence > sequence || (anchor.sequence === sequence && anchor.hash === hash)) return null
  const problem = `entry ${sequence}, which the data directory has noted as the last one, is gone or another: the end was cut off`
  return { sequence, problem }
}
