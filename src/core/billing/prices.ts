/** Prices of hardware by the hour. Money is whole millionths of a US dollar, never a fraction of a float. */
import { CPU_FLAVORS, GPU_POOLS } from '../hardware/catalog-data.ts'
import type { WorkerUsage } from './usage.ts'

/** Phases of a worker that are billed separately. */
export const WORKER_PHASES = ['starting', 'running', 'idle', 'frozen'] as const
/** One of {@link WORKER_PHASES}: before its first request for jobs, with jobs, without jobs, and frozen. */
export type BilledPhase = (typeof WORKER_PHASES)[number]

/** Prices of an installation, in millionths of a US dollar for an hour. */
export interface PriceList {
  /** Of one GPU, by pool. */
  readonly gpu: ReadonlyMap<string, number>
  /** Of one GPU of any other pool. */
  readonly gpuDefault: number
  /** Of one vCPU, by flavor. */
  readonly cpu: ReadonlyMap<string, number>
  /** Of one vCPU of any other flavor. */
  readonly cpuDefault: number
  /** Phases of a worker that are paid for. */
  readonly phases: ReadonlySet<BilledPhase>
}

const MICROS = 1_000_000
/** Maximum price of an hour, in dollars. */
const MAX_DOLLARS = 1_000_000
/** Longer than any list of known pools and flavors can be. */
const MAX_TEXT = 100_000
/** Clients of the hosted service expect that a starting worker is free. A frozen one occupies nothing. */
const PAID: ReadonlySet<BilledPhase> = new Set(['running', 'idle'])

/** All hardware is free. */
export const NO_PRICES: PriceList = {
  gpu: new Map(),
  gpuDefault: 0,
  cpu: new Map(),
  cpuDefault: 0,
  phases: PAID,
}

/** Prices of the hosted service, as far as its catalog has them. */
export const CATALOG_PRICES: PriceList = {
  ...NO_PRICES,
  gpu: new Map(GPU_POOLS.map(({ id, pricePerHour }) => [id, Math.round((pricePerHour ?? 0) * MICROS)])),
}

/**
 * Price of an hour of a worker of a flavor, see `billedFlavor`; a share of a GPU costs its part. 0 for a flavor that
 * is not hardware.
 */
export function hourlyPrice(
  prices: PriceList,
  flavor: string,
): { readonly kind: 'gpu' | 'cpu'; readonly micros: number } {
  const [kind, name = '', count = '1'] = flavor.split(':')
  if (kind === 'gpu') return { kind, micros: Math.round(Number(count) * (prices.gpu.get(name) ?? prices.gpuDefault)) }
  if (kind === 'cpu') return { kind, micros: Number(count) * (prices.cpu.get(name) ?? prices.cpuDefault) }
  return { kind: 'cpu', micros: 0 }
}

/** Time of workers that is paid for, in milliseconds. */
export function billedMs({ phases }: PriceList, { startingMs, runningMs, idleMs, frozenMs }: WorkerUsage): number {
  return (
    (phases.has('starting') ? startingMs : 0) +
    (phases.has('running') ? runningMs : 0) +
    (phases.has('idle') ? idleMs : 0) +
    (phases.has('frozen') ? frozenMs : 0)
  )
}

/** A price or amount in dollars. */
export function dollars(micros: number): number {
  return micros / MICROS
}

type JsonObject = Readonly<Record<string, unknown>>

/**
 * A list of prices from JSON such as `{"gpu": {"ADA_24": 1.116, "default": 0.5}, "cpu": {"default": 0.02},
 * "phases": ["running"]}`, or all mistakes in it, one sentence each.
 */
export function readPrices(text: string): { readonly prices: PriceList } | { readonly mistakes: readonly string[] } {
  if (text.length > MAX_TEXT) return { mistakes: [`must have at most ${MAX_TEXT} characters`] }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    return { mistakes: [`is not JSON: ${(error as Error).message}`] }
  }
  if (!isObject(value)) return { mistakes: ['must be a JSON object'] }
  const mistakes = Object.keys(value)
    .filter(name => !['gpu', 'cpu', 'phases'].includes(name))
    .map(name => `'${name}' is not a part of a list of prices; the parts are gpu, cpu and phases`)
  const gpu = readPart('gpu', value.gpu, 'pools', new Set(GPU_POOLS.map(({ id }) => id)), mistakes)
  const cpu = readPart('cpu', value.cpu, 'flavors', new Set(CPU_FLAVORS.map(({ id }) => id)), mistakes)
  const phases = readPhases(value.phases, mistakes)
  if (mistakes.length > 0) return { mistakes }
  const prices = { gpu: gpu.prices, gpuDefault: gpu.others, cpu: cpu.prices, cpuDefault: cpu.others, phases }
  return { prices }
}

function readPart(part: string, given: unknown, kind: string, names: ReadonlySet<string>, mistakes: string[]) {
  const prices = new Map<string, number>()
  let others = 0
  if (given !== undefined && !isObject(given)) mistakes.push(`${part} must be an object of prices by name`)
  for (const [name, price] of Object.entries(isObject(given) ? given : {})) {
    const micros = toMicros(price)
    if (name !== 'default' && !names.has(name)) {
      mistakes.push(`${part}.${name} is not known; the ${kind} are ${[...names].join(', ')}, and default is all others`)
    }
    if (micros === null) {
      mistakes.push(
        `${part}.${name} must be dollars for an hour from 0 to ${MAX_DOLLARS} with at most 6 decimals, ` +
          `not ${JSON.stringify(price).slice(0, 100)}`,
      )
    } else if (name === 'default') others = micros
    else prices.set(name, micros)
  }
  return { prices, others }
}

function readPhases(given: unknown, mistakes: string[]): ReadonlySet<BilledPhase> {
  if (given === undefined) return PAID
  const phases: readonly unknown[] = Array.isArray(given) ? given : [given]
  const right = phases.filter(phase => (WORKER_PHASES as readonly unknown[]).includes(phase)) as BilledPhase[]
  if (!Array.isArray(given) || right.length < phases.length) {
    mistakes.push(`phases must be a list of ${WORKER_PHASES.join(', ')}, not ${JSON.stringify(given).slice(0, 100)}`)
  }
  return new Set(right)
}

/** Millionths of a price, from its decimal digits and not from a float. Null for an invalid price. */
function toMicros(price: unknown): number | null {
  if (typeof price !== 'number' && typeof price !== 'string') return null
  const parts = /^(\d{1,7})(?:\.(\d{1,6}))?$/.exec(String(price))
  if (parts === null) return null
  const micros = Number(parts[1]) * MICROS + Number((parts[2] ?? '').padEnd(6, '0'))
  return micros <= MAX_DOLLARS * MICROS ? micros : null
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
