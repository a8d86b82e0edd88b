import { resolve } from 'node:path'
import type { Command } from 'commander'
import { readConfig } from '../../config/config.ts'
import { CliError, EXIT } from '../exit.ts'
import { printText } from '../terminal/terminal-text.ts'

interface CheckOptions {
  readonly dataDir?: string
  readonly repair?: boolean
  readonly json?: boolean
}

/** Adds `runyard check`. */
export function addCheck(program: Command): void {
  program
    .command('check')
    .description('check the embedded database, also of a running server')
    .option('--data-dir <folder>', 'data directory of the server (default: RUNYARD_DATA_DIR, else ./.runyard)')
    .option('--repair', 'mend what can be mended, while the server is stopped')
    .option('--json', 'print JSON lines')
    .action(check)
}

async function check({ dataDir, repair = false, json = false }: CheckOptions): Promise<void> {
  const options = dataDir === undefined ? {} : { dataDir }
  const { RUNYARD_DATA_DIR } = process.env
  const reading = readConfig({ options, env: { RUNYARD_DATA_DIR }, absolute: path => resolve(path) })
  if ('mistakes' in reading) throw new CliError(reading.mistakes.join('; '), EXIT.usage)
  const [{ StartError }, { checkDatabase }] = await Promise.all([
    import('../../main/listeners.ts'),
    import('../../main/check.ts'),
  ])
  try {
    const flaws = checkDatabase(reading.config, repair)
    for (const flaw of flaws) printText(`${json ? JSON.stringify(flaw) : lineOf(flaw, repair)}\n`)
    if (flaws.length === 0 && !json) printText('the database is whole\n')
    if (flaws.some(({ mends }) => !(mends && repair))) process.exitCode = EXIT.data
  } catch (error) {
    if (error instanceof StartError) throw new CliError(error.message, EXIT.unavailable)
    throw error
  }
}

function lineOf(
  { problem, remedy, mends }: { problem: string; remedy: string; mends: boolean },
  repair: boolean,
): string {
  if (!mends) return `${problem}; to do: ${remedy}`
  return repair ? `${problem}; mended: ${remedy}` : `${problem}; --repair would ${remedy}`
}
