/** Clocks of processes that a test sets, by libfaketime: their monotonic clock goes on evenly. */
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from './cleanup.ts'

const library = readdirSync('/usr/lib')
  .map(folder => `/usr/lib/${folder}/faketime/libfaketimeMT.so.1`)
  .find(path => existsSync(path))

/** Reason why the clock of a process cannot be set here; false if it can. */
export const noFaketime = library === undefined ? 'needs libfaketime (apt-get install libfaketime)' : false

/** The wall clock of one or more processes. */
export interface SetClock {
  /** Environment of a process with this clock. */
  readonly env: Readonly<Record<string, string>>
  /** Sets it, from the right time, such as `-2h` or `+400d`. */
  set(offset: string): void
}

/** A wall clock that shows the right time until it is set. */
export function settableClock(): SetClock {
  const file = join(temporaryFolder(), 'clock')
  writeFileSync(file, '+0')
  return {
    env: {
      LD_PRELOAD: library ?? '',
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    },
    set: offset => writeFileSync(file, offset),
  }
}
