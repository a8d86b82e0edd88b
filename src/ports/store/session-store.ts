import type { Session } from '../../core/accounts/session.ts'

/** A session with the hash of its key. */
export interface KeyedSession extends Session {
  readonly keyHash: string
}

/** Sessions of the console, which go with their keys. */
export interface SessionStore {
  /**
   * Adds a session, and removes the oldest ones of its account beyond `most`.
   * @returns the hashes of those that were removed; null, without effect, where the key is gone
   */
  insert(session: Session, most: number): Promise<string[] | null>
  /** A session, also one that is over. */
  find(hash: string): Promise<KeyedSession | null>
  /** False when it is gone. */
  remove(hash: string): Promise<boolean>
  /** Removes sessions that were over at an instant, at most `limit`. @returns their number */
  removeOver(atMs: number, limit: number): Promise<number>
}
