/** Every setting of the server in one table: option, environment variable, default and check. */

import { givenKeyProblems } from '../core/accounts/given-key.ts'
import { CATALOG_PRICES, type PriceList, readPrices } from '../core/billing/prices.ts'
import { PLACEMENT_RULES, type PlacementRules } from '../core/placement/placement-input.ts'
import { DATABASE_SETTING } from './database.ts'
import { GATEWAY_SETTINGS, type GatewayConfig, gatewayConfig } from './gateway.ts'
import { LISTENER_SETTINGS, type ListenerConfig, listenerConfig } from './listeners.ts'
import { MANAGEMENT_SETTINGS, type ManagementConfig, managementConfig } from './management.ts'
import { QUOTA_SETTINGS, type QuotaConfig, quotaConfig } from './quotas.ts'
import { SEALING_SETTINGS, type SealingConfig, sealingConfig } from './sealing.ts'
import {
  engineAddress,
  factor,
  flag,
  hostName,
  httpUrl,
  many,
  notEmpty,
  oneOf,
  type Setting,
  setting,
  wholeNumber,
} from './setting.ts'
import { SHARING_SETTINGS, type SharingConfig, sharingConfig } from './sharing.ts'
import { WORKERS_SETTINGS, type WorkersConfig, workersConfig } from './workers.ts'

/** The settings of one run of the server, checked and frozen. */
export interface Config
  extends GatewayConfig,
    ListenerConfig,
    ManagementConfig,
    QuotaConfig,
    SealingConfig,
    SharingConfig,
    WorkersConfig {
  readonly port: number
  readonly host: string
  readonly dataDir: string
  readonly processRoots: readonly string[]
  /** Null for the address that the server listens on. */
  readonly publicUrl: string | null
  readonly queueUrl: string | null
  readonly workers: readonly string[]
  /** Whether the folders of `workers` are built into images that run in containers. */
  readonly container: boolean
  readonly sample: boolean
  readonly json: boolean
  readonly drainTimeoutMs: number
  readonly maxWorkers: number
  /** How workers share the machine. */
  readonly placing: PlacementRules
  readonly maxConnections: number
  /** Most bytes of request bodies in memory at once. */
  readonly bodyBytes: number
  /** Whether workers get the server's own address, without a relay that outlives it. */
  readonly directWorkers: boolean
  /** Address of the container engine, `auto` for one that is found, `off` for none. */
  readonly docker: string
  /** The engine's network that workers are put in; null for one of the installation's own. */
  readonly dockerNetwork: string | null
  /** Address of this machine that workers in containers call, or a name for it; null for what can be found out. */
  readonly dockerWorkerAddress: string | null
  readonly storeHost: 'auto' | 'inline' | 'thread'
  /** Whether webhooks are refused to private addresses. */
  readonly webhookPublicOnly: boolean
  /** Whether metrics are shown to callers without a key. */
  readonly metricsPublic: boolean
  /** Address of a PostgreSQL, with its password; null for the embedded database. */
  readonly databaseUrl: string | null
  readonly logLevel: LogLevel
  /** The API key to use instead of a generated one; null for none. */
  readonly apiKey: string | null
  /** Encryption keys in base64 to use instead of the one in the data directory; the first one seals. */
  readonly masterKeys: readonly string[]
  /** What hardware costs; null for nothing. */
  readonly prices: PriceList | null
}

/** How much is logged. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

const LOG_LEVELS: readonly string[] = ['debug', 'info', 'warn', 'error', 'silent']

/** The settings by the names of their options; the CLI makes its help from them. */
export const SETTINGS: Readonly<Record<string, Setting>> = {
  port: setting('--port', 'PORT', '<number>', '8080', 'port to listen on; 0 picks a free one', wholeNumber(0, 65_535)),
  host: setting(
    '--host',
    'HOST',
    '<address>',
    '127.0.0.1',
    'address to listen on; all but loopback want TLS in front',
    notEmpty,
  ),
  dataDir: setting(
    '--data-dir',
    'DATA_DIR',
    '<folder>',
    './.runyard',
    'folder for the database, keys and logs',
    notEmpty,
  ),
  database: DATABASE_SETTING,
  processRoot: many(
    setting(
      '--process-root',
      'PROCESS_ROOT',
      '<folder>',
      null,
      'folder below which dir: images may lie; may be repeated',
      notEmpty,
    ),
  ),
  publicUrl: setting(
    '--public-url',
    'PUBLIC_URL',
    '<url>',
    null,
    'address of REST and GraphQL in answers, when a proxy is in front',
    httpUrl,
  ),
  queueUrl: setting(
    '--queue-url',
    'QUEUE_URL',
    '<url>',
    null,
    'address of the job operations in answers (default: the public one)',
    httpUrl,
  ),
  ...GATEWAY_SETTINGS,
  ...QUOTA_SETTINGS,
  worker: many(
    setting(
      '--worker',
      'WORKER',
      '<folder>',
      null,
      'run the handler in this folder as an endpoint; may be repeated',
      notEmpty,
    ),
  ),
  container: flag(
    '--container',
    'CONTAINER',
    'build the Dockerfile of each --worker folder and run the folder in containers',
  ),
  sample: flag('--sample', 'SAMPLE', 'run the sample handler as an endpoint named hello-node'),
  json: flag(
    '--json',
    'JSON',
    'print one line of JSON once everything answers, and logs as JSON lines on standard error',
  ),
  drainTimeout: setting(
    '--drain-timeout',
    'DRAIN_TIMEOUT',
    '<seconds>',
    '30',
    'how long workers may finish their jobs at a stop',
    wholeNumber(0, 86_400),
  ),
  maxWorkers: setting(
    '--max-workers',
    'MAX_WORKERS',
    '<number>',
    '64',
    'most workers at once, of all endpoints',
    wholeNumber(1, 10_000),
  ),
  requireGpu: flag(
    '--require-gpu',
    'REQUIRE_GPU',
    'let workers of GPU endpoints wait where the machine has no GPU at all, instead of running on the CPU',
  ),
  dwell: setting(
    '--dwell',
    'DWELL',
    '<seconds>',
    String(PLACEMENT_RULES.dwellMs / 1000),
    'how long a worker stays before it makes room for another endpoint when it is idle',
    wholeNumber(0, 86_400),
  ),
  cpuOvercommit: setting(
    '--cpu-overcommit',
    'CPU_OVERCOMMIT',
    '<factor>',
    String(PLACEMENT_RULES.cpuOvercommit),
    'how many times the vCPUs of the machine may be promised to containers',
    factor,
  ),
  memoryOvercommit: setting(
    '--memory-overcommit',
    'MEMORY_OVERCOMMIT',
    '<factor>',
    String(PLACEMENT_RULES.memoryOvercommit),
    'how many times the memory of the machine may be promised to containers',
    factor,
  ),
  maxConnections: setting(
    '--max-connections',
    'MAX_CONNECTIONS',
    '<number>',
    '20000',
    'most connections at once, fewer where the limit of open files is low',
    wholeNumber(64, 1_000_000),
  ),
  maxBodyMemory: setting(
    '--max-body-memory',
    'MAX_BODY_MEMORY',
    '<megabytes>',
    '256',
    'most memory for request bodies of clients that come in at once, and as much for results of workers',
    wholeNumber(32, 1_000_000),
  ),
  ...LISTENER_SETTINGS,
  directWorkers: flag(
    '--direct-workers',
    'DIRECT_WORKERS',
    'give workers the address of the server itself, without the relay that holds their calls while it is away',
  ),
  docker: setting(
    '--docker',
    'DOCKER',
    '<auto|off|url>',
    'auto',
    'container engine, as unix:///var/run/docker.sock; auto is DOCKER_HOST or the usual places of Docker and Podman',
    engineAddress,
  ),
  dockerNetwork: setting(
    '--docker-network',
    'DOCKER_NETWORK',
    '<name>',
    null,
    'network of the container engine for workers (default: one that keeps them from each other)',
    notEmpty,
  ),
  dockerWorkerAddress: setting(
    '--docker-worker-address',
    'DOCKER_WORKER_ADDRESS',
    '<address>',
    null,
    'address or name of this machine that workers in containers call (default: found out)',
    hostName,
  ),
  storeHost: setting(
    '--store-host',
    'STORE_HOST',
    '<auto|inline|thread>',
    'auto',
    'where the database engine runs; auto measures the disk',
    oneOf(['auto', 'inline', 'thread']),
  ),
  webhookPublicOnly: flag(
    '--webhook-public-only',
    'WEBHOOK_PUBLIC_ONLY',
    'send webhooks to public addresses only, not to private networks or this machine',
  ),
  ...SEALING_SETTINGS,
  ...SHARING_SETTINGS,
  ...WORKERS_SETTINGS,
  ...MANAGEMENT_SETTINGS,
  prices: setting(
    '--prices',
    'PRICES',
    '<file>',
    null,
    "JSON file with what hardware costs an hour, for bills; 'catalog' for the prices of the hosted service",
    notEmpty,
  ),
  metricsPublic: flag('--metrics-public', 'METRICS_PUBLIC', 'show /metrics to callers without a key, too'),
  logLevel: setting(
    '--log-level',
    'LOG_LEVEL',
    '<level>',
    'info',
    `one of ${LOG_LEVELS.join(', ')}`,
    oneOf(LOG_LEVELS),
  ),
}

/** Settings as they were given: option values by the names of {@link SETTINGS}, the environment, and where paths start. */
export interface GivenSettings {
  readonly options: Readonly<Record<string, unknown>>
  readonly env: Readonly<Record<string, string | undefined>>
  /** Makes a path absolute. */
  readonly absolute: (path: string) => string
  /** Reads a file that a setting names; throws when it cannot. Left out by commands that need no such file. */
  readonly read?: (path: string) => string
}

/** Reads all settings, the options first and the environment (`RUNYARD_...`) after them, and finds all mistakes at once. */
export function readConfig(given: GivenSettings): { config: Config } | { mistakes: readonly string[] } {
  const mistakes: string[] = []
  const values = new Map<string, readonly string[]>()
  for (const [name, option] of Object.entries(SETTINGS)) {
    const { texts, source } = textsOf(option, given.options[name], given.env)
    for (const text of texts) {
      const problem = option.check(text)
      if (problem !== null) mistakes.push(`${source} ${problem}${option.secret === true ? '' : `, not '${text}'`}`)
      const exposed = problem === null && source === option.flag ? (option.exposes?.(text) ?? null) : null
      if (exposed !== null) mistakes.push(`${source} ${exposed}`)
    }
    values.set(name, texts)
  }
  const apiKey = given.env.RUNYARD_API_KEY ?? null
  if (apiKey !== null) mistakes.push(...givenKeyProblems(apiKey).map(problem => `RUNYARD_API_KEY ${problem}`))
  const masterKeys = (given.env.RUNYARD_MASTER_KEY ?? '').split(',').filter(text => text !== '')
  if (masterKeys.length > 3 || masterKeys.some(text => !/^[A-Za-z0-9+/_-]{43}=?$/.test(text))) {
    mistakes.push('RUNYARD_MASTER_KEY must be 32 bytes in base64, or up to three of these with commas between them')
  }
  const prices = pricesOf(values.get('prices')?.[0], given, mistakes)
  if (mistakes.length > 0) return { mistakes }
  const config = configOf(name => values.get(name) ?? [], { apiKey, masterKeys, prices }, given.absolute)
  return { config: Object.freeze(config) }
}

function configOf(
  texts: (name: string) => readonly string[],
  read: Pick<Config, 'apiKey' | 'masterKeys' | 'prices'>,
  absolute: (path: string) => string,
): Config {
  const one = (name: string) => texts(name)[0] ?? ''
  const url = (name: string) => one(name).replace(/\/+$/, '') || null
  return {
    port: Number(one('port')),
    host: one('host'),
    dataDir: absolute(one('dataDir')),
    processRoots: texts('processRoot').map(absolute),
    publicUrl: url('publicUrl'),
    queueUrl: url('queueUrl'),
    ...gatewayConfig(texts, absolute),
    ...quotaConfig(texts),
    workers: texts('worker').map(absolute),
    container: one('container') === 'true',
    sample: one('sample') === 'true',
    json: one('json') === 'true',
    drainTimeoutMs: Number(one('drainTimeout')) * 1000,
    maxWorkers: Number(one('maxWorkers')),
    placing: {
      requireGpu: one('requireGpu') === 'true',
      dwellMs: Number(one('dwell')) * 1000,
      cpuOvercommit: Number(one('cpuOvercommit')),
      memoryOvercommit: Number(one('memoryOvercommit')),
    },
    maxConnections: Number(one('maxConnections')),
    bodyBytes: Number(one('maxBodyMemory')) * 1024 * 1024,
    directWorkers: one('directWorkers') === 'true',
    docker: one('docker'),
    dockerNetwork: one('dockerNetwork') || null,
    dockerWorkerAddress: one('dockerWorkerAddress') || null,
    storeHost: one('storeHost') as Config['storeHost'],
    webhookPublicOnly: one('webhookPublicOnly') === 'true',
    metricsPublic: one('metricsPublic') === 'true',
    databaseUrl: one('database') || null,
    logLevel: one('logLevel') as LogLevel,
    ...read,
    ...listenerConfig(one),
    ...managementConfig(one),
    ...sealingConfig(one),
    ...sharingConfig(one),
    ...workersConfig(texts, absolute),
  }
}

/** The prices of a file, or the word for those of the hosted service; what is wrong with them goes to the mistakes. */
function pricesOf(text: string | undefined, { absolute, read }: GivenSettings, mistakes: string[]): PriceList | null {
  if (text === 'catalog') return CATALOG_PRICES
  if (text === undefined || text === '' || read === undefined) return null
  try {
    const reading = readPrices(read(absolute(text)))
    if ('prices' in reading) return reading.prices
    mistakes.push(...reading.mistakes.map(mistake => `${text}: ${mistake}`))
  } catch (error) {
    mistakes.push(`${text}: cannot be read: ${(error as Error).message}`)
  }
  return null
}

function textsOf(
  option: Setting,
  value: unknown,
  env: GivenSettings['env'],
): { texts: readonly string[]; source: string } {
  if (value !== undefined) return { texts: (Array.isArray(value) ? value : [value]).map(String), source: option.flag }
  const text = env[`RUNYARD_${option.variable}`]
  if (text !== undefined && text !== '') {
    return {
      texts: option.many === true ? text.split(option.separator ?? ':') : [text],
      source: `RUNYARD_${option.variable}`,
    }
  }
  return { texts: option.fallback === null ? [] : [option.fallback], source: option.flag }
}
