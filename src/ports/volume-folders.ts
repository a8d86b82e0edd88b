import type { VolumeId } from '../core/ids.ts'

/** Where network volumes are: each is a folder of this machine. */
export interface VolumeFolders {
  /** Makes the folder of a volume, for this user alone; nothing happens when it is there. */
  create(id: VolumeId): Promise<void>
  /**
   * Takes the folder away with all that is in it; what links in it point to stays. When it resolves the folder is no
   * longer at its path, though its files may still be on their way out.
   */
  remove(id: VolumeId): Promise<void>
  /** Absolute path of the folder. */
  path(id: VolumeId): string
}
