import type { Session } from '../../../core/accounts/session.ts'
import type { KeyedSession, SessionStore } from '../../../ports/store/session-store.ts'
import { lockKey } from '../../tables/keys.ts'
import * as sql from '../../tables/sessions.ts'
import { type SessionRow, sessionFromRow } from '../../tables/sessions.ts'
import { lock, type PortOperations, query, queryOne, read, type Steps, write } from '../operation.ts'

/** Limit of sessions of an account that one sign-in removes; more than one where a limit was larger before. */
const REMOVED_AT_ONCE = 100

/** Sessions of the console. */
export const sessions = {
  insert: write(function* (session: Session, most: number): Steps<string[] | null> {
    const { hash, owner, keyId, createdAtMs, expiresAtMs } = session
    yield* lock(lockKey, [keyId])
    const insertedRows = yield* query(sql.insertSession, [hash, createdAtMs, expiresAtMs, keyId])
    if (insertedRows.length === 0) return null
    const removedRows = yield* query<{ hash: string }>(sql.deleteSessionsOver, [owner, most - 1, REMOVED_AT_ONCE, hash])
    return removedRows.map(row => row.hash)
  }),

  find: read(function* (hash: string): Steps<KeyedSession | null> {
    const row = yield* queryOne<SessionRow>(sql.findSession, [hash])
    return row === null ? null : sessionFromRow(row)
  }),

  remove: write(function* (hash: string): Steps<boolean> {
    return (yield* query(sql.deleteSession, [hash])).length > 0
  }),

  removeOver: write(function* (atMs: number, limit: number): Steps<number> {
    return (yield* query(sql.deleteEndedSessions, [atMs, limit])).length
  }),
} satisfies PortOperations<SessionStore>
