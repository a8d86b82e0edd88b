/** Statements and rows of the audit log. */

/** The columns of a row that a list shows. */
export interface EntryRow {
  readonly sequence: number
  readonly at_ms: number
  readonly content: string
  readonly hash: string
}

/** A whole row. */
export interface WholeEntryRow extends EntryRow {
  readonly account: string
  readonly key_id: string
  readonly surface: string
  readonly operation: string
  readonly object: string
  readonly is_begun: number
}

/** A row with its place in the chain. */
export interface ChainPlaceRow {
  readonly sequence: number
  readonly hash: string
}

const SHOWN = 'sequence, at_ms, content, hash'

/** The last entry. */
export const findHead = 'SELECT sequence, hash, at_ms FROM audit_entries ORDER BY sequence DESC LIMIT 1'

export const findAnchor = 'SELECT sequence, hash FROM audit_anchors WHERE id = 1'

/** $1 sequence, $2 hash. */
export const putAnchor = `
  INSERT INTO audit_anchors (id, sequence, hash) VALUES (1, $1, $2)
  ON CONFLICT (id) DO UPDATE SET sequence = excluded.sequence, hash = excluded.hash`

/**
 * $1 sequence, $2 instant, $3 account, $4 key, $5 surface, $6 operation, $7 object, $8 1 for a begin alone, else 0, $9
 * content, $10 hash.
 */
export const insertEntry = `
  INSERT INTO audit_entries (sequence, at_ms, account, key_id, surface, operation, object, is_begun, content, hash)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`

/** $1 sequence. */
export const insertBegun = 'INSERT INTO audit_begun (sequence) VALUES ($1)'

/** $1 sequence. */
export const deleteBegun = 'DELETE FROM audit_begun WHERE sequence = $1 RETURNING sequence'

/** $1 limit. */
export const listBegun = `
  SELECT e.sequence, e.at_ms, e.content, e.hash FROM audit_begun b JOIN audit_entries e ON e.sequence = b.sequence
  ORDER BY b.sequence LIMIT $1`

/** $1 the entry behind which they are, $2 limit. */
export const readEntries = `SELECT ${SHOWN} FROM audit_entries WHERE sequence > $1 ORDER BY sequence LIMIT $2`

/** $1 the entry behind which they are, $2 limit. */
export const readWhole = 'SELECT * FROM audit_entries WHERE sequence > $1 ORDER BY sequence LIMIT $2'

/** One step into the index by time. As a maximum all entries before the instant would be read. */
const lastBefore = (instant: string) =>
  `(SELECT sequence FROM audit_entries WHERE at_ms < ${instant} ORDER BY at_ms DESC, sequence DESC LIMIT 1)`

/**
 * $1 and $2 bounds of instants. The entries between them: behind `after`, up to `last`. Instants never step back from
 * one entry to the next, so bounds of them are bounds of the chain, and the last entry before an instant is the last
 * one by time too.
 */
export const findBounds = `
  SELECT COALESCE(${lastBefore('$1')}, (SELECT sequence - 1 FROM audit_entries ORDER BY sequence LIMIT 1), 0) AS after,
    COALESCE(${lastBefore('$2')}, 0) AS last`

/** A row of {@link findBounds}. */
export interface BoundsRow {
  readonly after: number
  readonly last: number
}

/** Columns that a list can filter. */
export type FilterColumn = 'account' | 'key_id' | 'operation' | 'object' | 'surface'

/** $1 the entry behind which they are, $2 the last one, $3 limit, then a value for each column. */
export function listEntries(columns: readonly FilterColumn[]): string {
  const fits = columns.map((column, index) => `AND ${column} = $${index + 4}`).join(' ')
  return `
    SELECT ${SHOWN} FROM audit_entries WHERE sequence > $1 AND sequence <= $2 AND is_begun = 0 ${fits}
    ORDER BY sequence DESC LIMIT $3`
}

/**
 * $1 the instant before which they were made, $2 the entry up to which they are too many, $3 limit. The
 * last of those to remove.
 */
export const findLastOld = `
  SELECT sequence, hash FROM (
    SELECT sequence, hash, at_ms FROM audit_entries ORDER BY sequence LIMIT $3) AS oldest
  WHERE at_ms < $1 OR sequence <= $2 ORDER BY sequence DESC LIMIT 1`

/** $1 the last one. */
export const deleteUpTo = 'DELETE FROM audit_entries WHERE sequence <= $1 RETURNING sequence'

/** $1 the last one. */
export const deleteBegunUpTo = 'DELETE FROM audit_begun WHERE sequence <= $1'
