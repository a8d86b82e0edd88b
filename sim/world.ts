import { VirtualClock } from './clock.ts'
import { fnv1a, SeededRandom } from './random.ts'

/** Probabilities of faults; all 0 once the faults are over. */
export interface Faults {
  /** A request does not reach the server. */
  readonly lostRequest: number
  /** A response does not reach its caller, and the server notices. */
  readonly lostAnswer: number
  /** A response does not reach its caller, and the server counts it as delivered. */
  readonly vanishedAnswer: number
  /** A response reaches its caller, and the server counts it as lost. */
  readonly doubtedAnswer: number
  /** A message is delayed by up to seconds. */
  readonly delay: number
  /** A commit of the store fails. */
  readonly commit: number
  /** A commit of the store is made and reported as failed. */
  readonly commitAfter: number
  /** A notification is lost. */
  readonly lostWake: number
  /** A notification is late by up to seconds. */
  readonly lateWake: number
  /** A notification comes twice. */
  readonly doubledWake: number
  /** The driver cannot start a worker. */
  readonly start: number
  /** A new worker misbehaves. */
  readonly worker: number
  /** The receiver of webhooks misbehaves. */
  readonly receiver: number
}

/** No faults. */
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

/** Additions of some runs to the parts of all runs. */
export interface Features {
  /** See {@link World.freezes}. */
  readonly freezes?: boolean
  /** See {@link World.suspends}. */
  readonly suspends?: boolean
  /** See {@link World.shares}. */
  readonly shares?: boolean
  /** See {@link World.pauses}. */
  readonly pauses?: boolean
  /** See {@link World.canaries}. */
  readonly canaries?: boolean
  /** True for two servers over one store instead of one. */
  readonly pair?: boolean
  /** See {@link World.kubernetes}. */
  readonly kubernetes?: boolean
}

/** All visible steps of a run in order, as one hash. Two runs of a seed must have the same. */
export class Trace {
  readonly #clock: VirtualClock
  readonly #listen: ((line: string) => void) | undefined
  #low = 0x811c9dc5
  #high = 0x9e3779b9
  #lines = 0

  /** @param listen receives every line */
  constructor(clock: VirtualClock, listen?: (line: string) => void) {
    this.#clock = clock
    this.#listen = listen
  }

  /** Number of lines. */
  get lines(): number {
    return this.#lines
  }

  /** The hash as sixteen hexadecimal digits. */
  get hash(): string {
    return [this.#high, this.#low].map(part => part.toString(16).padStart(8, '0')).join('')
  }

  /** Adds a line with the current time. */
  add(kind: string, text: string): void {
    const line = `${this.#clock.monotonic()} ${kind} ${text}`
    this.#low = fnv1a(line, this.#low)
    this.#high = fnv1a(line, this.#high ^ this.#low)
    this.#lines += 1
    this.#listen?.(line)
  }
}

/** State that all parts of a simulation share. */
export class World {
  readonly seed: number
  readonly clock = new VirtualClock()
  readonly trace: Trace
  faults: Faults = NO_FAULTS
  /** True if every new worker ends before its first request, as with a broken image. */
  crashLoop = false
  /** True if every commit fails. */
  diskBroken = false
  /** True if the server leads, so that it may change the store. */
  leading = true
  readonly #leadWatchers = new Set<(leading: boolean) => void>()
  /** Duration of each call of the store, in milliseconds. */
  storeDelayMs = 0
  /** Grows with crashes and failures of the store: it is unknown whether operations under way took effect. */
  disturbances = 0
  /** Last time at which the store was slow or broken, in monotonic milliseconds. */
  #slowMs = Number.NEGATIVE_INFINITY
  #troubles = 0
  /** Mistakes of the system under test, in order. */
  readonly problems: string[] = []
  /** Counts of injected faults and other events, by name. */
  readonly counts = new Map<string, number>()
  /** Grows with each piece of work, so that one can see whether work is under way. */
  activity = 0

  /** True if endpoints have FlashBoot and short idle times, so that workers are frozen again and again. */
  readonly freezes: boolean
  /** True if the driver of the cards suspends workers before they are frozen, and other programs use the cards. */
  readonly suspends: boolean
  /** True if most endpoints with GPUs have a share of one; workers are suspended, too. */
  readonly shares: boolean
  /** True if endpoints have priorities and workers are paused in their jobs; workers are suspended, too. */
  readonly pauses: boolean
  /** True if changes of endpoints are first released to a share of their workers. */
  readonly canaries: boolean
  /** True if workers are pods of a cluster, instead of processes of a machine. */
  readonly kubernetes: boolean
  /** True if nearly all jobs are short, so that workers which ask for one get several. */
  readonly hasShortJobs: boolean

  /** @param listen receives every line of the trace */
  constructor(seed: number, listen?: (line: string) => void, features: Features = {}) {
    const { shares = false, pauses = false, canaries = false, kubernetes = false } = features
    const { suspends = shares || pauses, freezes = suspends } = features
    this.seed = seed
    this.freezes = freezes || suspends || shares || pauses
    this.suspends = suspends || shares || pauses
    this.pauses = pauses
    this.shares = shares
    this.canaries = canaries
    this.kubernetes = kubernetes
    this.hasShortJobs = seed % 3 === 0
    this.trace = new Trace(this.clock, listen)
  }

  /** The random sequence of one actor. */
  random(name: string): SeededRandom {
    return new SeededRandom(this.seed, name)
  }

  /** Counts an event. */
  count(name: string): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1)
  }

  /** Counts a fault after which it is unknown whether operations took effect. */
  disturb(name: string): void {
    this.count(name)
    this.disturbances += 1
    this.trace.add('disturbance', name)
  }

  /** Makes each call of the store take this long from now on, or fail. */
  degradeStore(delayMs: number, broken: boolean): void {
    this.#slowMs = this.clock.monotonic()
    this.storeDelayMs = delayMs
    this.diskBroken = broken
    this.trace.add('disk', `${delayMs} ms ${broken ? 'broken' : ''}`)
  }

  /**
   * Something of the servers or of the cluster changes.
   * @param troubles 1 if one more of them is in trouble for a while, -1 if a trouble ended, else 0
   */
  unsettle(troubles: -1 | 0 | 1): void {
    this.#slowMs = this.clock.monotonic()
    this.#troubles += troubles
  }

  /** Takes the lead from the server, or restores it. */
  lead(leading: boolean): void {
    this.#slowMs = this.clock.monotonic()
    this.leading = leading
    this.trace.add('lead', leading ? 'regained' : 'lost')
    for (const watcher of [...this.#leadWatchers]) watcher(leading)
  }

  /** Calls `watcher` at each change of {@link leading}. @returns removes the watcher */
  watchLead(watcher: (leading: boolean) => void): () => void {
    this.#leadWatchers.add(watcher)
    return () => void this.#leadWatchers.delete(watcher)
  }

  /**
   * True if the store was slow, broken or closed to changes since an instant; calls that waited then may take longer.
   */
  wasSlow(sinceMs: number): boolean {
    const isSlow = this.storeDelayMs > 0 || this.diskBroken || !this.leading || this.#troubles > 0
    return isSlow || this.#slowMs + 10_000 > sinceMs
  }

  /** Records a mistake of the system under test. */
  report(problem: string): void {
    this.trace.add('PROBLEM', problem)
    if (this.problems.length < 50) this.problems.push(`at ${this.clock.monotonic()} ms: ${problem}`)
  }
}
