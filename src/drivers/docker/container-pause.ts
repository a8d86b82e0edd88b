/** Freezes one container by the engine's pause, and makes that true again where the engine lost it. */
import { AppError } from '../../core/errors.ts'
import type { Engine } from './engine/engine.ts'
import { engineError } from './engine/engine-error.ts'
import { hasNotEnded, type InspectedContainer } from './inspected-container.ts'

/** The pause of a container; each call is made after the one before. */
export class ContainerPause {
  readonly #options
  /** True while the engine has paused it; null while that is unknown. */
  #paused: boolean | null = null
  /** True where it should be paused; null when nobody asked this server for either. */
  #wanted: boolean | null = null
  #turn: Promise<unknown> = Promise.resolve()

  constructor(options: {
    readonly engine: Engine
    readonly container: string
    /** Reads the container from the engine, and gives it to {@link ContainerPause.update}. */
    readonly inspect: () => Promise<InspectedContainer>
  }) {
    this.#options = options
  }

  /** Notes the state that the engine reports. */
  update({ State }: InspectedContainer): void {
    this.#paused = State.Paused === true
  }

  /** Pauses it. @throws AppError `unavailable` when the engine cannot do that; it then runs on */
  async freeze(): Promise<void> {
    this.#wanted = true
    try {
      await this.#make(true)
    } catch (thrown) {
      this.#wanted = null
      throw thrown
    }
  }

  /** Lets it go on, now or when the engine is back. @throws AppError `unavailable` when that is later */
  async thaw(): Promise<void> {
    this.#wanted = false
    await this.#make(false)
  }

  /** Applies the wanted state after the engine was away. Ignores failures. */
  async restore(): Promise<void> {
    const wanted = this.#wanted
    if (wanted !== null && wanted !== this.#paused) await this.#make(wanted).catch(() => {})
  }

  #make(paused: boolean): Promise<void> {
    const turn = this.#turn.then(() => this.#call(paused))
    this.#turn = turn.catch(() => {})
    return turn
  }

  async #call(paused: boolean): Promise<void> {
    const { engine, container, inspect } = this.#options
    if (this.#paused === paused) return
    try {
      await engine.call({ method: 'POST', path: `/containers/${container}/${paused ? 'pause' : 'unpause'}` })
      this.#paused = paused
    } catch (thrown) {
      // Engines answer differently if the container has this state already.
      const inspected = await inspect().catch(() => null)
      if (inspected !== null && (this.#paused === paused || !hasNotEnded(inspected))) return
      const { status, message } = engineError(thrown)
      if (status === 404) return
      throw new AppError('unavailable', `the container cannot be ${paused ? 'frozen' : 'thawed'} now: ${message}`)
    }
  }
}
