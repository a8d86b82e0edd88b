import { DATA_CENTERS } from '../hardware/catalog-types.ts'
import type { OwnerId, VolumeId } from '../ids.ts'

/** How fast a volume is where there is a choice; here all are alike. */
export type VolumeType = 'STANDARD' | 'HIGH_PERFORMANCE'

/** A folder that outlives workers and that several endpoints can share. */
export interface NetworkVolume {
  readonly id: VolumeId
  readonly owner: OwnerId
  readonly name: string
  /** What was asked for. The folder is as large as its disk allows. */
  readonly sizeGb: number
  readonly dataCenter: string
  readonly type: VolumeType
  readonly createdAtMs: number
}

/** What a caller sets of a volume. */
export type VolumeInput = Pick<NetworkVolume, 'name' | 'sizeGb' | 'dataCenter' | 'type'>

const SIZE_GB = { min: 10, max: 4_096 }

/** Everything wrong with what is given of a volume, one sentence each. */
export function volumeFailures(input: Partial<VolumeInput>): string[] {
  const { name, sizeGb, dataCenter, type } = input
  const failures: string[] = []
  if (name !== undefined && name.trim() === '') failures.push('name must not be empty')
  if (name !== undefined && name.length > 191) failures.push('name must have at most 191 characters')
  if (sizeGb !== undefined && !(Number.isInteger(sizeGb) && sizeGb >= SIZE_GB.min && sizeGb <= SIZE_GB.max)) {
    failures.push(`size must be an integer from ${SIZE_GB.min} to ${SIZE_GB.max} GB`)
  }
  if (dataCenter !== undefined && !DATA_CENTERS.some(({ id }) => id === dataCenter)) {
    failures.push(
      `'${dataCenter}' is not a data center; the data centers are ${DATA_CENTERS.map(({ id }) => id).join(', ')}`,
    )
  }
  if (type !== undefined && type !== 'STANDARD' && type !== 'HIGH_PERFORMANCE') {
    failures.push(`type must be STANDARD or HIGH_PERFORMANCE, not '${type}'`)
  }
  return failures
}

/** Why a volume cannot get this size, as a sentence; null when it can. Volumes only grow. */
export function shrinkProblem(volume: NetworkVolume, sizeGb: number): string | null {
  if (sizeGb >= volume.sizeGb) return null
  return `size must not be smaller than the ${volume.sizeGb} GB that the volume has; volumes only grow`
}
