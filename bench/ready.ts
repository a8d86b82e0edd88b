import type { ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

/** Waits for the ready line of a server that was started with `--json`. Returns its address, key and pid. */
export async function ready(server: ChildProcess): Promise<{ url: string; key: string; pid: number }> {
  for await (const line of createInterface({ input: server.stdout! })) {
    const { url, apiKeyFile, pid } = JSON.parse(line) as { url: string; apiKeyFile: string; pid: number }
    return { url, key: readFileSync(apiKeyFile, 'utf8').trim(), pid }
  }
  throw new Error('the server ended before it was ready')
}
