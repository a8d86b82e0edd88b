import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { CHANGE_COUNT, type ChangeCount, ChangeNote, changeCountIn } from './change-note.ts'

/**
 * Counts the changes of a database in the database itself, in the transactions that make them, and notes the count
 * outside once they are on stable storage.
 */
export class ChangeCounter {
  readonly #total: StatementSync
  readonly #set: StatementSync
  readonly #read: StatementSync
  readonly #note
  readonly #lineage
  /** Rows that the connection had changed when it last counted. */
  #rows: number
  /** The count of the database; null before the first change, since another connection may write until then. */
  #changes: number | null = null
  #isCounted = false

  private constructor(database: DatabaseSync, note: ChangeNote | null, count: ChangeCount) {
    this.#total = database.prepare('SELECT total_changes() AS total')
    this.#set = database.prepare(`UPDATE ${CHANGE_COUNT} SET changes = ?`)
    this.#read = database.prepare(`SELECT changes FROM ${CHANGE_COUNT}`)
    this.#note = note
    this.#lineage = count.lineage
    this.#rows = this.#rowsNow()
    note?.write(count)
  }

  /** Makes the count where the database has none. */
  static prepare(database: DatabaseSync): void {
    database.exec(`CREATE TABLE IF NOT EXISTS ${CHANGE_COUNT} (lineage TEXT NOT NULL, changes INTEGER NOT NULL) STRICT;
      INSERT INTO ${CHANGE_COUNT} SELECT lower(hex(randomblob(8))), 0 WHERE NOT EXISTS (SELECT 1 FROM ${CHANGE_COUNT})`)
  }

  /** Begins to count the changes of a file, which {@link prepare} has seen. */
  static open(database: DatabaseSync, file: string): ChangeCounter {
    return new ChangeCounter(database, ChangeNote.open(file), changeCountIn(database)!)
  }

  /**
   * Counts, in a transaction that is about to be flushed.
   * @param operations number of operations in it; those that changed no row leave the database as it is
   */
  count(operations: number): void {
    const rows = this.#rowsNow()
    if (rows === this.#rows) return
    this.#changes ??= Number(this.#read.get()?.changes)
    this.#changes += operations
    this.#isCounted = true
    this.#set.run(this.#changes)
    this.#rows = rows + 1
  }

  /** The transaction is on stable storage. */
  committed(): void {
    if (this.#isCounted) this.#note?.write({ lineage: this.#lineage, changes: this.#changes! })
    this.#isCounted = false
  }

  /** The transaction was undone. */
  rolledBack(): void {
    this.#isCounted = false
    this.#changes = null
    this.#rows = this.#rowsNow()
  }

  /** Ends, after the last transaction. */
  close(): void {
    this.#note?.close()
  }

  #rowsNow(): number {
    return Number(this.#total.get()?.total)
  }
}
