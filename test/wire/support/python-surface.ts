import { execFile } from 'node:child_process'
import { patient } from '../../support/patience.ts'
import { temporaryFolder } from './cleanup.ts'
import { python } from './python.ts'
import { fixture } from './server.ts'

/** Target of the official Python client. */
export interface Surface {
  readonly url: string
  readonly key: string
  /** A queue endpoint with the handler of everyday, and one that is no queue or does not exist. */
  readonly endpoints: readonly [string, string]
}

/** Runs one part of the script that calls all methods of the official Python client, and gives what it printed. */
// biome-ignore lint/suspicious/noExplicitAny: it is compared with what the test expects
export function callAll(part: string, { url, key, endpoints }: Surface): Promise<any> {
  const home = { PATH: process.env.PATH ?? '', HOME: temporaryFolder() }
  const env = { ...home, RUNPOD_ENDPOINT_BASE_URL: `${url}/v2` }
  return new Promise((resolve, reject) => {
    const args = [`${fixture('python-client')}/surface.py`, part, ...endpoints]
    const child = execFile(python, args, { env, timeout: patient(90_000) }, (error, stdout, stderr) => {
      if (error === null) resolve(JSON.parse(stdout))
      else reject(new Error(`the script failed: ${stderr}`))
    })
    child.stdin?.end(`${key}\n`)
  })
}
