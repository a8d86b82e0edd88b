import {
  type BillingTime,
  type BucketSize,
  billingBounds,
  bucketsAfter,
  exactAmount,
  RoundedSum,
} from '../../core/billing/billing.ts'
import { billedMs, hourlyPrice, type PriceList } from '../../core/billing/prices.ts'
import {
  addJobUsage,
  addWorkerUsage,
  type JobUsage,
  NO_JOB_USAGE,
  NO_WORKER_USAGE,
  USAGE_READ,
  WAITING_FLAVOR,
  type WorkerUsage,
} from '../../core/billing/usage.ts'
import { invalidFields, invalidRequest } from '../../core/errors.ts'
import type { FieldProblem } from '../../core/field-problem.ts'
import type { EndpointId, OwnerId } from '../../core/ids.ts'
import type { Ports } from '../../ports/ports.ts'
import type { JobUsageSum, WorkerUsageSum } from '../../ports/store/usage-store.ts'

/** Amounts in millionths of a US dollar. */
export interface Amounts {
  readonly gpu: number
  readonly cpu: number
}

/** Usage of an endpoint in a bucket, and its cost. */
export interface BillingRecord extends Amounts {
  readonly endpointId: EndpointId
  readonly startMs: number
  readonly endMs: number
  readonly workers: WorkerUsage
  /** Paid part of the workers' time, in milliseconds. */
  readonly billedMs: number
  readonly jobs: JobUsage
}

/** A bill: the oldest bucket first, and the amounts of its records add up to its totals. */
export interface Bill {
  readonly size: BucketSize
  readonly startMs: number
  readonly endMs: number
  readonly records: readonly BillingRecord[]
  readonly totals: Amounts
}

function readBounds(time: BillingTime, nowMs: number): readonly number[] {
  const result = billingBounds(time, nowMs)
  if ('problems' in result) throw invalidFields(result.problems)
  return result.bounds
}

/** Computes the cost of usage at the present prices. */
export class BillCalculator {
  readonly #ports
  readonly #prices

  constructor(ports: Ports, prices: PriceList) {
    this.#ports = ports
    this.#prices = prices
  }

  /** All problems of the requested time, see `billingBounds`; empty without one. */
  problems(time: BillingTime): readonly FieldProblem[] {
    const result = billingBounds(time, this.#ports.clock.now())
    return 'problems' in result ? result.problems : []
  }

  /** The requested time in whole buckets. @throws AppError `invalid` with all its problems */
  span(time: BillingTime): Pick<Bill, 'size' | 'startMs' | 'endMs'> {
    const bounds = readBounds(time, this.#ports.clock.now())
    return { size: time.size, startMs: bounds[0]!, endMs: bounds.at(-1)! }
  }

  /**
   * Usage and cost of an owner's endpoints, or of one of them; deleted ones included, and workers that run up to now.
   * A bucket without usage has no record, nor has an endpoint of another owner.
   * @throws AppError `invalid` with all problems of the time, or when there would be too many records
   */
  async bill(owner: OwnerId, time: BillingTime, endpointId: EndpointId | null): Promise<Bill> {
    const { store, clock } = this.#ports
    const nowMs = clock.now()
    const bounds = readBounds(time, nowMs)
    const jobs = await inParts(bounds, JOBS, part => store.usage.jobs({ owner, endpointId, bounds: part }))
    const workers = await inParts(bounds, WORKERS, part =>
      store.usage.workers({ owner, endpointId, bounds: part }, nowMs),
    )
    const gpu = new RoundedSum()
    const cpu = new RoundedSum()
    const records = joined(jobs, workers).map(({ startMs, endpointId: id, jobs: done, flavors }) => {
      const cost = this.#exact(flavors)
      return {
        endpointId: id,
        startMs,
        endMs: bucketsAfter(startMs, time.size),
        gpu: gpu.add(cost.gpu),
        cpu: cpu.add(cost.cpu),
        jobs: done,
        billedMs: cost.billedMs,
        workers: flavors.reduce((sum, { usage }) => addWorkerUsage(sum, usage), NO_WORKER_USAGE),
      }
    })
    const totals = { gpu: gpu.micros, cpu: cpu.micros }
    return { size: time.size, startMs: bounds[0]!, endMs: bounds.at(-1)!, records, totals }
  }

  /**
   * Names of an owner's endpoints and tasks that were deleted since an instant, by their ids; of at most the last
   * 10,000.
   */
  async formerNames(owner: OwnerId, sinceMs: number): Promise<ReadonlyMap<EndpointId, string>> {
    const former = await this.#ports.store.usage.formerNames(owner, sinceMs, USAGE_READ.sums)
    return new Map(former.map(({ endpointId, name }) => [endpointId, name]))
  }

  /** Present cost of an owner's workers for an hour, in millionths of a US dollar. */
  async spendPerHour(owner: OwnerId): Promise<number> {
    const running = await this.#ports.store.usage.running(owner)
    const paid = running.filter(({ phase }) => this.#prices.phases.has(phase))
    return paid.reduce((sum, { flavor, workers }) => sum + workers * hourlyPrice(this.#prices, flavor).micros, 0)
  }

  #exact(flavors: readonly WorkerUsageSum[]): { gpu: bigint; cpu: bigint; billedMs: number } {
    const cost = { gpu: 0n, cpu: 0n, billedMs: 0 }
    for (const { flavor, usage } of flavors) {
      if (flavor === WAITING_FLAVOR) continue
      const ms = billedMs(this.#prices, usage)
      const { kind, micros } = hourlyPrice(this.#prices, flavor)
      cost[kind] += exactAmount(micros, ms)
      cost.billedMs += ms
    }
    return cost
  }
}

/** The place of a sum in a bucket, and the sum of two of the same place. */
interface Adding<Sum> {
  readonly nameOf: (sum: Sum) => string
  readonly add: (a: Sum, b: Sum) => Sum
}

const JOBS: Adding<JobUsageSum> = {
  nameOf: ({ endpointId }) => endpointId,
  add: (a, b) => ({ ...a, usage: addJobUsage(a.usage, b.usage) }),
}

const WORKERS: Adding<WorkerUsageSum> = {
  nameOf: ({ endpointId, flavor }) => `${endpointId} ${flavor}`,
  add: (a, b) => ({ ...a, usage: addWorkerUsage(a.usage, b.usage) }),
}

/**
 * The sums of all buckets, read part by part: other calls of the store are answered in between.
 * @throws AppError `invalid` when there are too many; a bill of one bucket has any number
 */
async function inParts<Sum extends { readonly startMs: number }>(
  bounds: readonly number[],
  { nameOf, add }: Adding<Sum>,
  read: (bounds: readonly number[]) => Promise<{ readonly sums: readonly Sum[]; readonly nextMs: number | null }>,
): Promise<Sum[]> {
  const byName = new Map<string, Sum>()
  let nextMs: number | null = bounds[0]!
  while (nextMs !== null) {
    const partMs: number = nextMs
    // The first span of a part may be the rest of a bucket.
    const bucketMs = bounds.findLast(startMs => startMs <= partMs)!
    const part = await read([partMs, ...bounds.filter(bound => bound > partMs)])
    for (const sum of part.sums) {
      const inBucket = sum.startMs === partMs ? { ...sum, startMs: bucketMs } : sum
      const name = `${inBucket.startMs} ${nameOf(sum)}`
      const known = byName.get(name)
      byName.set(name, known === undefined ? inBucket : add(known, sum))
    }
    if (bounds.length > 2 && byName.size > USAGE_READ.sums) {
      const less = 'ask for less time, larger buckets or one endpoint'
      throw invalidRequest([`this makes more records than one answer can have; ${less}`])
    }
    nextMs = part.nextMs
  }
  return [...byName.values()]
}

interface EndpointUsage {
  readonly startMs: number
  readonly endpointId: EndpointId
  jobs: JobUsage
  readonly flavors: WorkerUsageSum[]
}

/** One item for each bucket and endpoint, the oldest bucket first. */
function joined(jobs: readonly JobUsageSum[], workers: readonly WorkerUsageSum[]): EndpointUsage[] {
  const usedByName = new Map<string, EndpointUsage>()
  const of = ({ startMs, endpointId }: JobUsageSum | WorkerUsageSum): EndpointUsage => {
    const name = `${startMs} ${endpointId}`
    const used = usedByName.get(name) ?? { startMs, endpointId, jobs: NO_JOB_USAGE, flavors: [] }
    usedByName.set(name, used)
    return used
  }
  for (const sum of jobs) of(sum).jobs = sum.usage
  for (const sum of workers) of(sum).flavors.push(sum)
  return [...usedByName.values()].sort((a, b) => a.startMs - b.startMs || (a.endpointId < b.endpointId ? -1 : 1))
}
