/** Backups of a server, made while it runs. */

/** Content of a backup. */
export interface BackupWish {
  /** Seals the keys of the data directory; null leaves the keys out. */
  readonly passphrase: string | null
  /** True to include the output of workers. */
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
  /**
   * @throws AppError `conflict` while another one is being made or read, `unavailable` when
   * the database cannot be copied
   */
  make(wish: BackupWish): Promise<Backup>
}

/** A backup in a folder. */
export interface KeptBackup {
  readonly file: string
  /** Time of the backup, in epoch milliseconds. */
  readonly atMs: number
  readonly bytes: number
}

/** The folder in which the server makes backups by itself. */
export interface BackupFolder {
  readonly path: string
  /** Time from one backup to the next. */
  readonly everyMs: number
  /**
   * The newest backup in it that was made before this time; null if there is no such backup.
   * @throws AppError `unavailable` when the folder cannot be read
   */
  newest(nowMs: number): Promise<KeptBackup | null>
  /**
   * Makes a backup, then removes older ones. A file with the name of a backup is complete at each moment.
   * @param signal gives it up
   * @throws AppError `conflict` while another one is being made, `unavailable` when it cannot be made
   */
  make(signal: AbortSignal): Promise<KeptBackup>
}
