import type { VolumeId } from '../../src/core/ids.ts'
import type { VolumeFolders } from '../../src/ports/volume-folders.ts'

/** Folders of volumes, in memory. */
export class MemoryVolumes implements VolumeFolders {
  readonly there = new Set<VolumeId>()

  async create(id: VolumeId): Promise<void> {
    this.there.add(id)
  }

  async remove(id: VolumeId): Promise<void> {
    this.there.delete(id)
  }

  path(id: VolumeId): string {
    return `/volumes/${id}`
  }
}
