import { existsSync } from 'node:fs'
import { engineAddresses } from './engine-address.ts'
import { EngineClient } from './engine-client.ts'

/** A connection to a container engine. */
export interface EngineConnection {
  readonly engine: EngineClient
  /** Its address, as `unix:///var/run/docker.sock`. */
  readonly address: string
  /** True for an engine behind a socket file of this machine. */
  readonly local: boolean
}

const IDLE_MS = 10_000

/**
 * The engine that a setting names, or that is found. Nothing is asked of it yet.
 * @param setting an address, `auto` for DOCKER_HOST or else the usual places, or `off`
 * @param idleMs time without a byte after which a call fails, in ms; 0 for no limit, as builds need it
 * @returns null when there is none
 */
export function connectEngine(
  setting: string,
  env: Readonly<Record<string, string | undefined>>,
  idleMs = IDLE_MS,
): EngineConnection | null {
  const addresses = setting === 'off' ? [] : engineAddresses(setting, env)
  const reachable = addresses.find(({ socket }) => socket === null || existsSync(socket))
  // A configured one is used as it is.
  const address = reachable ?? (addresses.length === 1 ? addresses[0] : undefined)
  if (address === undefined) return null
  return { engine: new EngineClient(address, { idleMs }), address: address.text, local: address.socket !== null }
}
