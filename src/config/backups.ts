import { passphraseProblem } from '../core/secrets/passphrase.ts'
import { flag, optional, PATH, setting, TEXT, type ValuesOf, wholeNumber } from './setting.ts'

const HOUR_MS = 3_600_000

/** The settings of backups that the server makes by itself, and of changes of its database. */
export const BACKUP_SETTINGS = {
  backups: {
    /** Null for none. */
    folder: optional(
      '--backup-folder',
      '<folder>',
      PATH,
      'make a backup here again and again, in a folder that is for the backups of this server alone (default: none is made)',
    ),
    everyMs: setting(
      '--backup-every',
      '<hours>',
      '24',
      wholeNumber(1, 24 * 366, HOUR_MS),
      'hours from one backup to the next',
    ),
    keep: setting('--backup-keep', '<number>', '14', wholeNumber(1, 10_000), 'how many backups stay; older ones go'),
    passphraseFile: optional(
      '--backup-passphrase-file',
      '<file>',
      PATH,
      'has the passphrase of the keys in these backups (default: RUNYARD_BACKUP_PASSPHRASE)',
    ),
    withoutKeys: flag('--backup-without-keys', 'leave the encryption key and the API key out of these backups'),
    withLogs: flag('--backup-with-logs', 'also the output of workers in these backups'),
    /** Null where the server makes no copy of a PostgreSQL. */
    pgDump: optional(
      '--backup-pg-dump',
      '<program>',
      TEXT,
      'pg_dump that makes the copy of the PostgreSQL beside each of these backups, and before its schema is changed',
    ),
  },
  /** Null for none. */
  migrateTo: optional(
    '--migrate-to',
    '<schema>',
    wholeNumber(1, 100_000),
    'schema to which a database of an older version may be changed without a backup that the server makes itself',
  ),
}

type Given = ValuesOf<typeof BACKUP_SETTINGS>['backups']

/** Where the passphrase of scheduled backups may come from. */
export interface PassphraseSources {
  /** RUNYARD_BACKUP_PASSPHRASE. */
  readonly variable: string | undefined
  /** Reads a file; throws when it cannot. Left out where no backup is made. */
  readonly read?: ((path: string) => string) | undefined
}

/**
 * The passphrase of scheduled backups; null where there are none, or none with keys.
 * @param mistakes gets what is wrong with these settings
 */
export function scheduledPassphrase(
  given: Given,
  { variable, read }: PassphraseSources,
  mistakes: string[],
): string | null {
  const { folder, passphraseFile, withoutKeys } = given
  if (read === undefined || folder === null) return null
  if (withoutKeys) {
    if (passphraseFile !== null) mistakes.push('--backup-without-keys leaves out the keys of --backup-passphrase-file')
    return null
  }
  const text = passphraseFile === null ? variable : textIn(passphraseFile, read, mistakes)
  if (text === null) return null
  if (text === undefined || text === '') {
    mistakes.push(
      '--backup-folder needs a passphrase for the keys: set RUNYARD_BACKUP_PASSPHRASE or give --backup-passphrase-file; ' +
        '--backup-without-keys leaves the keys out',
    )
    return null
  }
  const problem = passphraseProblem(text)
  const source = passphraseFile === null ? 'RUNYARD_BACKUP_PASSPHRASE' : `the passphrase in ${passphraseFile}`
  if (problem !== null) mistakes.push(`${source} ${problem}`)
  return text
}

function textIn(file: string, read: (path: string) => string, mistakes: string[]): string | null {
  try {
    return read(file).trimEnd()
  } catch (error) {
    mistakes.push(`--backup-passphrase-file ${file} cannot be read: ${(error as Error).message}`)
    return null
  }
}
