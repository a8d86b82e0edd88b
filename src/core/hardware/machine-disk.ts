/** The disk that the data of the server is on, in bytes. */
export interface MachineDisk {
  /** What this server may still write. */
  readonly availableBytes: number
  readonly totalBytes: number
}
