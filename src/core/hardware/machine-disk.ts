/** The disk with the data of the server, in bytes. */
export interface MachineDisk {
  /** Bytes that this server can still write. */
  readonly availableBytes: number
  readonly totalBytes: number
}
