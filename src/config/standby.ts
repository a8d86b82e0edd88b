import { flag, HOST_NAME, optional } from './setting.ts'

/** The settings of servers of which one is active and the others stand by. */
export const STANDBY_SETTINGS = {
  forwardToActive: flag(
    '--forward-to-active',
    'while this server stands by, pass requests on to the active one instead of answering 503',
  ),
  /** Null for the address that the server listens on. */
  advertiseHost: optional(
    '--advertise-host',
    '<address>',
    HOST_NAME,
    'address or name under which other servers on the same database reach this one (default: --host)',
  ),
}

/** Options in which servers of one database may differ: what belongs to one process, to its machine, or to one start. */
export const MAY_DIFFER: ReadonlySet<string> = new Set([
  ...['--port', '--host', '--admin-port', '--admin-host', '--advertise-host', '--http-redirect-port'],
  ...['--tls-cert', '--tls-key', '--tls-self-signed'],
  ...['--data-dir', '--database', '--new-database', '--migrate-to', '--store-host', '--setup', '--watch'],
  ...['--json', '--log-level', '--drain-timeout', '--max-connections'],
  ...['--docker', '--docker-network', '--docker-worker-address'],
  ...['--kubernetes', '--kubernetes-context', '--kubernetes-worker-host', '--kubernetes-worker-port'],
  ...['--model-cache', '--model-cache-size', '--worker-disk', '--worker-cache'],
  ...['--backup-folder', '--backup-every', '--backup-keep', '--backup-passphrase-file', '--backup-without-keys'],
  ...['--backup-with-logs', '--backup-pg-dump'],
  // Compared by what is in the file.
  '--prices',
])
