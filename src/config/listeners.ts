/** The settings about what the server listens on, and how connections and bodies share it. */
import { notEmpty, type Setting, setting, wholeNumber } from './setting.ts'

/** Where management listens, and shares of connections and of room for bodies. */
export interface ListenerConfig {
  /** Port of a listener for management alone; null where the public one has it. */
  readonly adminPort: number | null
  readonly adminHost: string
  /** Most connections of one address, account and load-balancing endpoint; null for half of all. */
  readonly addressConnections: number | null
  readonly accountConnections: number | null
  readonly endpointConnections: number | null
  /** Most bytes of results that wait on disk for room in memory. */
  readonly bodyDiskBytes: number
}

/** By the names of their options, as SETTINGS has them. */
export const LISTENER_SETTINGS: Readonly<Record<string, Setting>> = {
  adminPort: setting(
    '--admin-port',
    'ADMIN_PORT',
    '<number>',
    null,
    'port on which management (GraphQL, REST, /metrics, health) listens alone; 0 picks a free one (default: with all else)',
    wholeNumber(0, 65_535),
  ),
  adminHost: setting('--admin-host', 'ADMIN_HOST', '<address>', '127.0.0.1', 'address of --admin-port', notEmpty),
  maxConnectionsPerAddress: share('--max-connections-per-address', 'MAX_CONNECTIONS_PER_ADDRESS', 'from one address'),
  maxConnectionsPerAccount: share(
    '--max-connections-per-account',
    'MAX_CONNECTIONS_PER_ACCOUNT',
    'with requests of one account',
  ),
  maxConnectionsPerEndpoint: share(
    '--max-connections-per-endpoint',
    'MAX_CONNECTIONS_PER_ENDPOINT',
    'with requests for one load-balancing endpoint',
  ),
  maxBodyDisk: setting(
    '--max-body-disk',
    'MAX_BODY_DISK',
    '<megabytes>',
    '4096',
    'most disk for results of workers that find no room in memory',
    wholeNumber(32, 10_000_000),
  ),
}

/** @param text what was given for each of {@link LISTENER_SETTINGS} */
export function listenerConfig(text: (name: string) => string): ListenerConfig {
  const number = (name: string) => (text(name) === '' ? null : Number(text(name)))
  return {
    adminPort: number('adminPort'),
    adminHost: text('adminHost'),
    addressConnections: number('maxConnectionsPerAddress'),
    accountConnections: number('maxConnectionsPerAccount'),
    endpointConnections: number('maxConnectionsPerEndpoint'),
    bodyDiskBytes: Number(text('maxBodyDisk')) * 1024 * 1024,
  }
}

function share(name: string, variable: string, whose: string): Setting {
  const help = `most connections ${whose} (default: half of --max-connections)`
  return setting(name, variable, '<number>', null, help, wholeNumber(1, 1_000_000))
}
