/** nginx and Caddy, from the folder that `RUNYARD_TEST_PROXIES` names; see `.ci/proxies`. */
import { join } from 'node:path'

const folder = process.env.RUNYARD_TEST_PROXIES ?? ''

/** Reason why tests with proxies cannot run; false if they can. */
export const noProxies = skipped()

/** The programs. */
export const programs = { nginx: join(folder, 'usr/sbin/nginx'), caddy: join(folder, 'usr/bin/caddy') }

function skipped(): string | false {
  if (folder !== '') return false
  const problem = 'set RUNYARD_TEST_PROXIES to run nginx and Caddy as the guide says; .ci/proxies fetch gets them'
  if (process.env.RUNYARD_NO_SKIP === '1') throw new Error(problem)
  return problem
}
