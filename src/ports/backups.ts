/** Backups of a server, made while it runs. */

/** What a backup is to have. */
export interface BackupWish {
  /** Seals the keys of the data directory; null leaves the keys out. */
  readonly passphrase: string | null
  /** Whether it has the output of workers. */
  readonly withLogs: boolean
}

/** A backup that can be read once. Its state is that of the moment at which it was made. */
export interface Backup {
  /** Its file, piece by piece. */
  readonly pieces: AsyncIterable<Uint8Array>
  /** Releases its space; may be called at any time and more than once. Never throws. */
  drop(): Promise<void>
}

/** Makes backups. */
export interface Backups {
  /** @throws AppError `conflict` while another one is being made or read, `unavailable` when the database cannot be copied */
  make(wish: BackupWish): Promise<Backup>
}
