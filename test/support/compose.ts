/** Docker Compose as a checker of its files, which needs no engine. */
import { spawnSync } from 'node:child_process'

const { PATH, RUNYARD_NO_SKIP } = process.env

/** Reads a file with these variables. */
export function composeConfig(file: string, env: Readonly<Record<string, string>>) {
  return spawnSync('docker-compose', ['--file', file, 'config', '--quiet'], { encoding: 'utf8', env: { PATH, ...env } })
}

const isThere = RUNYARD_NO_SKIP === '1' || spawnSync('docker-compose', ['version']).status === 0

/**
 * Reason why compose files cannot be checked; false if they can. If skips are not allowed, the checks run and fail.
 */
export const noCompose: string | false = isThere
  ? false
  : 'install docker-compose to check the compose file; it needs no engine'
