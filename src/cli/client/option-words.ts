/** Options in words, as values for the body of a request. JSON is accepted wherever these words are. */
import { ACCOUNT_LIMIT_NAMES, type GivenLimits } from '../../core/accounts/quotas.ts'
import { nearest } from '../../core/nearest.ts'
import { CliError, EXIT } from '../exit.ts'

/** The flavor of a worker on the CPU where only a number is given. */
const FLAVOR = 'cpu3g'
const VCPUS = [2, 4, 8, 16, 32]

/** CPUs such as `2` or `cpu3c:4`, with commas between several, as the configurations of an endpoint. */
export function parseCpu(flag: string, text: string): object[] {
  return text.split(',').map(part => {
    const [, flavor = FLAVOR, count] = /^(?:([a-z0-9]+):)?(\d{1,3})$/.exec(part.trim()) ?? []
    if (count !== undefined && VCPUS.includes(Number(count))) return { id: flavor, vcpuCount: Number(count) }
    const wanted = `${VCPUS.slice(0, -1).join(', ')} or ${VCPUS.at(-1)} vCPUs, as in 2 or cpu3c:4`
    throw new CliError(`${flag} takes ${wanted}, not '${text}'; runyard catalog cpus lists the flavors`, EXIT.usage)
  })
}

/** A share of a GPU: a number of GB, or `auto`. */
export function parseGpuMemory(flag: string, text: string): number | 'auto' {
  if (text === 'auto') return text
  if (/^\d{1,6}(\.\d{1,6})?$/.test(text)) return Number(text)
  throw new CliError(`${flag} takes a number of GB or auto, not '${text}'`, EXIT.usage)
}

const SCALERS = { QUEUE_DELAY: 'queueDelay', REQUEST_COUNT: 'requestCount' } as const

/** A scaler such as `QUEUE_DELAY:4`, as the scaling of an endpoint. */
export function parseScaler(flag: string, text: string): object {
  const [, word = '', value] = /^([A-Za-z]+[_-][A-Za-z]+):(\d{1,9}(?:\.\d{1,9})?)$/.exec(text) ?? []
  const type = word.toUpperCase().replace('-', '_')
  if (value !== undefined && Object.hasOwn(SCALERS, type))
    return { type, [SCALERS[type as keyof typeof SCALERS]]: Number(value) }
  throw new CliError(
    `${flag} takes QUEUE_DELAY:<seconds> or REQUEST_COUNT:<number>, such as QUEUE_DELAY:4, not '${text}'`,
    EXIT.usage,
  )
}

/** The areas of a restricted key, and the levels that each can have. */
const AREAS: Readonly<Record<string, readonly string[]>> = {
  management: ['none', 'read', 'write'],
  jobs: ['none', 'read', 'write'],
  metrics: ['none', 'read'],
  files: ['none', 'read', 'write'],
}

/**
 * Rights such as `read-only` or `management=read,jobs=write`, as the scope of a key. An area that is left out has no
 * rights.
 */
export function parseScope(flag: string, text: string): object {
  if (text === 'all' || text === 'read-only') return { type: text }
  const levels = text.split(',').map(part => part.split('=').map(word => word.trim()))
  const isScope = levels.every(
    ([area = '', level = '', ...more]) =>
      more.length === 0 && Object.hasOwn(AREAS, area) && AREAS[area]!.includes(level),
  )
  if (isScope && new Set(levels.map(([area]) => area)).size === levels.length)
    return { type: 'restricted', management: 'none', jobs: 'none', ...Object.fromEntries(levels) }
  throw new CliError(
    `${flag} takes all, read-only, or areas such as management=read,jobs=write, not '${text}'; management, jobs and files have none, read or write, metrics none or read`,
    EXIT.usage,
  )
}

/**
 * Limits such as `gpus=2`, by their names: null for `none`, undefined for `default`, which is that of the
 * installation.
 */
export function parseLimits(flag: string, pairs: readonly string[]): Map<keyof GivenLimits, number | null | undefined> {
  return new Map(pairs.map(pair => limitWord(flag, pair)))
}

function limitWord(flag: string, pair: string): [keyof GivenLimits, number | null | undefined] {
  const [name = '', value = '', ...more] = pair.split('=')
  const limitName = ACCOUNT_LIMIT_NAMES.find(one => one === name)
  if (limitName === undefined) {
    const close = nearest(name, ACCOUNT_LIMIT_NAMES)
    const hint = close === null ? `the limits are ${ACCOUNT_LIMIT_NAMES.join(', ')}` : `did you mean ${close}?`
    throw new CliError(`${flag} ${pair}: there is no limit '${name}'; ${hint}`, EXIT.usage)
  }
  if (value === 'none') return [limitName, null]
  if (value === 'default') return [limitName, undefined]
  if (/^\d{1,10}$/.test(value) && more.length === 0) return [limitName, Number(value)]
  throw new CliError(`${flag} takes a whole number, none or default after ${name}=, not '${value}'`, EXIT.usage)
}

const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** A number, or a span such as `30s`, `10m` or `2h`, in units of `unitMs`; null for other text. */
export function parseSpan(text: string, unitMs: number): number | null {
  const [, count, unit] = /^(\d{1,9}(?:\.\d{1,9})?)(ms|s|m|h|d)$/.exec(text) ?? []
  return count === undefined ? null : (Number(count) * UNITS_MS[unit!]!) / unitMs
}

/** Yes or no in the words that people type; null for other text. */
export function yesOrNo(text: string): boolean | null {
  if (/^(?:true|yes|on)$/i.test(text)) return true
  return /^(?:false|no|off)$/i.test(text) ? false : null
}
