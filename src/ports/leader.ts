/**
 * How a server stands among those on its database: `active` while it leads, `unsure` while that cannot be told, and `deposed` once
 * another one leads, which does not change any more.
 */
export type Leadership = 'active' | 'unsure' | 'deposed'

/** Which of several servers on one database acts. A single server always leads. */
export interface Leader {
  /** Whether this server leads, as far as it knows. Who does not may look, and must change nothing: it may be another server's now. */
  isLeader(): boolean
  /** The same, asked again unless it was asked a moment ago; to be awaited before each change. Takes 5 s at most. */
  confirm(): Promise<boolean>
  /**
   * Tells of every change from now on.
   * @param changed is given what it is now and, unless that is `active`, why, as a sentence; never throws
   * @returns what ends it
   */
  watch(changed: (now: Leadership, why: string | null) => void): () => void
}
