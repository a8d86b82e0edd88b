/** The processes of a container of an engine on this machine, to suspend them. */
import type { ProcessStart } from '../../core/hardware/gpu-suspension.ts'
import type { Clock } from '../../ports/clock.ts'
import type { ProcessFamily } from '../../ports/gpu-suspender.ts'
import { findGroups, listGroup } from '../base/process-groups.ts'
import { readProcess } from '../base/process-table.ts'
import { createPatience, holdThreads, isHolding, releaseThreads } from '../base/thread-hold.ts'

/** Finds the processes of one container by its control groups, and holds their threads. */
export class ContainerFamily implements ProcessFamily {
  readonly #options
  #isSuspended: boolean

  constructor(options: {
    readonly clock: Clock
    /** The id of the container, which is a part of the names of its groups. */
    readonly container: string
    /** The pid of its first process on this machine. */
    readonly pid: number
  }) {
    this.#options = options
    const { unified } = this.#groups()
    this.#isSuspended = unified !== null && isHolding(unified)
  }

  /** True from the begin of a suspend of its CUDA processes to the end of their resume. */
  get isSuspended(): boolean {
    return this.#isSuspended
  }

  /** False where none of its groups can be seen, so that its processes are unknown. */
  get isVisible(): boolean {
    const { unified, others } = this.#groups()
    return unified !== null || others.length > 0
  }

  async members(): Promise<readonly ProcessStart[]> {
    const { unified, others } = this.#groups()
    const groups = unified === null ? others.slice(0, 1) : [unified]
    return groups.flatMap(listGroup).flatMap(pid => {
      const state = readProcess(pid)
      return state?.living === true ? [{ pid, startTime: state.startTime }] : []
    })
  }

  async hold(exceptThreads: readonly number[]): Promise<string | null> {
    this.#isSuspended = true
    const { unified } = this.#groups()
    if (unified === null) return 'its container has no control group of version 2'
    return holdThreads(unified, exceptThreads, createPatience(this.#options.clock))
  }

  async release(): Promise<void> {
    const { unified } = this.#groups()
    if (unified !== null) await releaseThreads(unified, createPatience(this.#options.clock))
    this.#isSuspended = false
  }

  #groups() {
    return findGroups(this.#options.pid, this.#options.container)
  }
}
