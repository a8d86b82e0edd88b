import type { ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

/** A server that answers. */
export interface ReadyServer {
  readonly url: string
  readonly key: string
  readonly pid: number
}

/** Waits for the ready line of a server that was started with `--json`. */
export async function ready(server: ChildProcess): Promise<ReadyServer> {
  for await (const line of createInterface({ input: server.stdout! })) {
    // Until then it stands by for a server whose lease has not expired.
    if (line.includes('"event":"ready"')) return readyServer(line)
  }
  throw new Error('the server ended before it was ready')
}

/** Content of a ready line. */
export function readyServer(line: string): ReadyServer {
  const { url, apiKeyFile, pid } = JSON.parse(line) as { url: string; apiKeyFile: string; pid: number }
  return { url, key: readFileSync(apiKeyFile, 'utf8').trim(), pid }
}
