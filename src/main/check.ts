/** The check of the embedded database of a data directory. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../config/config.ts'
import { toAppError } from '../core/errors.ts'
import { auditFile, type Flaw } from '../store/database-audit.ts'
import { DATABASE_NAME } from '../system/backup/data-dir-backups.ts'
import { systemClock } from '../system/clock.ts'
import { StartError } from './listeners.ts'
import { acquire } from './store.ts'

/**
 * Looks for flaws in the database, and mends them if asked.
 * @throws StartError when there is no database, it cannot be read, or it is to be mended while a server runs on it
 */
export function checkDatabase(config: Config, repair: boolean): Flaw[] {
  const file = join(config.dataDir, DATABASE_NAME)
  if (!existsSync(file)) throw new StartError(`there is no embedded database in ${config.dataDir}; see --data-dir`)
  const lock = repair ? acquire(config, false) : null
  try {
    return auditFile(file, repair, systemClock.now())
  } catch (error) {
    throw new StartError(toAppError(error).message, { cause: error })
  } finally {
    lock?.release()
  }
}
