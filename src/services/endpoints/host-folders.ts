import { type Caller, mayUseAllJobs } from '../../core/accounts/permission.ts'
import { savedEnv } from '../../core/endpoints/saved-env.ts'
import { isFolderImage } from '../../core/endpoints/template.ts'
import { givesWorkerKey } from '../../core/endpoints/worker-key.ts'
import { AppError } from '../../core/errors.ts'
import { DEFAULT_OWNER, type OwnerId } from '../../core/ids.ts'
import {
  type ChosenRun,
  choosesFolderRun,
  choosesRun,
  OPERATOR_FOLDERS,
  OPERATOR_KEYS,
  PROCESS_DRIVER,
} from '../../core/workers/host-folder.ts'
import type { Ports } from '../../ports/ports.ts'

/** True if workers of this image are processes of this machine: its folders, and apps where they need no container. */
export function isOnMachine({ driver }: Pick<Ports, 'driver'>, image: string): boolean {
  return isFolderImage(image) || driver.nameFor(image) === PROCESS_DRIVER
}

/** The author of a change: a caller, or an account alone, which has no right to folders of the machine. */
export type Changer = OwnerId | Pick<Caller, 'owner' | 'operator' | 'scope'>

/** The account in which something is made or changed. */
export function changedAccount(by: Changer): OwnerId {
  return typeof by === 'string' ? by : by.owner
}

const WORKER_KEYS =
  'workers of this app have a key for all jobs of the account (RUNPOD_API_KEY), so only a key that may write all jobs may choose what they run'

/**
 * Refuses an author who chooses a process of the machine and is not the operator, or the program of workers that have
 * a key with more rights on jobs than the author has.
 * @param previous null for what is new
 * @throws AppError `forbidden`
 */
export function requireRunRight(
  ports: Pick<Ports, 'driver'>,
  by: Changer,
  after: ChosenRun,
  previous: ChosenRun | null,
): void {
  requireJobsRight(by, after, previous)
  const placed = (run: ChosenRun) => ({
    ...run,
    isOnMachine: isOnMachine(ports, run.template.image),
  })
  if (!choosesFolderRun(placed(after), previous && placed(previous))) return
  if (changedAccount(by) !== DEFAULT_OWNER) throw new AppError('forbidden', OPERATOR_FOLDERS)
  if (typeof by === 'string' || !by.operator) throw new AppError('forbidden', OPERATOR_KEYS)
}

function requireJobsRight(by: Changer, after: ChosenRun, previous: ChosenRun | null): void {
  const { template, config } = after
  if (!givesWorkerKey(template.image, savedEnv({ env: config?.env ?? {} }, template))) return
  if (!choosesRun(after, previous) || (typeof by !== 'string' && mayUseAllJobs(by, 'write'))) return
  throw new AppError('forbidden', WORKER_KEYS)
}
