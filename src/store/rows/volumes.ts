import type { NetworkVolume, VolumeType } from '../../core/endpoints/volume.ts'
import type { OwnerId, VolumeId } from '../../core/ids.ts'
import type { SqlValue } from '../operations/operation.ts'

/** A row of `network_volumes`. */
export interface VolumeRow {
  readonly id: VolumeId
  readonly owner: OwnerId
  readonly name: string
  readonly size_gb: number
  readonly data_center: string
  readonly type: VolumeType
  readonly created_at_ms: number
}

/** A row as a volume. */
export function toVolume(row: VolumeRow): NetworkVolume {
  const { id, owner, name, type } = row
  return { id, owner, name, type, sizeGb: row.size_gb, dataCenter: row.data_center, createdAtMs: row.created_at_ms }
}

/** A volume's values in the order of its columns. */
export function ofVolume(volume: NetworkVolume): SqlValue[] {
  const { id, owner, name, sizeGb, dataCenter, type, createdAtMs } = volume
  return [id, owner, name, sizeGb, dataCenter, type, createdAtMs]
}
