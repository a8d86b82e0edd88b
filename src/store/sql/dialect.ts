/**
 * The statements of this folder are written once for SQLite and PostgreSQL: parameters are `$1`, instants integer
 * milliseconds, booleans 0 and 1, JSON is TEXT that is never queried into, ids are TEXT. What the two do not share is a
 * fragment in double braces, filled in here.
 */

/** Fragments by name. `skip_locked` belongs behind the selection of rows that a guarded change takes. */
type Fragment = 'lock' | 'skip_locked' | 'integer' | 'real' | 'strict'

const SQLITE: Readonly<Record<Fragment, string>> = {
  lock: '',
  skip_locked: '',
  integer: 'INTEGER',
  real: 'REAL',
  strict: 'STRICT',
}

/**
 * A statement as SQLite takes it. `$1` becomes `?1`: there is no positional binding for `$1`, and binding by name costs
 * half the speed.
 */
export function forSqlite(text: string): string {
  const filled = text.replace(/\{\{(\w+)\}\}/g, (whole, name: string) => SQLITE[name as Fragment] ?? whole)
  return filled.replace(/\$(\d+)/g, '?$1')
}
