import type { Caller } from '../../core/accounts/permission.ts'
import { AppError } from '../../core/errors.ts'
import { DEFAULT_OWNER, type OwnerId } from '../../core/ids.ts'
import { choosesFolderRun, type FolderRun, OPERATOR_FOLDERS, OPERATOR_KEYS } from '../../core/workers/host-folder.ts'

/** The author of a change: a caller, or an account alone, which has no right to folders of the machine. */
export type Changer = OwnerId | Pick<Caller, 'owner' | 'operator'>

/** The account in which something is made or changed. */
export function changedAccount(by: Changer): OwnerId {
  return typeof by === 'string' ? by : by.owner
}

/**
 * Refuses an author who chooses a folder of the machine and is not the operator.
 * @param previous null for what is new
 * @throws AppError `forbidden`
 */
export function requireFolderRight(by: Changer, after: FolderRun, previous: FolderRun | null): void {
  if (!choosesFolderRun(after, previous)) return
  if (changedAccount(by) !== DEFAULT_OWNER) throw new AppError('forbidden', OPERATOR_FOLDERS)
  if (typeof by === 'string' || !by.operator) throw new AppError('forbidden', OPERATOR_KEYS)
}
