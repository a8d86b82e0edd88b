import type { VirtualClock } from '../../sim/clock.ts'
import type { ModelRequest } from './model-requests.ts'

/** Cards of the machine. */
export const CARDS = 2
/** Memory of each card, in GiB. */
export const CARD_GIB = 80
/** Requests that a worker runs at once, as servers of language models do. */
export const BATCH = 16

const SAMPLE_MS = 1_000

/** Amounts at one instant. */
export interface CardUse {
  /** Cards that workers have: 1 for a whole card, its part of the memory for a share. */
  readonly cards: number
  /** Memory of suspended workers in the memory of the machine, in GiB. */
  readonly suspendedGib: number
}

/** The outcome of one policy. */
export interface PolicyOutcome {
  readonly waitsMs: readonly number[]
  /** From the arrival of each request until its end. */
  readonly wholeMs: readonly number[]
  /** Requests that waited for no start of a worker. */
  readonly warm: number
  readonly starts: number
  readonly resumes: number
  readonly cardSeconds: number
  /** Mean memory of suspended workers, in GiB. */
  readonly suspendedGib: number
}

/** Notes what happens to the requests of a trace. */
export class PolicyRecorder {
  readonly #clock
  readonly #requests
  readonly #fromMs
  readonly #waitsMs: number[] = []
  readonly #wholeMs: number[] = []
  #warm = 0
  #cardSeconds = 0
  #suspendedGib = 0
  #samples = 0
  starts = 0
  resumes = 0

  /** @param use asked each second of virtual time */
  constructor(clock: VirtualClock, requests: readonly ModelRequest[], use: () => CardUse) {
    this.#clock = clock
    this.#requests = requests
    this.#fromMs = clock.monotonic()
    const sample = () => {
      if (this.isOver) return
      const { cards, suspendedGib } = use()
      this.#cardSeconds += (cards * SAMPLE_MS) / 1_000
      this.#suspendedGib += suspendedGib
      this.#samples += 1
      clock.after(SAMPLE_MS, sample)
    }
    clock.after(SAMPLE_MS, sample)
  }

  /** True once all requests are done. */
  get isOver(): boolean {
    return this.#wholeMs.length === this.#requests.length
  }

  /** A worker begins a request. @param readyAtMs end of its start, in virtual milliseconds */
  began(request: ModelRequest, readyAtMs: number): void {
    this.#waitsMs.push(this.#clock.monotonic() - this.#arrival(request))
    if (readyAtMs <= this.#arrival(request)) this.#warm += 1
  }

  /** A request is done. */
  ended(request: ModelRequest): void {
    this.#wholeMs.push(this.#clock.monotonic() - this.#arrival(request))
  }

  /** The outcome, once it is over. */
  outcome(): PolicyOutcome {
    return {
      waitsMs: this.#waitsMs,
      wholeMs: this.#wholeMs,
      warm: this.#warm,
      starts: this.starts,
      resumes: this.resumes,
      cardSeconds: this.#cardSeconds,
      suspendedGib: this.#suspendedGib / Math.max(1, this.#samples),
    }
  }

  #arrival({ atMs }: ModelRequest): number {
    return this.#fromMs + atMs
  }
}
