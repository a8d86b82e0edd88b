import { PLACEMENT_RULES } from '../core/placement/placement-input.ts'
import { FREEZE_RULES } from '../core/scaling/frozen-plan.ts'
import { AUDIT_SETTINGS } from './audit.ts'
import { BACKUP_SETTINGS } from './backups.ts'
import { CONSOLE_SETTINGS } from './console.ts'
import { DATABASE_SETTING, NEW_DATABASE_SETTING } from './database.ts'
import { GATEWAY_SETTINGS } from './gateway.ts'
import { JOB_RECORD_SETTINGS } from './job-records.ts'
import { KUBERNETES_SETTINGS } from './kubernetes.ts'
import { LISTENER_SETTINGS } from './listeners.ts'
import { MANAGEMENT_SETTINGS } from './management.ts'
import { MODEL_SETTINGS } from './models.ts'
import { QUOTA_SETTINGS } from './quotas.ts'
import { SEALING_SETTINGS } from './sealing.ts'
import {
  ENGINE_ADDRESS,
  FACTOR,
  flag,
  HOST_NAME,
  HTTP_ORIGIN,
  many,
  megabytes,
  oneOf,
  optional,
  PAGE_ORIGIN,
  PATH,
  seconds,
  setting,
  TEXT,
  wholeNumber,
} from './setting.ts'
import { SHARING_SETTINGS } from './sharing.ts'
import { STANDBY_SETTINGS } from './standby.ts'
import { TLS_SETTINGS } from './tls.ts'
import { WORKERS_SETTINGS } from './workers.ts'

/** Workers at once over all endpoints where `--max-workers` is not given. */
export const MAX_WORKERS = 64

const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const

/** Every setting of the server, by the name of its value in the configuration, in the order of the help. */
export const SETTING_TABLE = {
  port: setting('--port', '<number>', '8080', wholeNumber(0, 65_535), 'port to listen on; 0 picks a free one'),
  host: setting('--host', '<address>', '127.0.0.1', TEXT, 'address to listen on; use TLS for all but loopback'),
  dataDir: setting('--data-dir', '<folder>', './.runyard', PATH, 'folder for the database, keys and logs'),
  /** Null for the embedded database. */
  databaseUrl: DATABASE_SETTING,
  newDatabase: NEW_DATABASE_SETTING,
  processRoots: many('--process-root', '<folder>', PATH, 'folder below which dir: images may lie; may be repeated'),
  /** Null for the address that the server listens on. */
  publicUrl: optional(
    '--public-url',
    '<url>',
    HTTP_ORIGIN,
    'address of REST and GraphQL in responses, when a proxy is in front',
  ),
  queueUrl: optional(
    '--queue-url',
    '<url>',
    HTTP_ORIGIN,
    'address of the job operations in responses (default: the public one)',
  ),
  /** `*` for all. */
  corsOrigins: many(
    '--cors-origin',
    '<origin>',
    PAGE_ORIGIN,
    'origin of web pages that may call the job operations from a browser, such as https://app.example, or * for all; may be repeated',
    ',',
  ),
  ...CONSOLE_SETTINGS,
  ...GATEWAY_SETTINGS,
  ...QUOTA_SETTINGS,
  workers: many('--worker', '<folder>', PATH, 'run the handler in this folder as an endpoint; may be repeated'),
  /** Null for the GPUs of the machine for new endpoints, and what they have for others. */
  folderGpu: optional(
    '--gpu',
    '<any|none|names>',
    TEXT,
    'GPUs for the folders of --worker and --lb: any of this machine, none, or names such as "RTX 4090" or ADA_24 (default: one where there is one)',
  ),
  folderGpuCount: optional('--gpus', '<number>', wholeNumber(1, 64), 'GPUs of each worker of these folders'),
  folderWatch: flag(
    '--watch',
    'replace the workers of these folders after their jobs when a file in the folder changes',
  ),
  folderSetup: flag(
    '--setup',
    'install the packages of these folders where they are missing or their list has changed: with uv where it is there, else venv and pip; npm',
  ),
  folderCommand: optional(
    '--command',
    '<text>',
    TEXT,
    'command of the workers of the folder, where it is no handler or server; also as -- <command>',
  ),
  container: flag('--container', 'build the Dockerfile of each --worker folder and run the folder in containers'),
  sample: flag('--sample', 'run the sample handler as an endpoint named hello-node'),
  json: flag('--json', 'print one line of JSON once everything answers, and logs as JSON lines on standard error'),
  drainTimeoutMs: setting(
    '--drain-timeout',
    '<seconds>',
    '30',
    seconds(0, 86_400),
    'how long workers may finish their jobs at a stop',
  ),
  /** Null for {@link MAX_WORKERS}; a number is the limit of each folder's endpoint too. */
  maxWorkers: optional(
    '--max-workers',
    '<number>',
    wholeNumber(1, 10_000),
    `maximum workers at once, over all endpoints, and of the endpoint of each --worker or --lb folder (default: ${MAX_WORKERS}, and 3)`,
  ),
  startAware: flag(
    '--start-aware',
    'count the queue delay from when a further worker could be ready, so that none is started that would come too late to help',
  ),
  rolloutJudge: setting(
    '--rollout-judge',
    '<on|off>',
    'on',
    oneOf(['on', 'off']),
    'stop a new release that fails clearly more jobs or requests than the last good one, and let that one go on',
  ),
  /** How workers share the machine. */
  placing: {
    requireGpu: flag(
      '--require-gpu',
      'let workers of GPU endpoints wait where the machine has no GPU at all, instead of running on the CPU',
    ),
    dwellMs: setting(
      '--dwell',
      '<seconds>',
      String(PLACEMENT_RULES.dwellMs / 1000),
      seconds(0, 86_400),
      'how long a worker stays at least before it makes room for another endpoint when it is idle',
    ),
    cpuOvercommit: setting(
      '--cpu-overcommit',
      '<factor>',
      String(PLACEMENT_RULES.cpuOvercommit),
      FACTOR,
      'how many times the vCPUs of the machine may be promised to containers',
    ),
    memoryOvercommit: setting(
      '--memory-overcommit',
      '<factor>',
      String(PLACEMENT_RULES.memoryOvercommit),
      FACTOR,
      'how many times the memory of the machine may be promised to containers',
    ),
  },
  /** How long frozen workers are kept. */
  freezing: {
    keepMs: setting(
      '--frozen-keep',
      '<seconds>',
      String(FREEZE_RULES.keepMs / 1000),
      seconds(1, 30 * 86_400),
      'how long an idle worker of an endpoint with FlashBoot stays frozen at most before it ends',
    ),
    minMemoryPercent: setting(
      '--frozen-min-memory',
      '<percent>',
      String(FREEZE_RULES.minMemoryPercent),
      wholeNumber(0, 90),
      'percentage of the memory of this machine below which frozen workers end, the one frozen longest first',
    ),
  },
  maxConnections: setting(
    '--max-connections',
    '<number>',
    '20000',
    wholeNumber(64, 1_000_000),
    'maximum connections at once; fewer when the limit of open files is low',
  ),
  bodyBytes: setting(
    '--max-body-memory',
    '<megabytes>',
    '256',
    megabytes(32, 1_000_000),
    'maximum memory for request bodies of clients, and the same again for results of workers',
  ),
  ...LISTENER_SETTINGS,
  ...TLS_SETTINGS,
  ...STANDBY_SETTINGS,
  directWorkers: flag(
    '--direct-workers',
    'give workers the address of the server itself, without the relay that holds their calls while it is away',
  ),
  docker: setting(
    '--docker',
    '<auto|off|url>',
    'auto',
    ENGINE_ADDRESS,
    'container engine, as unix:///var/run/docker.sock; auto is DOCKER_HOST or the usual places of Docker and Podman',
  ),
  /** Null for a network of the installation's own. */
  dockerNetwork: optional(
    '--docker-network',
    '<name>',
    TEXT,
    'network of the container engine for workers (default: one that isolates them from each other)',
  ),
  /** Null for what can be found out. */
  dockerWorkerAddress: optional(
    '--docker-worker-address',
    '<address>',
    HOST_NAME,
    'address or name of this machine that workers in containers call (default: found out)',
  ),
  ...KUBERNETES_SETTINGS,
  storeHost: setting(
    '--store-host',
    '<auto|inline|thread>',
    'auto',
    oneOf(['auto', 'inline', 'thread']),
    'where the database engine runs; auto measures the disk',
  ),
  webhookPublicOnly: flag(
    '--webhook-public-only',
    'send webhooks to public addresses only, not to private networks or this machine',
  ),
  ...JOB_RECORD_SETTINGS,
  ...AUDIT_SETTINGS,
  ...SEALING_SETTINGS,
  ...SHARING_SETTINGS,
  ...WORKERS_SETTINGS,
  ...MODEL_SETTINGS,
  ...MANAGEMENT_SETTINGS,
  ...BACKUP_SETTINGS,
  /** A file, or `catalog`; the configuration has the prices themselves. */
  prices: optional(
    '--prices',
    '<file>',
    TEXT,
    "JSON file with what hardware costs an hour, for bills; 'catalog' for the prices of the hosted service",
  ),
  metricsPublic: flag('--metrics-public', 'show /metrics to callers without a key'),
  logLevel: setting('--log-level', '<level>', 'info', oneOf(LOG_LEVELS), `one of ${LOG_LEVELS.join(', ')}`),
}
