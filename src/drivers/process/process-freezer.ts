/** Freezes workers that are processes: by their control group where they have one, else by signals. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '../../core/errors.ts'
import type { WorkerId } from '../../core/ids.ts'
import { readOptional } from '../../disk/optional-files.ts'
import { type Clock, pause } from '../../ports/clock.ts'
import { readProcess } from '../base/process-table.ts'
import { type Family, goOn, goOnAll, halt } from './process-halt.ts'
import type { Frozen, Running } from './process-worker.ts'

/** Pauses between looks at what does not rest yet, in milliseconds: 2 s in all. */
const PAUSES_MS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 977]

/** Freezes and thaws workers, each call about one worker after the one before. */
export class ProcessFreezer {
  readonly #clock
  readonly #turns = new WeakMap<Running, Promise<void>>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The means by which an earlier server froze a worker; null when it did not. */
  findFrozen({ identity, freezer }: Pick<Running, 'identity' | 'freezer'>): Frozen | null {
    if (freezer !== null && isToBeFrozen(freezer) && hasProcesses(freezer)) return { by: 'group' }
    return readProcess(identity.pid)?.stopped === true ? { by: 'signals', halted: null } : null
  }

  /** Freezes a worker that was not asked to end. @throws AppError `unavailable`; it then runs on */
  freeze(worker: WorkerId, running: Running): Promise<void> {
    return this.#inTurn(running, async () => {
      const { exit, asked, frozen, freezer } = running
      if (exit !== null || asked) return
      if (frozen?.by === 'signals' && frozen.halted !== null) return
      const byGroup = frozen?.by !== 'signals' && freezer !== null && hasProcesses(freezer)
      running.frozen = byGroup ? await this.#hold(freezer) : await this.#halt(worker, running)
      if (running.frozen === null && running.exit === null) {
        throw new AppError('unavailable', `worker ${worker} cannot be frozen: its processes do not come to rest`)
      }
    })
  }

  /** Thaws a worker. */
  thaw(worker: WorkerId, running: Running): Promise<void> {
    return this.#inTurn(running, async () => {
      const { frozen, freezer, exit } = running
      if (frozen === null) return
      if (exit === null) {
        if (frozen.by === 'group') setFrozen(freezer ?? '', false)
        else if (frozen.halted === null) await goOnAll(workerFamily(worker, running))
        else goOn(frozen.halted)
      }
      running.frozen = null
    })
  }

  async #hold(group: string): Promise<Frozen | null> {
    setFrozen(group, true)
    const wait = this.#patience()
    while (!isHeld(group)) {
      if (await wait()) continue
      setFrozen(group, false)
      return null
    }
    return { by: 'group' }
  }

  async #halt(worker: WorkerId, running: Running): Promise<Frozen | null> {
    const halted = await halt(workerFamily(worker, running), running.frozen !== null, this.#patience())
    return halted === null ? null : { by: 'signals', halted }
  }

  #patience(): () => Promise<boolean> {
    const pausesMs = [...PAUSES_MS]
    return async () => {
      const ms = pausesMs.shift()
      if (ms === undefined) return false
      await pause(this.#clock, ms)
      return true
    }
  }

  #inTurn(running: Running, act: () => Promise<void>): Promise<void> {
    const previousTurn = this.#turns.get(running)
    const turn = previousTurn === undefined ? act() : previousTurn.then(act, act)
    this.#turns.set(running, turn)
    return turn
  }
}

function workerFamily(worker: WorkerId, { identity, isolation, mark }: Running): Family {
  return { worker, leader: identity.pid, caged: isolation.kind === 'cage', mark }
}

/** True where there are processes in a group. False where there is no such group. */
export function hasProcesses(group: string): boolean {
  return readEvents(group).includes('populated 1')
}

/** Asks the kernel to hold what is in a group, or to let it go on. Does nothing where there is no such group. */
export function setFrozen(group: string, frozen: boolean): void {
  try {
    writeFileSync(join(group, 'cgroup.freeze'), frozen ? '1' : '0')
  } catch {
    // The worker has ended.
  }
}

/** True for a group that should be frozen; it may take a moment until all in it are held. */
export function isToBeFrozen(group: string): boolean {
  return readOptional(join(group, 'cgroup.freeze')).trim() === '1'
}

/** True where everything in a group is held, or nothing is in it. */
export function isHeld(group: string): boolean {
  const events = readEvents(group)
  return events.includes('frozen 1') || !events.includes('populated 1')
}

function readEvents(group: string): string[] {
  return readOptional(join(group, 'cgroup.events')).split('\n')
}
