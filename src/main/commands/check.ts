/** The check of the database of a server. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../../config/config.ts'
import { AppError, toAppError } from '../../core/errors.ts'
import { DATABASE_NAME } from '../../store/data-dir-database.ts'
import { type Audit, auditFile, auditPostgres } from '../../store/database-audit.ts'
import { printableAddress } from '../../store/engines/postgres-trouble.ts'
import { withoutPassword } from '../../system/backup/pg-dump.ts'
import { systemClock } from '../../system/clock.ts'
import { damageCommand } from '../database/postgres-commands.ts'
import { acquire, type Lead, lead, refuseOtherDatabase, requireMatchingDatabase } from '../database/store.ts'
import { StartError, toStartError } from '../start-error.ts'

/** The findings of a check. */
export interface Checked extends Audit {
  /** The command that looks for damage of the files themselves; null where this was done. */
  readonly damage: string | null
}

/**
 * Looks for flaws in the database, and fixes them if asked.
 * @throws StartError if the database does not exist, cannot be read, or should be repaired while a server runs on it
 */
export async function checkDatabase(config: Config, repair: boolean): Promise<Checked> {
  try {
    const { databaseUrl: url } = config
    await refuseOtherDatabase(config)
    return url === null ? checkFile(config, repair) : await checkPostgres(config, url, repair)
  } catch (error) {
    throw toStartError(error)
  }
}

function checkFile(config: Config, repair: boolean): Checked {
  const file = join(config.dataDir, DATABASE_NAME)
  if (!existsSync(file)) throw new StartError(`there is no embedded database in ${config.dataDir}; see --data-dir`)
  const lock = repair ? acquire(config, false) : null
  try {
    return { ...auditFile(file, repair, systemClock.now()), damage: null }
  } finally {
    lock?.release()
  }
}

/** A repair takes the data directory and leads the database as a server would, so no server is active in that time. */
async function checkPostgres(config: Config, url: string, repair: boolean): Promise<Checked> {
  if (repair) await requireMatchingDatabase(config)
  const lock = repair ? acquire(config, false) : null
  let led: Lead | null = null
  try {
    led = repair ? await lead(config) : null
    const audit = await auditPostgres(url, led?.term.fence ?? null, systemClock.now())
    return { ...audit, damage: damageCommand(withoutPassword(url)) }
  } catch (error) {
    if (error instanceof StartError) throw error
    const { code, message } = toAppError(error)
    const address = printableAddress(url)
    throw new AppError(code, message.includes(address) ? message : `${message} (${address})`, { cause: error })
  } finally {
    await led?.close()
    lock?.release()
  }
}
