import type { LoadCase } from './rounds.ts'
import type { Bench, Side } from './sides.ts'

/** A benchmark: the same loads on several sides. */
export interface Suite {
  readonly name: string
  /** What is measured, as a heading. */
  readonly title: string
  readonly loads: readonly LoadCase[]
  /** Name of the side that others are compared with. */
  readonly baseline: string
  /** Starts the sides. */
  start(bench: Bench): Promise<readonly Side[]>
}
