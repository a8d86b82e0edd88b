/** Finds and kills the remaining processes of workers that have ended. */
import type { WorkerId } from '../../core/ids.ts'
import { WORKER_VARIABLE } from '../base/host-environment.ts'
import { findByFileLimit, findByVariable, type ProcessState, readProcess, signal } from '../base/process-table.ts'
import type { Mark } from './process-marks.ts'

/**
 * Kills what is left of the group of a process that has ended. A number is given to no new process while a group has
 * it; so where a process has it again, the group was empty, and this is another one.
 */
export function killOrphanedGroup(pid: number): void {
  const state = readProcess(pid)
  if (state === null || !state.living) signal(-pid, 'SIGKILL')
}

/**
 * The living processes that a worker has started, itself among them: by its mark, and by its variables where it has
 * none or has changed it.
 * @param mark null for none
 */
export async function findFamily(worker: WorkerId, mark: Mark | null): Promise<ProcessState[]> {
  const named = await findByVariable(WORKER_VARIABLE, worker)
  const marked = mark === null ? [] : await findByFileLimit(mark.bytes)
  const namedPids = new Set(named.map(({ pid }) => pid))
  return [...named, ...marked.filter(({ pid }) => !namedPids.has(pid))].filter(({ pid }) => pid !== process.pid)
}

/** Kills what a worker started and what has left its group, as far as it can be found. @param mark null for none */
export async function killStrays(worker: WorkerId, mark: Mark | null): Promise<void> {
  const killed = new Set<string>()
  for (;;) {
    const strays = (await findFamily(worker, mark)).filter(({ pid, startTime }) => !killed.has(`${pid} ${startTime}`))
    if (strays.length === 0) return
    for (const { pid, startTime } of strays) {
      killed.add(`${pid} ${startTime}`)
      if (readProcess(pid)?.startTime === startTime) signal(pid, 'SIGKILL')
    }
  }
}
