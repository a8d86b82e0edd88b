import type { OpenCircuit } from '../../core/balancing/circuit-breaker.ts'
import type { Clock } from '../../ports/clock.ts'

/** Time for which the circuit stays open without a confirmation, in milliseconds. */
const OPEN_MS = 1_000

/**
 * The circuit breaker of one endpoint: while it is open, requests are refused at once because no
 * worker can start for them.
 */
export class CircuitBreaker {
  readonly #clock
  #circuit: OpenCircuit | null = null
  #untilMs = 0

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
  }

  /** Reason of the refusals; null while the circuit is closed. */
  get current(): OpenCircuit | null {
    return this.#clock.monotonic() < this.#untilMs ? this.#circuit : null
  }

  /** Opens the circuit, or confirms that it is open. */
  open(circuit: OpenCircuit): void {
    this.#circuit = circuit
    this.#untilMs = this.#clock.monotonic() + OPEN_MS
  }

  close(): void {
    this.#circuit = null
    this.#untilMs = 0
  }
}
