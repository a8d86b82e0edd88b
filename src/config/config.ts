/** The configuration of one run of the server, read from options and the environment by the table of settings. */

import { givenKeyProblems } from '../core/accounts/permission.ts'
import { CATALOG_PRICES, type PriceList, readPrices } from '../core/billing/prices.ts'
import { nearest } from '../core/nearest.ts'
import {
  ARTIFACT_SETTINGS,
  AUDIT_SETTINGS,
  JOB_RECORD_SETTINGS,
  MANAGEMENT_SETTINGS,
  QUOTA_SETTINGS,
  SHARING_SETTINGS,
} from './accounts.ts'
import {
  CONNECTION_SETTINGS,
  consoleClash,
  GATEWAY_SETTINGS,
  LISTENER_SETTINGS,
  ORIGIN_SETTINGS,
  TLS_SETTINGS,
  tlsClash,
} from './addresses.ts'
import { KUBERNETES_SETTINGS } from './kubernetes.ts'
import { MAIL_SETTINGS, mailClash } from './mail.ts'
import {
  flag,
  oneOf,
  optional,
  readValues,
  type Setting,
  type SettingValues,
  seconds,
  setting,
  settingsIn,
  TEXT,
} from './setting.ts'
import {
  BACKUP_SETTINGS,
  DATABASE_SETTINGS,
  SEALING_SETTINGS,
  STANDBY_SETTINGS,
  scheduledPassphrase,
} from './storage.ts'
import { readTracing, type TracingConfig } from './tracing.ts'
import {
  CONTAINER_SETTINGS,
  FOLDER_SETTINGS,
  MODEL_SETTINGS,
  PROCESS_ROOT_SETTINGS,
  PROCESS_SETTINGS,
  SCALING_SETTINGS,
} from './workers.ts'

const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const

/** Every setting of the server, by the name of its value in the configuration, in the order of the help. */
const SETTING_TABLE = {
  ...LISTENER_SETTINGS,
  ...DATABASE_SETTINGS,
  ...PROCESS_ROOT_SETTINGS,
  ...ORIGIN_SETTINGS,
  ...GATEWAY_SETTINGS,
  ...QUOTA_SETTINGS,
  ...ARTIFACT_SETTINGS,
  ...FOLDER_SETTINGS,
  json: flag('--json', 'print one line of JSON once everything answers, and logs as JSON lines on standard error'),
  drainTimeoutMs: setting(
    '--drain-timeout',
    '<seconds>',
    '30',
    seconds(0, 86_400),
    'how long workers may finish their jobs at a stop',
  ),
  ...SCALING_SETTINGS,
  ...CONNECTION_SETTINGS,
  ...TLS_SETTINGS,
  ...STANDBY_SETTINGS,
  ...CONTAINER_SETTINGS,
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
  mail: MAIL_SETTINGS,
  ...PROCESS_SETTINGS,
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

type Values = SettingValues<typeof SETTING_TABLE>

/** The settings of one run of the server, checked and frozen. */
export interface Config extends Omit<Values, 'prices'> {
  /** The prices of hardware; null without prices. */
  readonly prices: PriceList | null
  /** The API key to use instead of a generated one; null to generate one. */
  readonly apiKey: string | null
  /** The previous API key, which is valid as well; null without one. */
  readonly previousApiKey: string | null
  /** The key for reading metrics and status of the server alone; null without one. */
  readonly metricsKey: string | null
  /** Encryption keys in base64 to use instead of the one in the data directory; the first one seals. */
  readonly masterKeys: readonly string[]
  /** Of the keys in scheduled backups; null where there are none, or none with keys. */
  readonly backupPassphrase: string | null
  /** Recording of traces; null if off. */
  readonly tracing: TracingConfig | null
  /** The texts of the settings that differ from their defaults, by option; `set` for those that may hold a secret. */
  readonly nonDefaults: Readonly<Record<string, readonly string[]>>
}

/** The settings by the names of their options, in the order of the help. */
export const SETTINGS: Readonly<Record<string, Setting>> = Object.fromEntries(
  settingsIn(SETTING_TABLE).map(setting => [optionName(setting), setting]),
)

/** `--data-dir` is `dataDir`. */
function optionName({ flag }: Setting): string {
  return flag.slice(2).replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase())
}

/**
 * Settings as they were given: option values by the names of {@link SETTINGS}, the environment, and where paths start.
 */
interface GivenSettings {
  readonly options: Readonly<Record<string, unknown>>
  readonly env: Readonly<Record<string, string | undefined>>
  /** Makes a path absolute. */
  readonly absolute: (path: string) => string
  /** Reads a file that a setting names; throws when it cannot. Left out by commands that need no such file. */
  readonly read?: (path: string) => string
}

/**
 * Reads all settings, from the options first and then from the environment (`RUNYARD_...`), and finds all mistakes at
 * once.
 */
export function readConfig(given: GivenSettings): { config: Config } | { mistakes: readonly string[] } {
  const mistakes: string[] = []
  const texts = new Map<Setting, readonly string[]>()
  for (const [name, setting] of Object.entries(SETTINGS)) {
    const givenTexts = findTexts(setting, given.options[name], given.env)
    mistakes.push(...mistakesIn(setting, givenTexts))
    texts.set(setting, givenTexts.texts)
  }
  const apiKey = given.env.RUNYARD_API_KEY ?? null
  if (apiKey !== null) mistakes.push(...givenKeyProblems(apiKey).map(problem => `RUNYARD_API_KEY ${problem}`))
  const previousApiKey = readPreviousKey(given.env.RUNYARD_PREVIOUS_API_KEY, apiKey, mistakes)
  const metricsKey = readMetricsKey(given.env.RUNYARD_METRICS_KEY, apiKey, mistakes)
  const masterKeys = (given.env.RUNYARD_MASTER_KEY ?? '').split(',').filter(text => text !== '')
  if (masterKeys.length > 3 || masterKeys.some(text => !/^[A-Za-z0-9+/_-]{43}=?$/.test(text))) {
    mistakes.push('RUNYARD_MASTER_KEY must be 32 bytes in base64, or up to three of these with commas between them')
  }
  const prices = readPriceSetting(texts.get(SETTING_TABLE.prices)?.[0], given, mistakes)
  const tracing = readTracing(given.env, mistakes)
  if (mistakes.length > 0) return { mistakes }
  const values = readValues(SETTING_TABLE, setting => texts.get(setting) ?? [], given.absolute)
  const clashes = [consoleClash(values), tlsClash(values.tls, values.kubernetes), mailClash(values.mail)]
  mistakes.push(...clashes.filter(clash => clash !== null))
  const sources = { variable: given.env.RUNYARD_BACKUP_PASSPHRASE, read: given.read }
  const backupPassphrase = scheduledPassphrase(values.backups, sources, mistakes)
  if (mistakes.length > 0) return { mistakes }
  return {
    config: Object.freeze({
      ...values,
      prices,
      apiKey,
      previousApiKey,
      metricsKey,
      masterKeys,
      backupPassphrase,
      tracing,
      nonDefaults: listNonDefaults(texts),
    }),
  }
}

/** Adds what is wrong with the key to the mistakes. */
function readPreviousKey(given: string | undefined, apiKey: string | null, mistakes: string[]): string | null {
  if (given === undefined || given === '') return null
  mistakes.push(...givenKeyProblems(given).map(problem => `RUNYARD_PREVIOUS_API_KEY ${problem}`))
  if (given === apiKey) mistakes.push('RUNYARD_PREVIOUS_API_KEY must be another key than RUNYARD_API_KEY')
  return given
}

/** Adds what is wrong with the key to the mistakes. */
function readMetricsKey(given: string | undefined, apiKey: string | null, mistakes: string[]): string | null {
  if (given === undefined || given === '') return null
  mistakes.push(...givenKeyProblems(given).map(problem => `RUNYARD_METRICS_KEY ${problem}`))
  if (given === apiKey) mistakes.push('RUNYARD_METRICS_KEY must be another key than RUNYARD_API_KEY')
  return given
}

function listNonDefaults(texts: ReadonlyMap<Setting, readonly string[]>): Config['nonDefaults'] {
  const given = [...texts].filter(
    ([{ fallback }, givenTexts]) => givenTexts.length > 0 && !(givenTexts.length === 1 && givenTexts[0] === fallback),
  )
  return Object.fromEntries(
    given.map(([{ flag, secret, exposes }, givenTexts]) => [
      flag,
      secret || exposes !== undefined ? ['set'] : givenTexts,
    ]),
  )
}

/** Variables besides settings that Runyard itself or its commands read; those of its tests begin with TEST_. */
const OTHER_VARIABLES = [
  'API_KEY',
  'PREVIOUS_API_KEY',
  'METRICS_KEY',
  'MASTER_KEY',
  'BACKUP_PASSPHRASE',
  'URL',
  'CA_FILE',
  'MAX_CONCURRENCY',
  'WORKING_FOLDER',
]

/**
 * Sentences about variables that look like settings and are none, with the setting that may be meant. They have no
 * effect.
 */
export function strayVariables(env: GivenSettings['env']): string[] {
  const variables = [...Object.values(SETTINGS).map(({ variable }) => variable), ...OTHER_VARIABLES]
  const stray = Object.keys(env).flatMap(name => {
    const [, variable] = /^RUNYARD_(?!TEST_)(.+)$/.exec(name) ?? []
    return variable === undefined || variables.includes(variable) ? [] : [variable]
  })
  return stray.map(variable => {
    const close = nearest(variable, variables)
    return `RUNYARD_${variable} is not a setting${close === null ? '' : `; did you mean RUNYARD_${close}?`}`
  })
}

/** The texts of a setting, and where they come from. */
interface GivenTexts {
  readonly texts: readonly string[]
  /** The option or the variable. */
  readonly source: string
}

function mistakesIn({ flag, check, exposes, secret }: Setting, { texts, source }: GivenTexts): string[] {
  return texts.flatMap(text => {
    const problem = check(text)
    if (problem !== null) return [`${source} ${problem}${secret === true ? '' : `, not '${text}'`}`]
    const exposed = source === flag ? (exposes?.(text) ?? null) : null
    return exposed === null ? [] : [`${source} ${exposed}`]
  })
}

/**
 * The prices of a file, or those of the hosted service for `catalog`. Adds their problems to the mistakes.
 */
function readPriceSetting(
  text: string | undefined,
  { absolute, read }: GivenSettings,
  mistakes: string[],
): PriceList | null {
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

function findTexts(option: Setting, value: unknown, env: GivenSettings['env']): GivenTexts {
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
