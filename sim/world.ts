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
  /** A commit of the store is made and reported as failed. */
  readonly commitAfter: number
  /** A wake-up of the notifier is lost. */
  readonly lostWake: number
  /** A wake-up of the notifier comes up to seconds later. */
  readonly lateWake: number
  /** A wake-up of the notifier comes twice. */
  readonly doubledWake: number
  /** The driver cannot start a worker. */
  readonly start: number
  /** A new worker misbehaves. */
  readonly worker: number
  /** The receiver of webhooks does not answer as it should. */
  readonly receiver: number
}

/** A world in which nothing goes wrong. */
export const NO_FAULTS: Faults = {
  lostRequest: 0,
  lostAnswer: 0,
  vanishedAnswer: 0,
  doubtedAnswer: 0,
  delay: 0,
  commit: 0,
  commitAfter: 0,
  lostWake: 0,
  lateWake: 0,
  doubledWake: 0,
  start: 0,
  worker: 0,
  receiver: 0,
}

/** What all parts of a simulation share. */
export class World {
  readonly seed: number
  readonly clock = new VirtualClock()
  readonly trace: Trace
  faults: Faults = NO_FAULTS
  /** Every new worker ends before its first request, as with a broken image. */
  crashLoop = false
  /** No commit succeeds. */
  diskBroken = false
  /** Whether the server may change anything. */
  leading = true
  readonly #leadWatchers = new Set<(leading: boolean) => void>()
  /** How long each call of the store takes. */
  storeDelayMs = 0
  /** Grows with crashes and failures of the store: what was on its way then may have happened or not. */
  disturbances = 0
  /** When the store last was slow or broken, in monotonic milliseconds. */
  #slowMs = Number.NEGATIVE_INFINITY
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

  /** Counts a fault that leaves open what has happened. */
  disturb(name: string): void {
    this.count(name)
    this.disturbances += 1
    this.trace.add('disturbance', name)
  }

  /** Lets each call of the store take this long from now on, or all of them fail. */
  troubleStore(delayMs: number, broken: boolean): void {
    this.#slowMs = this.clock.monotonic()
    this.storeDelayMs = delayMs
    this.diskBroken = broken
    this.trace.add('disk', `${delayMs} ms ${broken ? 'broken' : ''}`)
  }

  /** Lets the server lose its lead, or have it again. */
  lead(leading: boolean): void {
    this.#slowMs = this.clock.monotonic()
    this.leading = leading
    this.trace.add('lead', leading ? 'regained' : 'lost')
    for (const watcher of [...this.#leadWatchers]) watcher(leading)
  }

  /** Tells of every change of {@link leading}. @returns what ends it */
  watchLead(watcher: (leading: boolean) => void): () => void {
    this.#leadWatchers.add(watcher)
    return () => void this.#leadWatchers.delete(watcher)
  }

  /** Whether the store was slow, broken or closed to changes at some time since then; what was in its line may take a while longer. */
  wasSlow(sinceMs: number): boolean {
    return this.storeDelayMs > 0 || this.diskBroken || !this.leading || this.#slowMs + 10_000 > sinceMs
  }

  /** Notes a mistake of the system under test. */
  report(problem: string): void {
    this.trace.add('PROBLEM', problem)
    if (this.problems.length < 50) this.problems.push(`at ${this.clock.monotonic()} ms: ${problem}`)
  }
}
