import { AppError } from '../../src/core/errors.ts'
import type { Life } from '../life.ts'
import type { SeededRandom } from '../random.ts'
import type { World } from '../world.ts'

/** State of the link from a server to the store: calls pass, fail at once, or fail after seconds without an answer. */
export type LinkState = 'whole' | 'refusing' | 'hanging'

/** Error of a call that did not reach the store, or whose answer was lost. */
export function linkError(): AppError {
  return new AppError('unavailable', 'the store cannot do this now: the simulated connection to the store was cut')
}

/** Error of a change whose epoch is over. */
export function deposedError(): AppError {
  return new AppError('unavailable', 'the store cannot do this now: another simulated server has become active')
}

/** The way from one server to the store. */
export class StoreLink {
  state: LinkState = 'whole'
  /** True if calls that reach the store now take effect and their answers are lost. */
  losesAnswers = false
  readonly #world: World
  readonly #random: SeededRandom

  constructor(world: World, server: string) {
    this.#world = world
    this.#random = world.random(`connection of ${server}`)
  }

  /** Calls the store for a process. Each call is one round trip. */
  async ask<Value>(life: Life, run: () => Promise<Value>): Promise<Value> {
    this.#world.activity += 1
    if (this.state !== 'whole') await this.#fail(life)
    return life.call(run)
  }

  async #fail(life: Life): Promise<never> {
    // A change that belongs to something that has happened already is not made.
    this.#world.disturbances += 1
    // A call that hangs ends when the system gives the connection up.
    if (this.state === 'hanging') await life.sleep(this.#random.int(1_000, 10_000))
    else await life.call(async () => {})
    throw linkError()
  }
}
