import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { readConfig } from '../../config/config.ts'
import { type RunningServer, startServer } from '../../main/server.ts'
import { StartError } from '../../main/start-error.ts'
import { CliError, EXIT } from '../exit.ts'
import type { ConnectionOptions } from './connection.ts'

/** A server of one command. */
export interface TemporaryServer {
  /** The endpoint of the folder. */
  readonly endpointId: string
  /** The connection to it. */
  readonly connection: ConnectionOptions
  /** Stops its workers and the server, and removes their files. A second call stops at once. */
  stop(): Promise<void>
}

/** A worker runs as it does on the server of its folder, in a cage or without one. */
const CAGE_SETTINGS = ['RUNYARD_WORKER_SANDBOX', 'RUNYARD_WORKER_READABLE', 'RUNYARD_WORKER_WRITABLE'] as const

/**
 * Starts a server in this process that runs the worker of a folder, on a free loopback port, with an embedded database
 * in a temporary folder. It ignores settings of the environment, but those of cages.
 * @throws CliError when it cannot start
 */
export async function startTemporaryServer(folder: string, inContainer: boolean): Promise<TemporaryServer> {
  const dataDir = mkdtempSync(join(tmpdir(), 'runyard-test-'))
  const remove = () => rmSync(dataDir, { recursive: true, force: true })
  const options = {
    host: '127.0.0.1',
    port: '0',
    dataDir,
    worker: [folder],
    logLevel: 'error',
    drainTimeout: '0',
    ...(inContainer ? { container: true } : { docker: 'off', directWorkers: true }),
  }
  const absolute = (path: string) => resolve(path)
  const env = Object.fromEntries(CAGE_SETTINGS.map(name => [name, process.env[name]]))
  const reading = readConfig({ options, env, absolute, read: path => readFileSync(path, 'utf8') })
  if ('mistakes' in reading) throw new CliError(reading.mistakes.join('\n'), EXIT.internal)
  let server: RunningServer
  try {
    server = await startServer(reading.config, folder)
  } catch (error) {
    remove()
    if (error instanceof StartError) throw new CliError(error.message, EXIT.unavailable)
    throw error
  }
  const apiKey = readFileSync(server.apiKeyFile, 'utf8').trim()
  return {
    endpointId: server.acting!.folders[0]!.endpoint.id,
    connection: { url: server.url, apiKey },
    stop: async () => {
      await server.stop()
      remove()
    },
  }
}
