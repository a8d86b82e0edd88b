import { type FieldProblem, fieldProblem, nameProblems } from '../field-problem.ts'
import { DATA_CENTERS } from '../hardware/catalog-types.ts'
import type { OwnerId, VolumeId } from '../ids.ts'

/** Speed class of a volume; here all have the same speed. */
export type VolumeType = 'STANDARD' | 'HIGH_PERFORMANCE'

/** A folder that outlives workers and that several endpoints can share. */
export interface NetworkVolume {
  readonly id: VolumeId
  readonly owner: OwnerId
  readonly name: string
  /** Requested size. The folder can grow as far as its disk allows. */
  readonly sizeGb: number
  readonly dataCenter: string
  readonly type: VolumeType
  readonly createdAtMs: number
}

/** Fields of a volume that a caller sets. */
export type VolumeInput = Pick<NetworkVolume, 'name' | 'sizeGb' | 'dataCenter' | 'type'>

const SIZE_GB = { min: 10, max: 4_096 }

/** All problems of the given fields of a volume. */
export function volumeProblems(input: Partial<VolumeInput>): FieldProblem[] {
  const { name, sizeGb, dataCenter, type } = input
  const problems = name === undefined ? [] : nameProblems(name)
  if (sizeGb !== undefined && !(Number.isInteger(sizeGb) && sizeGb >= SIZE_GB.min && sizeGb <= SIZE_GB.max)) {
    problems.push(fieldProblem('sizeGb', `must be an integer from ${SIZE_GB.min} to ${SIZE_GB.max} GB`))
  }
  if (dataCenter !== undefined && !DATA_CENTERS.some(({ id }) => id === dataCenter)) {
    const ids = DATA_CENTERS.map(({ id }) => id).join(', ')
    problems.push(fieldProblem('dataCenter', `is not a data center; the data centers are ${ids}`, `'${dataCenter}'`))
  }
  if (type !== undefined && type !== 'STANDARD' && type !== 'HIGH_PERFORMANCE') {
    problems.push(fieldProblem('type', `must be STANDARD or HIGH_PERFORMANCE, not '${type}'`))
  }
  return problems
}

/** Problem of a new size of a volume; empty if it can have it. Volumes only grow. */
export function shrinkProblems(volume: NetworkVolume, sizeGb: number): FieldProblem[] {
  if (sizeGb >= volume.sizeGb) return []
  const problem = `must not be smaller than the ${volume.sizeGb} GB that the volume has; volumes only grow`
  return [fieldProblem('sizeGb', problem)]
}
