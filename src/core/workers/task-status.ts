/** The states of tasks; see core/endpoints/task.ts. */
import { takesJobs, type Worker } from './worker.ts'

/** The states of a task that clients know. */
export type TaskStatus = 'RUNNING' | 'EXITED'

/**
 * The status of a task: RUNNING also while it waits for a place.
 * @param workersMax that of its endpoint, 0 once its worker has ended
 * @param worker null before its start, and once its record was removed
 */
export function taskStatus(workersMax: number, worker: Worker | null): TaskStatus {
  const runs = worker === null ? workersMax > 0 : takesJobs(worker)
  return runs ? 'RUNNING' : 'EXITED'
}
