import { exactAmount, RoundedSum } from '../../core/billing/billing.ts'
import { billedMs, hourlyPrice, type PriceList } from '../../core/billing/prices.ts'
import { billedFlavor } from '../../core/billing/usage.ts'
import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import { AppError, invalidFields, notFound } from '../../core/errors.ts'
import type { EndpointId, OwnerId } from '../../core/ids.ts'
import { type AttemptTimes, timesFromBlock } from '../../core/jobs/attempt-times.ts'
import {
  ASSUMED_THAW_MS,
  type AssumedStart,
  assumedStart,
  changedSettings,
  figuresFromReplay,
  MAX_PLAYED,
  type RecordedLoad,
  recordedLoad,
  type ScalingSettings,
  type SettingChanges,
  scalingSettings,
  type WhatIfFigures,
  whatIfNotes,
} from '../../core/observing/what-if.ts'
import type { KeepRule } from '../../core/scaling/frozen-plan.ts'
import { Replay, type ReplayedJob, type ReplaySettings } from '../../core/scaling/replay.ts'
import type { EndpointSnapshot } from '../../core/scaling/scale.ts'
import { typicalConcurrency } from '../../core/scaling/worker-concurrency.ts'
import type { Ports } from '../../ports/ports.ts'
import type { LoadBalancer } from '../balancing/load-balancer.ts'
import type { AttemptRecorder } from './attempt-recorder.ts'

const DAY_MS = 86_400_000
/** Blocks of times that one read of the store returns. */
const BLOCKS = 20
/** Worker instants of a replay between two pauses for other work of the server: about a millisecond. */
const SLICE = 5_000
/** Cost of an instant apart from its workers, in workers. */
const WORKERS_OF_INSTANT = 20
/** Limit of instants of one replay: there are about two for each attempt and two for each worker. */
const MAX_INSTANTS = 3_000_000
/** Time after which a question leaves the server more time for other work: a pause after each slice. */
const EAGER_MS = 3_000
const LATER_PAUSE_MS = 5
/**
 * Limit of questions that run at once, of all accounts; an account has one. Each has up to 40 MB of attempts in
 * memory.
 */
const MAX_AT_WORK = 2

/** Today's settings or others, and their results. */
export interface PlayedSettings extends WhatIfFigures {
  readonly settings: ScalingSettings
  /** In millionths of a US dollar. */
  readonly costMicros: number
}

/** Played settings, and the assumptions. */
export interface WhatIfAnswer {
  readonly recorded: Omit<RecordedLoad, 'jobs' | 'coldWaitMs'> & { readonly attempts: number }
  readonly start: AssumedStart
  /** Time of a frozen worker from its thaw to its next take. */
  readonly thawMs: number
  readonly concurrency: number
  /** Hardware that a worker is billed as, and its price for an hour in millionths of a US dollar. */
  readonly flavor: string
  readonly priceMicros: number
  readonly notes: readonly string[]
  /** Null for an endpoint whose workersMax is 0 today. */
  readonly today: PlayedSettings | null
  /** Null without a change. */
  readonly other: PlayedSettings | null
}

/** Request of a replay: changes, and the days of recorded attempts that they are tried on. */
export interface WhatIfRequest {
  readonly changes: SettingChanges
  readonly days: number
}

/** Computes the results of other settings of an endpoint for its recorded attempts. */
export class WhatIf {
  readonly #ports
  readonly #parts
  readonly #prices
  readonly #freezing
  readonly #atWork = new Set<OwnerId>()

  constructor(
    ports: Ports,
    parts: { readonly balancing: LoadBalancer; readonly recorder: AttemptRecorder },
    prices: PriceList,
    freezing: KeepRule,
  ) {
    this.#ports = ports
    this.#parts = parts
    this.#prices = prices
    this.#freezing = freezing
  }

  /**
   * Plays the attempts of an endpoint of the caller, in slices, so that the server continues in the meantime.
   * @param signal ends it early
   * @throws AppError `invalid` for settings that an update would refuse; `conflict` for a load-balancing endpoint, or
   *   too many attempts; `rate_limited` while the account has a running question, or all accounts too many;
   *   `not_found`
   */
  async answer({ id, owner }: Endpoint, request: WhatIfRequest, signal: AbortSignal): Promise<WhatIfAnswer> {
    if (this.#atWork.has(owner)) throw busy('another what-if of this account is at work')
    if (this.#atWork.size >= MAX_AT_WORK) throw busy('too many what-ifs are at work on this server')
    this.#atWork.add(owner)
    try {
      return await this.#play(id, request, signal)
    } finally {
      this.#atWork.delete(owner)
    }
  }

  async #play(id: EndpointId, { changes, days }: WhatIfRequest, signal: AbortSignal): Promise<WhatIfAnswer> {
    const snapshot = await this.#parts.balancing.snapshot(id)
    if (snapshot === null) throw notFound('endpoint', id)
    const { endpoint, workers, exits, startAware = false } = snapshot
    if (endpoint.type !== 'QUEUE')
      throw new AppError('conflict', `endpoint ${id} balances load, and the times of its requests are not recorded`)
    const today = scalingSettings(endpoint, startAware)
    const changed = changedSettings(today, changes)
    if ('problems' in changed) throw invalidFields([...changed.problems])
    const nowMs = this.#ports.clock.now()
    const fromMs = Math.max(nowMs - days * DAY_MS, endpoint.createdAtMs)
    const load = recordedLoad(await this.#attempts(id, fromMs, signal), { fromMs, untilMs: nowMs })
    const start = assumedStart(snapshot, load)
    const concurrency = typicalConcurrency(workers, exits)
    const assumed = { startMs: start.ms, thawMs: ASSUMED_THAW_MS, concurrency, freezing: this.#freezing }
    const flavor = flavorOfWorkers(snapshot)
    const priceMicros = hourlyPrice(this.#prices, flavor).micros
    const { jobs, coldWaitMs: _, ...recorded } = load
    const play = async (settings: ScalingSettings): Promise<PlayedSettings> => {
      const playing = {
        ...assumed,
        endpoint: { ...endpoint, ...settings },
        startAware: settings.startAware,
        fromMs: recorded.fromMs,
        untilMs: recorded.untilMs,
      }
      const figures = figuresFromReplay(await this.#replayed(jobs, playing, signal))
      return { settings, ...figures, costMicros: this.#cost(priceMicros, figures) }
    }
    const asksNothing = Object.values(changes).every(value => value === undefined)
    const notes = whatIfNotes(load, start)
    if (today.workersMax === 0) notes.push('with workersMax 0 no job of it runs today')
    return {
      recorded: { ...recorded, attempts: jobs.length },
      start,
      thawMs: ASSUMED_THAW_MS,
      concurrency,
      flavor,
      priceMicros,
      notes,
      today: today.workersMax === 0 ? null : await play(today),
      other: asksNothing ? null : await play(changed.settings),
    }
  }

  /** Recorded attempts, at most a block more than the limit. */
  async #attempts(id: EndpointId, fromMs: number, signal: AbortSignal): Promise<AttemptTimes[]> {
    const attempts: AttemptTimes[] = [...this.#parts.recorder.pending(id)]
    for (let beforeMs = Number.MAX_SAFE_INTEGER; attempts.length <= MAX_PLAYED; ) {
      const blocks = await this.#ports.store.attemptTimes.read(id, fromMs, beforeMs, BLOCKS)
      for (const block of blocks) attempts.push(...timesFromBlock(block))
      if (blocks.length < BLOCKS) break
      beforeMs = blocks.at(-1)!.atMs
      await this.#pause(signal)
    }
    return attempts
  }

  async #replayed(jobs: readonly ReplayedJob[], settings: ReplaySettings, signal: AbortSignal) {
    const replay = new Replay(jobs, settings)
    const begunMs = this.#ports.clock.monotonic()
    for (let instants = 0; instants < MAX_INSTANTS; ) {
      const slice = Math.ceil(SLICE / (WORKERS_OF_INSTANT + replay.now.workers))
      if (replay.advance(slice)) return replay.result()
      instants += slice
      const isLong = this.#ports.clock.monotonic() - begunMs > EAGER_MS
      await this.#pause(signal, isLong ? LATER_PAUSE_MS : 0)
    }
    throw new AppError('conflict', 'there are too many attempts to play; ask for fewer days')
  }

  /** Lets other work of the server run. */
  async #pause(signal: AbortSignal, ms = 0): Promise<void> {
    if (signal.aborted) throw new AppError('conflict', 'the caller left')
    await new Promise<void>(done => this.#ports.clock.after(ms, done))
  }

  #cost(priceMicros: number, { workers }: WhatIfFigures): number {
    return new RoundedSum().add(exactAmount(priceMicros, Math.round(billedMs(this.#prices, workers))))
  }
}

/**
 * Hardware that workers of an endpoint are billed as: that of the newest worker with a place, else that of the
 * endpoint.
 */
function flavorOfWorkers({ endpoint, workers, exits }: EndpointSnapshot): string {
  const placed = [...workers.toReversed(), ...exits].find(({ placement }) => placement !== null)
  return billedFlavor(placed?.placement ?? null, endpoint.compute)
}

function busy(message: string): AppError {
  return new AppError('rate_limited', `${message}; try again in some seconds`, { retryAfterSeconds: 5 })
}
