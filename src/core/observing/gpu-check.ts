/** The checks of a card by `runyard doctor --gpu`. */
import type { Finding } from './diagnosis.ts'

/** One check of a card, with its result. */
export interface GpuCheck {
  /** Index of the card; null for a check of the machine. */
  readonly gpu: number | null
  readonly check: string
  /** `untested` if the check could not run here. */
  readonly result: 'works' | 'fails' | 'untested'
  /** A clause without a full stop. */
  readonly message: string
  /** Measured values, by names with their units. */
  readonly figures: Readonly<Record<string, number | string | boolean>>
}

/** A check as a line of `runyard doctor`. */
export function asFinding({ gpu, check, result, message }: GpuCheck): Finding {
  const state = result === 'works' ? 'ok' : result === 'fails' ? 'fail' : 'skip'
  return { check: gpu === null ? check : `gpu ${gpu} ${check}`, state, message, action: null }
}
