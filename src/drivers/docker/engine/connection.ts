import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import type Docker from 'dockerode'
import { engineAddresses } from './engine-address.ts'

/** A connection to a container engine. */
export interface EngineConnection {
  readonly engine: Docker
  /** Where it is, as `unix:///var/run/docker.sock`. */
  readonly address: string
  /** Whether it is spoken to through a file of this machine. */
  readonly local: boolean
}

const TIMEOUT_MS = 10_000

const require = createRequire(import.meta.url)

/**
 * The engine that a setting names, or that is found. Nothing is asked of it yet.
 * @param setting an address, `auto` for DOCKER_HOST or else the usual places, or `off`
 * @param timeout for how long an answer or its next part is waited for, in ms; 0 for ever, as builds need it
 * @returns null when there is none
 */
export function connectEngine(
  setting: string,
  env: Readonly<Record<string, string | undefined>>,
  timeout = TIMEOUT_MS,
): EngineConnection | null {
  const addresses = setting === 'off' ? [] : engineAddresses(setting, env)
  const there = addresses.find(({ socket }) => socket === null || existsSync(socket))
  // A configured one is used as it is.
  const found = there ?? (addresses.length === 1 ? addresses[0] : undefined)
  if (found === undefined) return null
  const { connection, text: address, socket } = found
  // Loaded here because it takes a tenth of a second, which servers without containers need not spend.
  const Dockerode = require('dockerode') as typeof Docker
  return { engine: new Dockerode({ ...connection, timeout } as Docker.DockerOptions), address, local: socket !== null }
}
