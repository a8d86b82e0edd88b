/** Tables of the audit log. */

/**
 * Entries are only added at the end and removed at the beginning. `hash` is that of `content` and of the hash of the
 * previous row; the other columns repeat parts of `content`, so that lists find them. Texts that an entry lacks are
 * empty.
 */
export const auditEntries = [
  `CREATE TABLE audit_entries (
    sequence {{integer}} PRIMARY KEY,
    at_ms {{integer}} NOT NULL,
    account TEXT NOT NULL,
    key_id TEXT NOT NULL,
    surface TEXT NOT NULL,
    operation TEXT NOT NULL,
    object TEXT NOT NULL,
    is_begun {{integer}} NOT NULL CHECK (is_begun IN (0, 1)),
    content TEXT NOT NULL,
    hash TEXT NOT NULL
  ) {{strict}}`,
  'CREATE INDEX audit_entries_by_time ON audit_entries (at_ms, sequence)',
  'CREATE INDEX audit_entries_by_account ON audit_entries (account, sequence)',
  'CREATE INDEX audit_entries_by_key ON audit_entries (key_id, sequence)',
  'CREATE INDEX audit_entries_by_operation ON audit_entries (operation, sequence)',
  'CREATE INDEX audit_entries_by_object ON audit_entries (object, sequence)',
]

/** Entries of operations that have begun and not ended; a row goes with the entry that ends it. */
export const auditBegun = `CREATE TABLE audit_begun (
  sequence {{integer}} PRIMARY KEY
) {{strict}}`

/** One row: the last entry that was removed, which the first one that is left continues. */
export const auditAnchors = `CREATE TABLE audit_anchors (
  id {{integer}} PRIMARY KEY CHECK (id = 1),
  sequence {{integer}} NOT NULL,
  hash TEXT NOT NULL
) {{strict}}`
