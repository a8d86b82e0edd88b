/** The options of `serve` under the headings of its help, by their flags, in the order of the help. */
export const SERVE_OPTION_GROUPS: readonly (readonly [heading: string, flags: readonly string[]])[] = [
  [
    'What runs:',
    [
      ...[
        '--worker',
        '--lb',
        '--sample',
        '--container',
        '--command',
        '--gpu',
        '--gpus',
        '--gpu-memory',
        '--priority',
        '--preemptible',
        '--max-workers',
      ],
      ...['--setup', '--watch', '--process-root'],
    ],
  ],
  [
    'Server:',
    [
      '--port',
      '--host',
      '--data-dir',
      '--database',
      '--new-database',
      '--store-host',
      '--drain-timeout',
      '--json',
      '--log-level',
    ],
  ],
  [
    'Addresses and origins:',
    [
      ...['--public-url', '--queue-url', '--lb-domain', '--allowed-host', '--cors-origin', '--trusted-proxy'],
      ...['--console-url', '--admin-port', '--admin-host', '--direct-workers'],
    ],
  ],
  ['HTTPS:', ['--tls-cert', '--tls-key', '--tls-self-signed', '--http-redirect-port', '--hsts']],
  [
    'Backups and upgrades:',
    [
      ...['--backup-folder', '--backup-every', '--backup-keep', '--backup-passphrase-file', '--backup-without-keys'],
      ...['--backup-with-logs', '--backup-pg-dump', '--migrate-to'],
    ],
  ],
  ['Several servers:', ['--forward-to-active', '--advertise-host']],
  ['Containers:', ['--docker', '--docker-network', '--docker-worker-address', '--app-image']],
  [
    'Kubernetes:',
    [
      ...['--kubernetes', '--kubernetes-context', '--kubernetes-namespace', '--kubernetes-installation'],
      ...['--kubernetes-worker-url', '--kubernetes-worker-host', '--kubernetes-worker-port'],
      ...['--kubernetes-volume-claim', '--kubernetes-model-folder', '--kubernetes-network-policy'],
      ...['--kubernetes-gpu-resource', '--kubernetes-gpu-product', '--kubernetes-node-selector'],
      ...['--kubernetes-toleration', '--kubernetes-priority-class', '--kubernetes-runtime-class'],
      ...['--kubernetes-node-lost', '--kubernetes-pods-reachable'],
    ],
  ],
  [
    'Isolation of processes:',
    [
      ...['--worker-sandbox', '--worker-network', '--worker-readable', '--worker-writable', '--worker-disk'],
      '--worker-cache',
      ...['--model-cache', '--model-cache-size', '--hf-endpoint'],
      ...['--processes', '--accept-shared-host'],
    ],
  ],
  [
    'Placement and scaling:',
    [
      '--start-aware',
      '--rollout-judge',
      '--require-gpu',
      '--dwell',
      '--cpu-overcommit',
      '--memory-overcommit',
      '--frozen-keep',
      '--frozen-min-memory',
      '--suspended-memory',
      '--max-pause',
      '--max-paused',
      '--pause-across-accounts',
    ],
  ],
  [
    'Limits:',
    [
      ...['--http-threads', '--max-connections', '--max-connections-per-address', '--max-connections-per-account'],
      ...['--max-connections-per-endpoint', '--max-body-memory', '--max-body-disk', '--max-lb-body'],
      ...['--max-result-mb', '--max-input-mb', '--max-build-mb', '--max-unpacked-build-mb'],
      ...['--rate-limits', '--job-rate-limits'],
    ],
  ],
  [
    'Limits of accounts:',
    [
      ...['--account-objects', '--account-workers-min', '--account-workers', '--account-gpus'],
      ...['--account-queued-jobs', '--account-queued-mb', '--account-stored-mb'],
      ...['--account-secrets-mb', '--account-builds-mb', '--account-logs-mb'],
    ],
  ],
  [
    'Jobs:',
    [
      '--history-days',
      '--history-jobs',
      '--history-mb',
      '--failed-input-hours',
      '--failed-input-mb',
      '--keep-payloads',
      '--seal-payloads',
    ],
  ],
  ['Audit log:', ['--audit-retention', '--audit-entries']],
  [
    'Permissions and prices:',
    [
      ...[
        '--lb-public',
        '--webhook-public-only',
        '--webhook-private',
        ...['--smtp-url', '--smtp-from'],
        '--private-registry',
        '--delete-running-endpoints',
      ],
      ...['--metrics-public', '--prices'],
    ],
  ],
]
