import { resolve } from 'node:path'
import type { Command } from 'commander'
import { readConfig } from '../../config/config.ts'
import { CliError, EXIT } from '../exit.ts'

const ABOUT = `
Stop the server first. All that is sealed (secrets, signing keys, passwords of
registries, keys of endpoints, s3Config of jobs) is sealed with a new key, which
then takes the place of the old one in the data directory. It can be interrupted
at any moment: until everything is done the file has both keys, and the same
command goes on.

A key in RUNYARD_MASTER_KEY: set RUNYARD_MASTER_KEY=<new>,<old>, run this, then
set RUNYARD_MASTER_KEY=<new>.`

/** Adds `runyard master-key`. */
export function addMasterKey(program: Command): void {
  const group = program.command('master-key').description('the key with which secrets are encrypted')
  group
    .command('rotate')
    .description('replace it, while the server is stopped')
    .option('--data-dir <folder>', 'data directory of the server (default: RUNYARD_DATA_DIR, else ./.runyard)')
    .option('--database <url>', 'its PostgreSQL, if it has one (default: RUNYARD_DATABASE)')
    .addHelpText('after', ABOUT)
    .action(rotate)
}

async function rotate(options: Record<string, unknown>): Promise<void> {
  const reading = readConfig({ options, env: process.env, absolute: path => resolve(path) })
  if ('mistakes' in reading) throw new CliError(reading.mistakes.join('; '), EXIT.usage)
  const [{ StartError }, { rotateMasterKey }] = await Promise.all([
    import('../../main/start-error.ts'),
    import('../../main/commands/master-key.ts'),
  ])
  const shown = process.stderr.isTTY === true
  try {
    const { resealed, current, keyFile } = await rotateMasterKey(reading.config, so => {
      if (shown) process.stderr.write(`\r${so.resealed + so.current} values`)
    })
    if (shown) process.stderr.write('\n')
    const where = keyFile === null ? 'the first key of RUNYARD_MASTER_KEY' : `the new key in ${keyFile}`
    process.stdout.write(`${resealed + current} values are sealed with ${where}\n`)
  } catch (error) {
    if (error instanceof StartError) throw new CliError(error.message, EXIT.unavailable)
    throw error
  }
}
