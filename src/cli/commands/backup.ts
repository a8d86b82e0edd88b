import { existsSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { Command } from 'commander'
import { readConfig } from '../../config/config.ts'
import { AppError } from '../../core/errors.ts'
import { sizeText } from '../../core/models/model-problem.ts'
import { accessProblem, errorText } from '../../disk/access-problem.ts'
import { isNoSpaceError } from '../../disk/full-disk.ts'
import { dumpCommand, restoreCommand } from '../../main/database/postgres-commands.ts'
import { ask, type ConnectionOptions, wantsJson, withConnection } from '../client/connection.ts'
import { isAtTerminal, secretText } from '../client/hidden-input.ts'
import { CliError, EXIT } from '../exit.ts'
import { printText } from '../terminal/terminal-text.ts'

interface KeyOptions {
  readonly passphraseFile?: string
  /** False with `--without-keys`. */
  readonly withoutKeys?: boolean
}

interface BackupOptions extends ConnectionOptions, KeyOptions {
  readonly withLogs?: boolean
  readonly keep?: string
}

interface RestoreOptions extends KeyOptions {
  readonly dataDir: string
}

/** The report about a backup. */
interface Header {
  readonly bytes: number
  readonly createdAt: string
  readonly version: string
  readonly keys: 'sealed' | 'left out'
  readonly keyIsGiven: boolean
  readonly postgres: string | null
}

const ABOUT_KEYS = `
The encryption key and the API key are sealed with the passphrase in
RUNYARD_BACKUP_PASSPHRASE or in the file of --passphrase-file. Without it
neither can be had from the backup.`

/** Adds `runyard backup` and `runyard restore`. */
export function addBackup(program: Command): void {
  withKeys(withConnection(program.command('backup').argument('<file>', 'a file that does not exist yet, or a folder')))
    .description('back up a running server into one file')
    .option('--with-logs', 'also the output of workers')
    .option('--keep <number>', 'remove all but the newest backups of the folder afterwards')
    .addHelpText('after', ABOUT_KEYS)
    .action(backup)
  withKeys(program.command('restore').argument('<file>', 'a file of runyard backup'))
    .description('make a data directory out of a backup')
    .requiredOption('--data-dir <folder>', 'an empty or new folder')
    .addHelpText('after', ABOUT_KEYS)
    .action(restore)
}

function withKeys(command: Command): Command {
  return command
    .option('--passphrase-file <file>', 'has the passphrase of the keys (default: RUNYARD_BACKUP_PASSPHRASE)')
    .option('--without-keys', 'leave out the encryption key and the API key')
}

async function backup(file: string, options: BackupOptions): Promise<void> {
  const closed = accessProblem(file, 'write')
  if (closed !== null) throw new CliError(`no backup can be written to ${resolve(file)}: ${closed}`, EXIT.refused)
  const folder = statSync(file, { throwIfNoEntry: false })?.isDirectory() === true ? resolve(file) : null
  const keep = readKeep(options, folder)
  const passphrase = await readPassphrase(options, true)
  const { backupFileIn, keepBackup, keepNewest } = await import('../../main/commands/backup.ts')
  const path = folder === null ? resolve(file) : backupFileIn(folder)
  if (existsSync(path)) throw new CliError(`${path} is there already; give another file`, EXIT.usage)
  if (!existsSync(dirname(path))) throw new CliError(`there is no folder ${dirname(path)}`, EXIT.usage)
  const body = { passphrase, withLogs: options.withLogs === true }
  const answer = await ask(options, '/ops/backup', { method: 'POST', body })
  const header = await refusing(() => keepBackup(answer.body!, path, progress()), dirname(path))
  // Only now that there is a new one.
  const removed = folder === null || keep === null ? 0 : keepNewest(folder, keep, basename(path))
  if (wantsJson(options)) return printText(`${JSON.stringify({ file: path, ...header })}\n`)
  printText(`${path} has the server as of ${header.createdAt}, ${sizeText(header.bytes)}\n`)
  if (removed > 0) printText(`${removed} older backups were removed\n`)
  for (const line of notesOn(header, path)) printText(`${line}\n`)
}

/** The number of backups that stay; null for all. @throws CliError for an option that has no effect */
function readKeep({ keep }: BackupOptions, folder: string | null): number | null {
  if (keep === undefined) return null
  if (folder === null) throw new CliError('--keep needs a folder in place of the file', EXIT.usage)
  if (!/^[1-9]\d{0,5}$/.test(keep)) throw new CliError('--keep must be a number from 1', EXIT.usage)
  return Number(keep)
}

/** Further steps for people. */
function notesOn({ keys, keyIsGiven, postgres }: Header, path: string): string[] {
  return [
    ...(keys === 'sealed' ? [] : ['It has no keys: keep encryption-key of the data directory somewhere else']),
    ...(keyIsGiven ? ['RUNYARD_MASTER_KEY is not in it: keep it somewhere else'] : []),
    ...(postgres === null
      ? []
      : [
          'The database is not in it. Back it up with',
          `  ${dumpCommand(postgres, `${path}.dump`)}`,
          'and restore it into an empty one with',
          `  ${restoreCommand(postgres, `${path}.dump`)}`,
          'Both read the password from PGPASSWORD or ~/.pgpass',
        ]),
  ]
}

async function restore(file: string, options: RestoreOptions): Promise<void> {
  const dataDir = resolve(options.dataDir)
  const reading = readConfig({ options: { dataDir }, env: {}, absolute: path => resolve(path) })
  if ('mistakes' in reading) throw new CliError(reading.mistakes.join('; '), EXIT.usage)
  const closed = accessProblem(file, 'read')
  if (closed !== null) throw new CliError(`the backup cannot be read: ${closed}`, EXIT.refused)
  if (!existsSync(file)) throw new CliError(`there is no file ${resolve(file)}`, EXIT.usage)
  if (statSync(file).isDirectory()) throw new CliError(await folderText(resolve(file)), EXIT.usage)
  const [{ StartError }, { readBackupHeader, restoreBackup }] = await Promise.all([
    import('../../main/start-error.ts'),
    import('../../main/commands/restore.ts'),
  ])
  const { config } = reading
  const header = await refusing(
    async () => {
      const passphrase = (await readBackupHeader(file)).keys === 'sealed' ? await readPassphrase(options, false) : null
      return await restoreBackup({ config, file, passphrase, report: progress() })
    },
    dataDir,
    StartError,
  )
  printText(`${dataDir} is the server as of ${header.createdAt}, of Runyard ${header.version}\n`)
  const hasKeys = header.keys === 'sealed' && options.withoutKeys !== true
  if (!hasKeys && !header.keyIsGiven)
    printText(`It has no keys: put encryption-key of the server into ${dataDir} before the start\n`)
  if (header.keyIsGiven) printText('Start it with the RUNYARD_MASTER_KEY of the server\n')
  if (header.postgres !== null) {
    printText(`Its database is PostgreSQL at ${header.postgres}: restore it with pg_restore into an empty one\n`)
    printText(`  ${restoreCommand(header.postgres, `${resolve(file)}.dump`)}\n`)
    printText('and start with the address of that one in RUNYARD_DATABASE\n')
  }
}

/** The message about a folder in place of a backup. */
async function folderText(folder: string): Promise<string> {
  const { newestBackup } = await import('../../main/commands/backup.ts')
  const { newest } = newestBackup(folder, Date.now())
  if (newest === null) return `${folder} is a folder without a whole backup; give a file of runyard backup`
  return `${folder} is a folder; give a backup in it, such as the newest: ${join(folder, newest.name)}`
}

/**
 * The passphrase of the keys; asked for on a terminal.
 * @param isNew asks twice: with a typing error the keys could never be opened again
 * @returns null where the keys are left out
 * @throws CliError without a passphrase
 */
async function readPassphrase({ passphraseFile, withoutKeys }: KeyOptions, isNew: boolean): Promise<string | null> {
  if (withoutKeys === true) return null
  const text = passphraseFile === undefined ? process.env.RUNYARD_BACKUP_PASSPHRASE : readPassphraseFile(passphraseFile)
  if (text !== undefined && text !== '') return text
  if (passphraseFile === undefined && isAtTerminal()) {
    const typed = await secretText('passphrase of the keys')
    if (isNew && typed !== (await secretText('once more')))
      throw new CliError('the two passphrases differ; nothing was done', EXIT.usage)
    if (typed !== '') return typed
  }
  throw new CliError(
    'the keys need a passphrase: set RUNYARD_BACKUP_PASSPHRASE or give --passphrase-file; --without-keys leaves the keys out',
    EXIT.usage,
  )
}

function readPassphraseFile(file: string): string {
  try {
    return readFileSync(file, 'utf8').trimEnd()
  } catch (error) {
    throw new CliError(`the passphrase cannot be read: ${errorText(error)}`, EXIT.usage)
  }
}

/** Says how far it is, on a terminal. */
function progress(): (bytes: number, header: Header) => void {
  if (process.stderr.isTTY !== true) return () => {}
  return (bytes, header) => {
    const end = bytes >= header.bytes ? '\n' : ''
    process.stderr.write(`\r${sizeText(bytes)} of ${sizeText(header.bytes)}${end}`)
  }
}

/** Errors of the work as those of a command. @param folder where it writes */
async function refusing<Value>(
  work: () => Promise<Value>,
  folder: string,
  ...known: readonly (abstract new (
    ...args: never[]
  ) => Error)[]
): Promise<Value> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof AppError) throw new CliError(error.message, EXIT.data)
    if (known.some(kind => error instanceof kind)) throw new CliError((error as Error).message, EXIT.unavailable)
    if (isNoSpaceError(error)) throw new CliError(`the disk of ${folder} is full; make room there`, EXIT.unavailable)
    // Of the disk, or of a connection that the server has ended.
    const { code, cause } = error as NodeJS.ErrnoException
    if (code !== undefined) throw new CliError(errorText(error), EXIT.unavailable)
    if (cause instanceof Error) throw new CliError(`the server ended the backup (${cause.message})`, EXIT.unavailable)
    throw error
  }
}
