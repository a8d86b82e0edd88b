import type { Caller } from '../../core/accounts/permission.ts'
import { isFolderImage } from '../../core/endpoints/template.ts'
import { AppError } from '../../core/errors.ts'
import { DEFAULT_OWNER, type OwnerId } from '../../core/ids.ts'
import { choosesFolderRun, type FolderRun, OPERATOR_FOLDERS, OPERATOR_KEYS } from '../../core/workers/host-folder.ts'
import type { Ports } from '../../ports/ports.ts'

/** The name of the driver whose workers are processes of this machine. */
const PROCESSES = 'process'

/** True if workers of this image are processes of this machine: its folders, and apps where they need no container. */
export function isOnMachine({ driver }: Pick<Ports, 'driver'>, image: string): boolean {
  return isFolderImage(image) || driver.nameFor(image) === PROCESSES
}

/** The author of a change: a caller, or an account alone, which has no right to folders of the machine. */
export type Changer = OwnerId | Pick<Caller, 'owner' | 'operator'>

/** The account in which something is made or changed. */
export function changedAccount(by: Changer): OwnerId {
  return typeof by === 'string' ? by : by.owner
}

/**
 * Refuses an author who chooses a process of the machine and is not the operator.
 * @param previous null for what is new
 * @throws AppError `forbidden`
 */
export function requireFolderRight(
  ports: Pick<Ports, 'driver'>,
  by: Changer,
  after: Omit<FolderRun, 'isOnMachine'>,
  previous: Omit<FolderRun, 'isOnMachine'> | null,
): void {
  const placed = (run: Omit<FolderRun, 'isOnMachine'>) => ({
    ...run,
    isOnMachine: isOnMachine(ports, run.template.image),
  })
  if (!choosesFolderRun(placed(after), previous && placed(previous))) return
  if (changedAccount(by) !== DEFAULT_OWNER) throw new AppError('forbidden', OPERATOR_FOLDERS)
  if (typeof by === 'string' || !by.operator) throw new AppError('forbidden', OPERATOR_KEYS)
}
