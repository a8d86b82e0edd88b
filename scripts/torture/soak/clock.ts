/** The wall clock of the server, which the soak steps: libfaketime gives it another time than that of the machine. */
import { existsSync, globSync, writeFileSync } from 'node:fs'

const PLACES = ['/usr/lib/*/faketime/libfaketimeMT.so.1', '/usr/lib*/faketime/libfaketimeMT.so.1']

/** A clock that can be stepped if libfaketime is installed. */
export class SteppedClock {
  readonly #file
  readonly #library: string | null

  /** @param file a new file that holds the step */
  constructor(file: string) {
    this.#file = file
    this.#library = globSync(PLACES).find(path => existsSync(path)) ?? null
    this.step(0)
  }

  /** True if the library exists. */
  get isThere(): boolean {
    return this.#library !== null
  }

  /** Environment variables that give this clock to a process. Monotonic time is that of the machine. */
  get env(): Readonly<Record<string, string>> {
    if (this.#library === null) return {}
    return {
      LD_PRELOAD: this.#library,
      FAKETIME_TIMESTAMP_FILE: this.#file,
      FAKETIME_CACHE_DURATION: '1',
      FAKETIME_DISABLE_SHM: '1',
      DONT_FAKE_MONOTONIC: '1',
      NO_FAKE_STAT: '1',
    }
  }

  /** Sets the difference to the clock of the machine; processes see it within a second. */
  step(seconds: number): void {
    writeFileSync(this.#file, `${seconds < 0 ? '-' : '+'}${Math.abs(seconds)}\n`)
  }
}
