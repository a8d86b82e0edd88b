/**
 * The role of a server among those on its database: `active` while it leads, `unsure` while that is not known, and `deposed` once
 * another one leads, which is final.
 */
export type Leadership = 'active' | 'unsure' | 'deposed'

/** Which of several servers on one database acts. A single server always leads. */
export interface Leader {
  /** Whether this server leads, as far as it knows. A server that does not lead may read and must change nothing. */
  isLeader(): boolean
  /** The same, checked again unless it was checked a moment ago; to be awaited before each change. Takes at most 5 s. */
  confirm(): Promise<boolean>
  /**
   * Watches for changes of the role.
   * @param changed is given what it is now and, unless that is `active`, why, as a sentence; never throws
   * @returns ends the watch
   */
  watch(changed: (now: Leadership, why: string | null) => void): () => void
}
