/**
 * The statements of the store are written once for SQLite and PostgreSQL: parameters are `$1`, instants integer
 * milliseconds, booleans 0 and 1, JSON is TEXT that is never queried into, ids are TEXT. What the two do not share is
 * a fragment in double braces, filled in here.
 */

/**
 * Fragments by name. `lock` keeps the selected rows from changing, `lock_key` also from getting new rows that refer
 * to them; `skip_locked` belongs behind the selection of rows that a guarded change takes. `id_list` selects the ids
 * of the JSON list in $1. `shard` is the number of the rows to which a connection adds in sums that many change at
 * once. `row` is where a row is, for a list of rows that one statement selects and removes. `compact` gives a few
 * free pages back to the disk where the database does not do that by itself. `database_ms` is the database's own
 * clock; NULL where that is the clock of the server.
 */
type Fragment =
  | ('lock' | 'lock_key' | 'skip_locked' | 'shard' | 'row' | 'integer' | 'real' | 'strict')
  | ('id_list' | 'free_pages' | 'all_pages' | 'compact' | 'database_ms')

const SQLITE: Readonly<Record<Fragment, string>> = {
  lock: '',
  lock_key: '',
  skip_locked: '',
  shard: '0',
  row: 'rowid',
  integer: 'INTEGER',
  real: 'REAL',
  strict: 'STRICT',
  id_list: 'SELECT value FROM json_each($1)',
  free_pages: '(SELECT freelist_count FROM pragma_freelist_count)',
  all_pages: '(SELECT page_count FROM pragma_page_count)',
  compact: 'PRAGMA incremental_vacuum(1024)',
  database_ms: 'NULL',
}

const POSTGRES: Readonly<Record<Fragment, string>> = {
  lock: 'FOR NO KEY UPDATE',
  lock_key: 'FOR UPDATE',
  skip_locked: 'FOR UPDATE SKIP LOCKED',
  shard: `COALESCE(NULLIF(current_setting('runyard.shard', true), ''), '0')::bigint`,
  row: 'ctid',
  integer: 'BIGINT',
  real: 'DOUBLE PRECISION',
  strict: '',
  id_list: 'SELECT jsonb_array_elements_text(CAST($1 AS jsonb))',
  free_pages: '0',
  all_pages: '1',
  compact: 'SELECT 1',
  database_ms: '(CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT))',
}

/**
 * A statement as SQLite takes it. `$1` becomes `?1`: there is no positional binding for `$1`, and binding by name
 * costs half the speed. A limit that is a parameter alone is a part of the plan: SQLite compiles the statement again
 * at each run, which takes longer than the run. In a sum it is not.
 */
export function forSqlite(text: string): string {
  return fill(text, SQLITE)
    .replace(/\bLIMIT \$(\d+)/g, 'LIMIT ?$1 + 0')
    .replace(/\$(\d+)/g, '?$1')
}

/** `id IN (SELECT ... {{skip_locked}})`, of one column. */
const LOCKED_LIST = /(?<!\w)(\w+|\{\{row\}\}) IN \((\s*SELECT (?:(?!IN \(\s*SELECT)[\s\S])*?\{\{skip_locked\}\})\)/g

/**
 * A statement as PostgreSQL takes it. A list of rows to lock becomes an array, since the planner may run the
 * selection of an `IN` several times, and each run would lock other rows. Texts are compared byte by byte, as SQLite
 * does.
 */
export function forPostgres(text: string): string {
  const once = text.replace(LOCKED_LIST, '$1 = ANY (ARRAY($2))')
  const collated = /^\s*(?:CREATE|ALTER) TABLE/.test(once) ? once.replace(/\bTEXT\b/g, 'TEXT COLLATE "C"') : once
  return fill(collated, POSTGRES)
}

function fill(text: string, fragments: Readonly<Record<Fragment, string>>): string {
  return text.replace(/\{\{(\w+)\}\}/g, (whole, name: string) => fragments[name as Fragment] ?? whole)
}
