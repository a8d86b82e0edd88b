/** A file of the console's page. */
export interface ConsoleFile {
  readonly contentType: string
  /** Whether its name changes with its content, so that browsers may keep it for good. */
  readonly immutable: boolean
  readonly plain: Uint8Array
  /** The same compressed; null where that is no smaller. */
  readonly gzip: Uint8Array | null
}

/** The files of the console's page, as they were built. */
export interface ConsoleFiles {
  /** @param path begins with a slash, such as `/index.html`; as it came in, so whatever it says is to stay within the files */
  find(path: string): Promise<ConsoleFile | null>
}
