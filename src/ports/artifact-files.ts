import type { ArtifactRules } from '../core/apps/app.ts'
import type { ArtifactKey, BuildId } from '../core/ids.ts'

/** An archive that is being received; nobody else sees it. */
export interface ArtifactDraft {
  /** Bytes so far. */
  readonly bytes: number
  append(data: Uint8Array): Promise<void>
  /** Puts the archive at its place, on stable storage, in place of an earlier one. Closes the draft. */
  keep(): Promise<void>
  /** Removes it unless it was kept. Never fails. */
  drop(): Promise<void>
}

/** Archives of builds on this machine, and the folders that are made of them. */
export interface ArtifactFiles {
  draft(key: ArtifactKey): Promise<ArtifactDraft>
  /** The size of an archive; null without it. */
  bytes(key: ArtifactKey): Promise<number | null>
  /**
   * Makes the folder of a build, for reading alone, unless it exists. After a failure nothing of it is left.
   * @returns bytes of its files, when it was made
   * @throws ArtifactError for an archive that may not be unpacked, and one that does not exist
   */
  unpack(id: BuildId, key: ArtifactKey, rules: ArtifactRules): Promise<number | null>
  /** Absolute path of the folder of a build, which may not exist. */
  path(id: BuildId): string
  /** True if the folder of a build is complete. */
  isWhole(id: BuildId): boolean
  /** Builds with a folder. */
  unpacked(): Promise<BuildId[]>
  /** Removes the folder of a build, its content in the background; without effect when it does not exist. */
  removeFolder(id: BuildId): Promise<void>
  removeArtifact(key: ArtifactKey): Promise<void>
  /**
   * Archives that have not changed for a time, by the clock of the disk. Drafts that nobody continues are removed on
   * the way.
   */
  old(forMs: number): Promise<ArtifactKey[]>
}
