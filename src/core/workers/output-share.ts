/** Outputs of workers that must shrink, so that the outputs of an account on the disk stay within its limit. */
import type { OwnerId, WorkerId } from '../ids.ts'

/** The output of a worker on the disk. */
export interface KeptOutput {
  readonly id: WorkerId
  readonly owner: OwnerId
  /** Null while the worker has not ended. */
  readonly exitedAtMs: number | null
  readonly bytes: number
}

/**
 * Outputs to delete (0) or to truncate to this many bytes: of each account beyond its limit first those of workers
 * that ended longest ago, and if that is not enough those of its running workers, each to an equal share.
 * @param maxBytes limit of bytes of an account; null for no limit
 */
export function outputsToShrink(
  outputs: readonly KeptOutput[],
  maxBytes: (owner: OwnerId) => number | null,
): Map<WorkerId, number> {
  const shrunk = new Map<WorkerId, number>()
  for (const [owner, own] of Map.groupBy(outputs, output => output.owner)) {
    const most = maxBytes(owner)
    if (most === null) continue
    let sum = totalBytes(own)
    const ended = own.filter(({ exitedAtMs }) => exitedAtMs !== null)
    for (const { id, bytes } of ended.toSorted((a, b) => a.exitedAtMs! - b.exitedAtMs!)) {
      if (sum <= most) break
      shrunk.set(id, 0)
      sum -= bytes
    }
    if (sum <= most) continue
    const running = own.filter(({ exitedAtMs }) => exitedAtMs === null)
    const share = Math.floor(most / running.length)
    for (const { id, bytes } of running) if (bytes > share) shrunk.set(id, share)
  }
  return shrunk
}

function totalBytes(outputs: readonly KeptOutput[]): number {
  return outputs.reduce((sum, { bytes }) => sum + bytes, 0)
}

/** Bytes of output by account. */
export function outputBytesByOwner(outputs: readonly KeptOutput[]): Map<OwnerId, number> {
  return new Map([...Map.groupBy(outputs, ({ owner }) => owner)].map(([owner, own]) => [owner, totalBytes(own)]))
}
