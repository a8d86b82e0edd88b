import { resolve } from 'node:path'
import type { Command } from 'commander'
import { readConfig } from '../../config/config.ts'
import { CliError, EXIT } from '../exit.ts'
import { printText } from '../terminal/terminal-text.ts'

interface CheckOptions {
  readonly dataDir?: string
  readonly database?: string
  readonly repair?: boolean
  readonly json?: boolean
}

/** Adds `runyard check`. */
export function addCheck(program: Command): void {
  program
    .command('check')
    .description('check the database, also of a running server')
    .option('--data-dir <folder>', 'data directory of the server (default: RUNYARD_DATA_DIR, else ./.runyard)')
    .option('--database <url>', 'a PostgreSQL (default: RUNYARD_DATABASE, else the embedded database)')
    .option('--repair', 'repair what can be repaired, while no server is active')
    .option('--json', 'print JSON lines')
    .action(check)
}

async function check({ dataDir, database, repair = false, json = false }: CheckOptions): Promise<void> {
  const given = { ...(dataDir === undefined ? {} : { dataDir }), ...(database === undefined ? {} : { database }) }
  const { RUNYARD_DATA_DIR, RUNYARD_DATABASE, RUNYARD_MASTER_KEY } = process.env
  const env = { RUNYARD_DATA_DIR, RUNYARD_DATABASE, RUNYARD_MASTER_KEY }
  const reading = readConfig({ options: given, env, absolute: path => resolve(path) })
  if ('mistakes' in reading) throw new CliError(reading.mistakes.join('; '), EXIT.usage)
  const [{ StartError }, { checkDatabase }] = await Promise.all([
    import('../../main/start-error.ts'),
    import('../../main/commands/check.ts'),
  ])
  try {
    const { flaws, schema, damage } = await checkDatabase(reading.config, repair)
    for (const flaw of flaws) printText(`${json ? JSON.stringify(flaw) : problemLine(flaw, repair)}\n`)
    if (!json) {
      const of =
        schema === null ? '' : ` (schema ${schema.version}, of Runyard ${schema.writtenBy ?? 'in development'})`
      if (flaws.length === 0) printText(`the database is whole${of}\n`)
      if (damage !== null) printText(`for damage of its files ask PostgreSQL itself: ${damage}\n`)
    }
    if (flaws.some(({ mends }) => !(mends && repair))) process.exitCode = EXIT.data
  } catch (error) {
    if (error instanceof StartError) throw new CliError(error.message, EXIT.unavailable)
    throw error
  }
}

function problemLine(
  { problem, remedy, mends }: { problem: string; remedy: string; mends: boolean },
  repair: boolean,
): string {
  if (!mends) return `${problem}; to do: ${remedy}`
  return repair ? `${problem}; repaired: ${remedy}` : `${problem}; --repair would ${remedy}`
}
