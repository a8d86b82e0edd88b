/** Sentences about a store whose disk is full. */
import type { Explanation } from './explanation.ts'
import { machine } from './fix-actions.ts'

/** The remedy, as the end of a sentence. */
const ADVICE = 'make room on the disk of the database; all work then continues'

/**
 * An explanation whose cause is that the store refuses changes: jobs are neither accepted nor taken, and no worker
 * starts. A finished job stays finished.
 * @param full the reason, such as `its disk is full`, and the start in Unix milliseconds; null while the store takes
 * changes
 */
export function withFullStore(
  explanation: Explanation,
  full: { readonly reason: string; readonly sinceMs: number } | null,
): Explanation {
  if (full === null || explanation.cause === 'finished' || explanation.cause === 'store_damaged') return explanation
  return {
    ...explanation,
    cause: 'store_full',
    summary: `${fullText(full)}; ${explanation.summary}`,
    advice: ADVICE,
    actions: [machine('See the disk of the machine')],
    sinceMs: full.sinceMs,
  }
}

/** The refusals as a sentence without a full stop. */
export function fullText({ reason }: { readonly reason: string }): string {
  return `the store takes no change now: ${reason}`
}
