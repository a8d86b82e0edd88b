import { VirtualClock } from './clock.ts'
import { SeededRandom } from './random.ts'
import { Trace } from './trace.ts'

/** What goes wrong in a run, as probabilities; all 0 once the faults stop. */
export interface Faults {
  /** A request does not reach the server. */
  readonly lostRequest: number
  /** An answer does not reach its caller, and the server knows. */
  readonly lostAnswer: number
  /** An answer does not reach its caller, and the server believes that it did. */
  readonly vanishedAnswer: number
  /** An answer reaches its caller, and the server believes that it did not. */
  readonly doubtedAnswer: number
  /** A message takes up to seconds. */
  readonly delay: number
  /** A commit of the store fails. */
  readonly commit: number
  /** The driver cannot start a worker. */
  readonly start: number
  /** A new worker misbehaves. */
  readonly worker: number
}

/** A world in which nothing goes wrong. */
export const NO_FAULTS: Faults = {
  ...{ lostRequest: 0, lostAnswer: 0, vanishedAnswer: 0, doubtedAnswer: 0 },
  ...{ delay: 0, commit: 0, start: 0, worker: 0 },
}

/** What all parts of a simulation share. */
export class World {
  readonly seed: number
  readonly clock = new VirtualClock()
  readonly trace: Trace
  faults: Faults = NO_FAULTS
  /** Every new worker ends before its first request, as with a broken image. */
  crashLoop = false
  /** Mistakes of the system under test, in the order in which they were found. */
  readonly problems: string[] = []
  /** Faults that were injected and other things worth counting, by name. */
  readonly counts = new Map<string, number>()
  /** Grows with everything that happens, so that one can see whether something still does. */
  activity = 0

  /** @param listen is given every line of the trace */
  constructor(seed: number, listen?: (line: string) => void) {
    this.seed = seed
    this.trace = new Trace(this.clock, listen)
  }

  /** The sequence of one actor. */
  random(name: string): SeededRandom {
    return new SeededRandom(this.seed, name)
  }

  /** Counts something. */
  count(name: string): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1)
  }

  /** Notes a mistake of the system under test. */
  report(problem: string): void {
    this.trace.add('PROBLEM', problem)
    if (this.problems.length < 50) this.problems.push(`at ${this.clock.monotonic()} ms: ${problem}`)
  }
}
