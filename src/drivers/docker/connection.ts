import { existsSync } from 'node:fs'
import Docker from 'dockerode'

/** A connection to a container engine. */
export interface EngineConnection {
  readonly engine: Docker
  /** Where it is, as `unix:///var/run/docker.sock`. */
  readonly address: string
  /** Whether it is spoken to through a file of this machine. */
  readonly local: boolean
}

const STANDARD = 'unix:///var/run/docker.sock'
const PATIENCE_MS = 10_000

/**
 * The engine that DOCKER_HOST names, else the usual one of this machine. Nothing is asked of it yet.
 * @param timeout for how long an answer or its next part is waited for, in ms; 0 for ever, as builds need it
 * @returns null when there is none: no address is given, and the usual one has nobody
 */
export function connectEngine(
  env: Readonly<Record<string, string | undefined>>,
  timeout = PATIENCE_MS,
): EngineConnection | null {
  const given = env.DOCKER_HOST ?? ''
  const address = given === '' ? STANDARD : given
  const path = /^(?:unix:\/\/)?(\/.*)$/.exec(address)?.[1]
  if (path !== undefined) {
    if (given === '' && !existsSync(path)) return null
    return { engine: new Docker({ socketPath: path, timeout }), address, local: true }
  }
  if (!URL.canParse(address)) return null
  const url = new URL(address)
  const protocol = url.protocol === 'https:' || env.DOCKER_TLS_VERIFY === '1' ? 'https' : 'http'
  const port = url.port === '' ? (protocol === 'https' ? 2376 : 2375) : Number(url.port)
  return { engine: new Docker({ host: url.hostname, port, protocol, timeout }), address, local: false }
}
