/** Backups of a server with its settings. */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { Config } from '../../config/config.ts'
import { packageVersion } from '../../disk/package-files.ts'
import type { BackupFolder, Backups } from '../../ports/backups.ts'
import { backupName } from '../../system/backup/backup-folder.ts'
import { createBackups } from '../../system/backup/data-dir-backups.ts'
import { withoutPassword } from '../../system/backup/pg-dump.ts'
import { createScheduledFolder } from '../../system/backup/scheduled-folder.ts'
import { systemClock } from '../../system/clock.ts'
import type { Log } from '../../system/observing/log.ts'
import { dumpCommand } from '../database/postgres-commands.ts'

export { keepNewest, newestBackup } from '../../system/backup/backup-folder.ts'
export { keepBackup } from '../../system/backup/keep-backup.ts'

/** Makes the backups of a server with these settings. */
export function serverBackups(config: Config): Backups {
  const { databaseUrl, apiKey, previousApiKey, metricsKey, masterKeys, backupPassphrase, ...settings } = config
  return createBackups({
    dataDir: config.dataDir,
    version: packageVersion(),
    postgres: databaseUrl === null ? null : withoutPassword(databaseUrl),
    keyIsGiven: masterKeys.length > 0,
    settings,
    now: () => systemClock.now(),
  })
}

/** The folder of scheduled backups of a server with these settings; undefined without one. */
export function scheduledBackupFolder(config: Config, backups: Backups): BackupFolder | undefined {
  const { databaseUrl: url, backupPassphrase: passphrase } = config
  const { folder, everyMs, keep, withLogs, pgDump } = config.backups
  if (folder === null) return undefined
  return createScheduledFolder({
    path: folder,
    everyMs,
    keep,
    wish: { passphrase, withLogs },
    backups,
    dump: url === null || pgDump === null ? null : { program: pgDump, url, env: process.env },
    now: () => systemClock.now(),
    unique: () => randomBytes(8).toString('hex'),
  })
}

/** Warns once that scheduled backups lack the database, and names the command that copies it. */
export function warnOfBackups({ databaseUrl: url, backups: { folder, pgDump } }: Config, log: Log): void {
  if (folder === null || url === null || pgDump !== null) return
  const command = dumpCommand(withoutPassword(url), join(folder, 'database.dump'))
  log.warn({ command }, 'the scheduled backups have no database; give --backup-pg-dump, or run this at the same times')
}

/** The file of a backup that is made now in a folder. */
export function backupFileIn(folder: string): string {
  return join(folder, backupName(systemClock.now()))
}
