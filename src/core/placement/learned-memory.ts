/** The share of a GPU for workers whose endpoint names `auto`: learned from what its workers use (ADR 113). */
import type { Compute } from '../endpoints/endpoint.ts'
import type { MachineParts } from '../hardware/inventory.ts'
import { shareableMb } from './card-claims.ts'
import type { PlacedCompute } from './placed-compute.ts'
import { suitableGpus } from './placement-fit.ts'

/** Memory of one GPU that workers of a release needed, in MiB. */
export interface LearnedMemory {
  /** Largest measured use of one worker. */
  readonly peakMb: number
  /** True if the worker of that use, or one before it, had finished work. Until then the use is a lower bound. */
  readonly hasWorked: boolean
  /** Largest share with which a worker failed for want of memory; 0 without such a failure. */
  readonly failedMb: number
}

/** Facts about the memory of an endpoint with `auto`. */
export interface KnownMemory {
  /** Null before the first measurement of the release. */
  readonly learned: LearnedMemory | null
  /** Memory with which its program starts, in MiB, if it takes the part of a GPU that it is given; null for others. */
  readonly givenMb: number | null
}

/** Steps of shares: the memory of a program differs a little at each start. */
const STEP_MB = 256

/** Nothing is known. */
export const NOTHING_LEARNED: LearnedMemory = { peakMb: 0, hasWorked: false, failedMb: 0 }

/**
 * The share of the next worker, in MiB; null for a whole GPU, because no worker has shown its need yet. The margin is
 * a tenth and at least 512 MiB, for larger inputs than those that were measured. A failed share grows by a quarter.
 */
export function learnedShareMb({ learned, givenMb }: KnownMemory): number | null {
  const { peakMb, hasWorked, failedMb } = learned ?? NOTHING_LEARNED
  const grown = failedMb * 1.25
  if (givenMb !== null) return inSteps(Math.max(givenMb, grown))
  if (!hasWorked) return null
  return inSteps(Math.max(peakMb + Math.max(512, peakMb * 0.1), grown))
}

/**
 * The hardware with the share that a worker gets now.
 * @param known facts for `auto`; the share is a whole GPU if no suitable one has room for what is known
 */
export function placedCompute(compute: Compute, known: KnownMemory, parts: MachineParts): PlacedCompute {
  if (compute.kind === 'cpu') return compute
  const { memoryGb, ...whole } = compute
  if (memoryGb === undefined) return whole
  if (memoryGb !== 'auto') return { ...whole, memoryGb }
  const shareMb = learnedShareMb(known)
  if (shareMb === null) return whole
  const mostMb = Math.max(0, ...suitableGpus(parts, whole).map(({ gpu }) => shareableMb(gpu, 0, undefined)))
  return shareMb > mostMb ? whole : { ...whole, memoryGb: shareMb / 1024 }
}

/**
 * True if a request to a worker was work that shows its need. One that the application refuses, as for an address that
 * it does not have, is none.
 */
export function isWork({ complete, status }: { readonly complete: boolean; readonly status: number }): boolean {
  return complete && status < 400
}

/** The learned memory after a measurement. @param hasWorked true if the worker has finished work before it */
export function withUse(
  learned: LearnedMemory | null,
  { usedMb, hasWorked }: { readonly usedMb: number; readonly hasWorked: boolean },
): LearnedMemory {
  const before = learned ?? NOTHING_LEARNED
  return { ...before, peakMb: Math.max(before.peakMb, usedMb), hasWorked: before.hasWorked || hasWorked }
}

/** The learned memory after a failure for want of memory with a share. */
export function withFailure(learned: LearnedMemory | null, shareMb: number): LearnedMemory {
  const before = learned ?? NOTHING_LEARNED
  return { ...before, failedMb: Math.max(before.failedMb, shareMb) }
}

function inSteps(mb: number): number {
  return Math.ceil(mb / STEP_MB) * STEP_MB
}
