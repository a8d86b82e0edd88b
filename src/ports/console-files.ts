/** A file of the console's page. */
export interface ConsoleFile {
  readonly contentType: string
  /** True if the name changes with the content, so that browsers may cache the file for good. */
  readonly immutable: boolean
  readonly plain: Uint8Array
  /** The same compressed; null where that is no smaller. */
  readonly gzip: Uint8Array | null
}

/** The files of the console's page, as they were built. */
export interface ConsoleFiles {
  /**
   * Finds a file; never outside the files of the console.
   * @param path begins with a slash, such as `/index.html`; as the client sent it
   */
  find(path: string): Promise<ConsoleFile | null>
}
