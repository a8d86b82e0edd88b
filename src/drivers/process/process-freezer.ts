/**
 * Freezes workers that are processes: by their control group where they have one, else by signals. Holds their
 * threads, which takes a group.
 */
import { AppError } from '../../core/errors.ts'
import type { ProcessStart } from '../../core/hardware/gpu-suspension.ts'
import type { WorkerId } from '../../core/ids.ts'
import type { Clock } from '../../ports/clock.ts'
import type { ProcessFamily } from '../../ports/gpu-suspender.ts'
import { groupPids, hasProcesses, isHeld, isToBeFrozen, joinGroup, setFrozen } from '../base/control-group.ts'
import { type ProcessState, readProcess } from '../base/process-table.ts'
import { createPatience, holdThreads, isHolding, releaseThreads } from '../base/thread-hold.ts'
import { type Family, familyMembers, goOn, goOnAll, halt } from './process-halt.ts'
import type { Frozen, Running } from './process-worker.ts'

/** Freezes, thaws, holds and releases workers, each call about one worker after the one before. */
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
      if (byGroup) await gather(worker, running, freezer)
      running.frozen = byGroup ? await this.#freezeGroup(freezer) : await this.#halt(worker, running)
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

  /** The processes of a worker. */
  family(worker: WorkerId, running: Running): ProcessFamily {
    return {
      members: async () => (running.exit === null ? listMembers(worker, running) : []),
      hold: exceptThreads => this.#hold(worker, running, exceptThreads),
      release: () => this.#release(running),
    }
  }

  async #hold(worker: WorkerId, running: Running, exceptThreads: readonly number[]): Promise<string | null> {
    let problem = null as string | null
    await this.#inTurn(running, async () => {
      const { exit, asked, freezer } = running
      if (exit !== null || asked) problem = 'it is about to end'
      else {
        running.isSuspended = true
        if (freezer === null || !hasProcesses(freezer)) problem = 'it has no control group of its own'
        else {
          await gather(worker, running, freezer)
          problem = await holdThreads(freezer, exceptThreads, createPatience(this.#clock))
        }
      }
    })
    return problem
  }

  #release(running: Running): Promise<void> {
    return this.#inTurn(running, async () => {
      const { exit, freezer } = running
      if (exit === null && freezer !== null) await releaseThreads(freezer, createPatience(this.#clock))
      running.isSuspended = false
    })
  }

  async #freezeGroup(group: string): Promise<Frozen | null> {
    setFrozen(group, true)
    const wait = createPatience(this.#clock)
    while (!isHeld(group)) {
      if (await wait()) continue
      setFrozen(group, false)
      return null
    }
    return { by: 'group' }
  }

  async #halt(worker: WorkerId, running: Running): Promise<Frozen | null> {
    const halted = await halt(workerFamily(worker, running), running.frozen !== null, createPatience(this.#clock))
    return halted === null ? null : { by: 'signals', halted }
  }

  #inTurn(running: Running, act: () => Promise<void>): Promise<void> {
    const previousTurn = this.#turns.get(running)
    const turn = previousTurn === undefined ? act() : previousTurn.then(act, act)
    this.#turns.set(running, turn)
    return turn
  }
}

/** True for a worker that an earlier server suspended, as far as its threads are held. */
export function isHeldWorker(freezer: string | null): boolean {
  return freezer !== null && isHolding(freezer)
}

async function listMembers(worker: WorkerId, running: Running): Promise<readonly ProcessStart[]> {
  const { freezer, isolation } = running
  const members =
    isolation.kind === 'cage' && freezer !== null && hasProcesses(freezer)
      ? groupPids(freezer).flatMap(pid => livingProcess(pid) ?? [])
      : await familyMembers(workerFamily(worker, running))
  return members.map(({ pid, startTime }) => ({ pid, startTime }))
}

function livingProcess(pid: number): ProcessState | null {
  const state = readProcess(pid)
  return state?.living === true ? state : null
}

/**
 * Moves processes of a worker without a cage into its group that are not in it: those that it started before it was in
 * it itself. All in a cage begin in its group.
 */
async function gather(worker: WorkerId, running: Running, group: string): Promise<void> {
  if (running.isolation.kind === 'cage') return
  const inGroup = new Set(groupPids(group))
  for (const { pid } of await familyMembers(workerFamily(worker, running))) if (!inGroup.has(pid)) joinGroup(group, pid)
}

function workerFamily(worker: WorkerId, { identity, isolation, mark }: Running): Family {
  return { worker, leader: identity.pid, caged: isolation.kind === 'cage', mark }
}
