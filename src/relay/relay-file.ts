import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ensureFolder, removeDurably, writeDurablyOrOver } from '../disk/durable-file.ts'
import { type ProcessIdentity, parseIdentity } from '../drivers/base/process-table.ts'

/** Changes when a server and a relay of another version could not work together. */
export const RELAY_VERSION = 3

/** Description of a relay in its data directory. */
export interface RelayInfo {
  readonly identity: ProcessIdentity
  readonly port: number
  /** Lets a server command it. */
  readonly secret: string
  readonly version: number
}

/** The folder of a relay below a data directory. */
export function relayFolder(dataDir: string): string {
  return join(dataDir, 'relay')
}

/** Folder in which its relays keep bodies that crash servers, for good. */
export function setAsideFolder(dataDir: string): string {
  return join(dataDir, 'set-aside')
}

/** The name of the socket for functions of apps. */
export const FUNCTION_SOCKET = 'server.sock'

/**
 * The socket of the worker surface, for workers in networks of their own. A server listens
 * there where it has no relay.
 */
export function workerSocket(dataDir: string): string {
  return join(dataDir, 'workers.sock')
}

/** The folder of {@link functionSocket}, which containers of apps have: each server makes another file. */
export function functionFolder(dataDir: string): string {
  return join(dataDir, 'functions')
}

/** The socket of a server for functions of apps, whose workers have a network of their own. */
export function functionSocket(dataDir: string): string {
  return join(functionFolder(dataDir), FUNCTION_SOCKET)
}

/** Description of the last relay of a data directory; null without one. */
export function readRelayInfo(dataDir: string): RelayInfo | null {
  let text: string
  try {
    text = readFileSync(relayFile(dataDir), 'utf8')
  } catch {
    return null
  }
  const identity = parseIdentity(text)
  if (identity === null) return null
  const { port, secret, version } = JSON.parse(text) as Partial<RelayInfo>
  if (typeof port !== 'number' || typeof secret !== 'string' || typeof version !== 'number') return null
  return { identity, port, secret, version }
}

/** Writes the description of the relay, for its owner only. */
export function writeRelayInfo(dataDir: string, { identity, port, secret, version }: RelayInfo): void {
  ensureFolder(relayFolder(dataDir))
  const content = `${JSON.stringify({ ...identity, port, secret, version })}\n`
  writeDurablyOrOver(relayFile(dataDir), content, `${relayFile(dataDir)}.${identity.pid}`)
}

/** Removes the description of a relay that has ended. */
export function removeRelayInfo(dataDir: string): void {
  removeDurably(relayFolder(dataDir))
}

function relayFile(dataDir: string): string {
  return join(relayFolder(dataDir), 'relay.json')
}
