/** Rules for the files of an artifact, which comes from outside. */

/** Longest name of a file or folder, and longest path, in bytes; those of Linux. */
const MAX_NAME_BYTES = 255
const MAX_PATH_BYTES = 4_000
/** Deepest folder. */
const MAX_DEPTH = 100

/** The reason why an artifact cannot be unpacked, as a sentence for its sender. */
export class ArtifactError extends Error {
  override readonly name = 'ArtifactError'
}

/** Types of entries that an artifact may have, by their names in the archive. */
const TYPES: Readonly<Record<string, 'file' | 'folder'>> = {
  File: 'file',
  OldFile: 'file',
  ContiguousFile: 'file',
  Directory: 'folder',
}

/** An entry of an archive, as its header has it. */
export interface ArchiveEntry {
  readonly path: string
  /** Such as `File` or `SymbolicLink`. */
  readonly type: string
  readonly bytes: number
}

/**
 * The parts of the path of an entry below the folder of the build; none for that folder itself.
 * @throws ArtifactError for a link, a device, and a path that could leave the folder
 */
export function entryParts({ path, type }: ArchiveEntry): { kind: 'file' | 'folder'; parts: readonly string[] } {
  const kind = TYPES[type]
  const shown = JSON.stringify(path.slice(0, 200))
  if (kind === undefined) throw new ArtifactError(`${shown} is a ${type}; an artifact may have files and folders alone`)
  if (path.startsWith('/')) throw new ArtifactError(`${shown} is an absolute path`)
  if (path.includes('\0') || path.includes('\\')) {
    throw new ArtifactError(`${shown} has a character that no path of an artifact may have`)
  }
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) throw new ArtifactError(`${shown} is too long a path`)
  const parts = path.split('/').filter(part => part !== '' && part !== '.')
  if (parts.includes('..')) throw new ArtifactError(`${shown} leads out of the artifact`)
  if (parts.length > MAX_DEPTH) throw new ArtifactError(`${shown} is nested too deeply`)
  if (parts.some(part => Buffer.byteLength(part) > MAX_NAME_BYTES)) {
    throw new ArtifactError(`${shown} has too long a name`)
  }
  if (kind === 'file' && parts.length === 0) throw new ArtifactError(`${shown} is no name of a file`)
  return { kind, parts }
}
