import { megabytes, optional, type Setting, setting, TEXT, wholeNumber } from './setting.ts'

/** The settings of listeners, and of how connections and bodies share them. */
export const LISTENER_SETTINGS = {
  /** Null when management has no port of its own. */
  adminPort: optional(
    '--admin-port',
    '<number>',
    wholeNumber(0, 65_535),
    'port on which management (GraphQL, REST, /metrics, health) listens alone; 0 picks a free one (default: with all else)',
  ),
  adminHost: setting('--admin-host', '<address>', '127.0.0.1', TEXT, 'address of --admin-port'),
  addressConnections: share('--max-connections-per-address', 'from one address'),
  accountConnections: share('--max-connections-per-account', 'with requests of one account'),
  endpointConnections: share('--max-connections-per-endpoint', 'with requests for one load-balancing endpoint'),
  bodyDiskBytes: setting(
    '--max-body-disk',
    '<megabytes>',
    '4096',
    megabytes(32, 10_000_000),
    'maximum disk space for results of workers that do not fit into memory',
  ),
}

/** Null for half of all connections. */
function share(flag: string, whose: string): Setting<number | null> {
  const help = `maximum connections ${whose} (default: half of --max-connections)`
  return optional(flag, '<number>', wholeNumber(1, 1_000_000), help)
}
