/** Worker seconds that autoscalers need for the same waits: traces in virtual time. */
import type { Endpoint } from '../../src/core/endpoints/endpoint.ts'
import { ASSUMED_THAW_MS } from '../../src/core/observing/what-if.ts'
import { FREEZE_RULES } from '../../src/core/scaling/frozen-plan.ts'
import { Replay } from '../../src/core/scaling/replay.ts'
import { anEndpoint } from '../../test/support/snapshots.ts'
import { hostedQueueDelay, hostedRequestCount } from '../autoscaler/hosted.ts'
import { knative } from '../autoscaler/knative.ts'
import { type PoolResult, playPool } from '../autoscaler/pool.ts'
import { type Trace, traces } from '../autoscaler/traces.ts'
import { type Suite, type Table, type TableRow, tableText } from '../harness/suite.ts'

/** Parts of the concurrency that are targets of Knative; 0.7 is its default. */
const TARGETS = [0.5, 0.7, 0.85, 1]
const DEFAULT_TARGET = 0.7
const IDLE_TIMEOUTS_S = [1, 2, 5, 10, 15, 20, 30, 40, 60, 90, 120, 180, 300]
/** Queue delays that are tried with each idle timeout. */
const DELAYS_S = [0.5, 1, 2, 4]

/** Idle timeouts, and times of frozen workers, that are tried with FlashBoot. */
const FREEZE_AFTER_S = [1, 2, 5, 10, 20, 60]
const KEEPS_S = [60, 300, 900, 3_600]
/**
 * Price of a second of a frozen worker in seconds of a running one, which is that of its memory: 24 GB of main memory
 * at half a US cent an hour for each GB, about the price of memory alone in clouds, compared with the 1.116 dollars
 * of an ADA_24 in our catalog.
 */
const FROZEN_PART = (24 * 0.005) / 1.116

const COLUMNS = [
  { heading: 'worker seconds, frozen ones by their memory', decimals: 0 },
  { heading: 'not frozen', decimals: 0 },
  { heading: 'frozen', decimals: 0 },
  { heading: 'wait p50 s', decimals: 1 },
  { heading: 'p95 s', decimals: 1 },
  { heading: 'p99 s', decimals: 1 },
  { heading: 'cold starts', decimals: 0 },
  { heading: 'thaws', decimals: 0 },
]

/** See the head of this file. */
export const autoscaler: Suite = {
  name: 'autoscaler',
  title: 'Worker seconds for the same waits',
  notes: `Virtual time, nothing is measured by a clock: Runyard is its own planning (src/core/scaling), Knative's autoscaler and the formulas of the hosted service are written after their documentation (bench/autoscaler). Jobs come, wait, and run as long as the trace says; workers take 20 s to start, those of the language model 30 s, and cost from their start to their end. Knative has its default target, ${DEFAULT_TARGET} of the concurrency, and others. Below each is Runyard with the queue delay (${DELAYS_S[0]} to ${DELAYS_S.at(-1)} s) and the idle timeout (${IDLE_TIMEOUTS_S[0]} to ${IDLE_TIMEOUTS_S.at(-1)} s) with which it is cheapest and p95 is not longer: two settings against the one of Knative. With FlashBoot its idle workers are frozen (idle timeout ${FREEZE_AFTER_S[0]} to ${FREEZE_AFTER_S.at(-1)} s) and kept for ${KEEPS_S[0]} to ${KEEPS_S.at(-1)} s, are thawed in ${ASSUMED_THAW_MS} ms, and a second of a frozen one counts as ${FROZEN_PART.toFixed(2)} of a running one, at the price of its memory: 24 GB at half a cent an hour each beside the hour of an ADA_24. That its GPU stays bound while nobody else wants it is not counted. Cold starts are all starts of workers. The two traces of Azure are modelled: as many jobs in as much time as the LLM inference trace of 2023 (CC-BY), with its published medians and means of tokens; the rows are used where they lie in bench/autoscaler/azure.`,
  quick: false,
  async run() {
    const tables = traces().map(traceTable)
    for (const table of tables) console.log(tableText(table))
    return tables
  },
}

interface Outcome {
  readonly row: TableRow
  /** Time of all workers; that of frozen ones counts at the price of their memory. */
  readonly workerMs: number
  readonly p95Ms: number
}

function traceTable(trace: Trace): Table {
  const knativeOutcomes = TARGETS.map(
    target => [target, outcome(`Knative, target ${target}`, played(trace, target))] as const,
  )
  const swept = DELAYS_S.flatMap(queueDelayS =>
    IDLE_TIMEOUTS_S.map(idleTimeoutS => {
      const name = `queue delay ${queueDelayS} s, idle timeout ${idleTimeoutS} s`
      const scaler = { type: 'QUEUE_DELAY', queueDelayS } as const
      return { name, ...replayed(trace, name, { endpoint: { idleTimeoutS, scaler } }) }
    }),
  )
  const freezing = DELAYS_S.flatMap(queueDelayS =>
    FREEZE_AFTER_S.flatMap(idleTimeoutS =>
      KEEPS_S.map(keepS => {
        const name = `queue delay ${queueDelayS} s, frozen after ${idleTimeoutS} s for ${keepS} s`
        const endpoint = {
          idleTimeoutS,
          scaler: { type: 'QUEUE_DELAY', queueDelayS },
          flashboot: 'FLASHBOOT',
        } as const
        return { name, ...replayed(trace, name, { endpoint, keepMs: keepS * 1_000 }) }
      }),
    ),
  )
  const rows: TableRow[] = []
  const ratios: Record<string, number> = {}
  for (const [target, knative] of knativeOutcomes) {
    rows.push(knative.row)
    for (const [kind, tried] of [
      ['Runyard', swept],
      ['Runyard with FlashBoot', freezing],
    ] as const) {
      const enough = tried.filter(({ p95Ms }) => p95Ms <= knative.p95Ms).sort((a, b) => a.workerMs - b.workerMs)[0]
      const name = `${kind}, as target ${target}: ${enough?.name ?? 'none'}`
      rows.push({ name, cells: enough?.row.cells ?? COLUMNS.map(() => null) })
      const ratio = enough === undefined ? 0 : knative.workerMs / enough.workerMs
      ratios[`${trace.name}: worker seconds of Knative at target ${target} by those of ${kind} at its p95`] = ratio
    }
  }
  rows.push(
    replayed(trace, 'Runyard, defaults: queue delay 4 s, idle timeout 10 s', {}).row,
    replayed(trace, 'Runyard, the same with --start-aware', { startAware: true }).row,
    replayed(trace, 'Runyard, the same with FlashBoot', { endpoint: { flashboot: 'FLASHBOOT' } }).row,
    outcome('hosted formula, queue delay 4 s', playPool(trace, hostedQueueDelay(4_000))).row,
    outcome('hosted formula, request count', playPool(trace, hostedRequestCount(trace.concurrency))).row,
  )
  const title = `${trace.name}, ${trace.jobs.length} jobs`
  return { title, columns: COLUMNS, bars: 0, rows, ratios }
}

function played(trace: Trace, target: number): PoolResult {
  return playPool(trace, knative(trace.concurrency, target))
}

interface Variation {
  readonly endpoint?: Partial<Endpoint>
  readonly startAware?: boolean
  readonly keepMs?: number
}

function replayed(trace: Trace, name: string, { endpoint, startAware = false, keepMs }: Variation): Outcome {
  const { startMs, concurrency, untilMs, jobs } = trace
  const replay = new Replay(jobs, {
    endpoint: anEndpoint({ workersMax: 1_000, ...endpoint }),
    startMs,
    thawMs: ASSUMED_THAW_MS,
    freezing: { keepMs: keepMs ?? FREEZE_RULES.keepMs },
    concurrency,
    startAware,
    fromMs: 0,
    untilMs,
  })
  while (!replay.advance(10_000));
  const { startingMs, idleMs, runningMs, ...result } = replay.result()
  return outcome(name, { ...result, workerMs: startingMs + idleMs + runningMs })
}

type SpentPool = PoolResult & { readonly frozenMs?: number; readonly thaws?: number }

function outcome(name: string, { waitsMs, workerMs, coldStarts, frozenMs = 0, thaws = 0 }: SpentPool): Outcome {
  const sorted = waitsMs.slice().sort()
  const at = (part: number) => sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * part) - 1)] ?? 0
  const weighedMs = workerMs + FROZEN_PART * frozenMs
  const spent = [weighedMs / 1_000, workerMs / 1_000, frozenMs / 1_000]
  const cells = [...spent, at(0.5) / 1_000, at(0.95) / 1_000, at(0.99) / 1_000, coldStarts, thaws]
  return { row: { name, cells }, workerMs: weighedMs, p95Ms: at(0.95) }
}
