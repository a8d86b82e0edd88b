import { type FieldProblem, fieldProblem, nameProblems } from '../field-problem.ts'
import { DATA_CENTERS } from '../hardware/catalog-types.ts'
import type { OwnerId, VolumeId } from '../ids.ts'

/** Speed class of a volume; here all have the same speed. */
export type VolumeType = 'STANDARD' | 'HIGH_PERFORMANCE'

/** Kinds of volumes. A network volume lies in a data center, a global one in none. Tasks may have one of each. */
export type VolumeKind = 'network' | 'global'

/** A folder that outlives workers and that several endpoints can share. */
export interface Volume {
  readonly id: VolumeId
  readonly owner: OwnerId
  readonly name: string
  /** Requested size. The folder can grow as far as its disk allows. */
  readonly sizeGb: number
  /** Null for a global volume. */
  readonly dataCenter: string | null
  readonly type: VolumeType
  readonly createdAtMs: number
}

/** Fields of a volume that a caller sets. */
export type VolumeInput = Pick<Volume, 'name' | 'sizeGb' | 'dataCenter' | 'type'>

const SIZE_GB = { min: 10, max: 4_096 }

/** Size of a global volume for which nobody named one. */
export const GLOBAL_VOLUME_GB = SIZE_GB.max

/** The kind of a volume. */
export function volumeKind({ dataCenter }: Pick<Volume, 'dataCenter'>): VolumeKind {
  return dataCenter === null ? 'global' : 'network'
}

/** All problems of the given fields of a volume. */
export function volumeProblems(input: Partial<VolumeInput>): FieldProblem[] {
  const { name, sizeGb, dataCenter, type } = input
  const problems = name === undefined ? [] : nameProblems(name)
  if (sizeGb !== undefined && !(Number.isInteger(sizeGb) && sizeGb >= SIZE_GB.min && sizeGb <= SIZE_GB.max)) {
    problems.push(fieldProblem('sizeGb', `must be an integer from ${SIZE_GB.min} to ${SIZE_GB.max} GB`))
  }
  if (dataCenter != null && !DATA_CENTERS.some(({ id }) => id === dataCenter)) {
    const ids = DATA_CENTERS.map(({ id }) => id).join(', ')
    problems.push(fieldProblem('dataCenter', `is not a data center; the data centers are ${ids}`, `'${dataCenter}'`))
  }
  if (type !== undefined && type !== 'STANDARD' && type !== 'HIGH_PERFORMANCE') {
    problems.push(fieldProblem('type', `must be STANDARD or HIGH_PERFORMANCE, not '${type}'`))
  }
  return problems
}

/**
 * Problem of the volumes of a worker: it has a global one alone, or a network volume for each data center, of which it
 * finds the first; a task has one of each kind.
 */
export function togetherProblems(kinds: readonly VolumeKind[], runsOnce: boolean): FieldProblem[] {
  const count = (kind: VolumeKind) => kinds.filter(other => other === kind).length
  if (runsOnce) {
    const isTooMuch = count('network') > 1 || count('global') > 1
    return isTooMuch ? [fieldProblem('networkVolumeIds', 'may name one network volume and one global volume')] : []
  }
  if (count('global') === 0 || kinds.length === 1) return []
  return [fieldProblem('networkVolumeIds', 'may name a global volume alone: workers of an endpoint have one volume')]
}

/** Problem of a new size of a volume; empty if it can have it. Volumes only grow. */
export function shrinkProblems(volume: Volume, sizeGb: number): FieldProblem[] {
  if (sizeGb >= volume.sizeGb) return []
  const problem = `must not be smaller than the ${volume.sizeGb} GB that the volume has; volumes only grow`
  return [fieldProblem('sizeGb', problem)]
}
