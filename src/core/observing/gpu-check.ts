/** The checks of a card by `runyard doctor --gpu`. */
import type { Finding } from './diagnosis.ts'

/** One line: what was tried on a card, and what came of it. */
export interface GpuCheck {
  /** Index of the card; null for what is about the machine. */
  readonly gpu: number | null
  readonly check: string
  /** `untested` where it could not be tried here. */
  readonly result: 'works' | 'fails' | 'untested'
  /** A clause without a full stop. */
  readonly message: string
  /** What was measured, by names with their units. */
  readonly figures: Readonly<Record<string, number | string | boolean>>
}

/** A check as a line of `runyard doctor`. */
export function asFinding({ gpu, check, result, message }: GpuCheck): Finding {
  const state = result === 'works' ? 'ok' : result === 'fails' ? 'fail' : 'skip'
  return { check: gpu === null ? check : `gpu ${gpu} ${check}`, state, message, action: null }
}
