import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { WorkerStartError } from '../../core/workers/start-failure.ts'
import { accessProblem } from '../../disk/access-problem.ts'

/** True where something is at a path. */
export async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null)) !== null
}

/** The refusal of a path that the user of the server may not enter or read; null where the path is not refused. */
export function accessRefusal(path: string): WorkerStartError | null {
  const problem = accessProblem(path, 'read')
  return problem === null ? null : new WorkerStartError({ kind: 'access_refused', problem })
}

/** True for a file that may be run. */
export async function isProgram(path: string): Promise<boolean> {
  const mayRun = access(path, constants.X_OK).then(
    () => true,
    () => false,
  )
  const stats = await stat(path).catch(() => null)
  return stats?.isFile() === true && mayRun
}
