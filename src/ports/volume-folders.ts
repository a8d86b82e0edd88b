import type { VolumeId } from '../core/ids.ts'

/** Folders of network volumes on this machine, one for each volume. */
export interface VolumeFolders {
  /** Makes the folder of a volume, for this user alone, unless it exists. */
  create(id: VolumeId): Promise<void>
  /**
   * Removes the folder with its content; targets of links in it stay. When it resolves, the folder is no
   * longer at its path, though some of its files may still be removed after that.
   */
  remove(id: VolumeId): Promise<void>
  /** Absolute path of the folder. */
  path(id: VolumeId): string
}
