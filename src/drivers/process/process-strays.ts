/** What is left of workers whose processes have ended. */
import type { WorkerId } from '../../core/ids.ts'
import { WORKER_VARIABLE } from './process-environment.ts'
import { findByVariable, readProcess, signal } from './process-table.ts'

/**
 * Kills what is left of the group of a process that has ended. A number is given to no new process while a group has it;
 * so where a process has it again, the group was empty, and this is another one.
 */
export function killOrphanedGroup(pid: number): void {
  const found = readProcess(pid)
  if (found === null || !found.living) signal(-pid, 'SIGKILL')
}

/** Kills what a worker started and what has left its group, as far as it can be found. */
export async function killStrays(worker: WorkerId): Promise<void> {
  const killed = new Set<string>()
  for (;;) {
    const strays = (await findByVariable(WORKER_VARIABLE, worker)).filter(
      ({ pid, startTime }) => !killed.has(`${pid} ${startTime}`),
    )
    if (strays.length === 0) return
    for (const { pid, startTime } of strays) {
      killed.add(`${pid} ${startTime}`)
      if (readProcess(pid)?.startTime === startTime) signal(pid, 'SIGKILL')
    }
  }
}
