/** How many worker seconds autoscalers need for the same waits: traces in virtual time. */
import type { Endpoint } from '../../src/core/endpoints/endpoint.ts'
import { Replay } from '../../src/core/scaling/replay.ts'
import { anEndpoint } from '../../test/support/snapshots.ts'
import { hostedQueueDelay, hostedRequestCount } from '../autoscaler/hosted.ts'
import { knative } from '../autoscaler/knative.ts'
import { type PoolResult, playPool } from '../autoscaler/pool.ts'
import { type Trace, traces } from '../autoscaler/traces.ts'
import { type Suite, type Table, type TableRow, tableText } from '../harness/suite.ts'

/** The part of the concurrency that Knative has as its target; the middle one is its default. */
const TARGETS = [0.5, 0.7, 0.85, 1]
const DEFAULT_TARGET = 0.7
const IDLE_TIMEOUTS_S = [1, 2, 5, 10, 15, 20, 30, 40, 60, 90, 120, 180, 300]
/** The queue delays with which idle timeouts are tried. */
const DELAYS_S = [0.5, 1, 2, 4]

const COLUMNS = [
  { heading: 'worker seconds', decimals: 0 },
  { heading: 'wait p50 s', decimals: 1 },
  { heading: 'p95 s', decimals: 1 },
  { heading: 'p99 s', decimals: 1 },
  { heading: 'cold starts', decimals: 0 },
]

/** See the head of this file. */
export const autoscaler: Suite = {
  name: 'autoscaler',
  title: 'Worker seconds for the same waits',
  notes: `Virtual time, nothing is measured by a clock: Runyard is its own planning (src/core/scaling), Knative's autoscaler and the formulas of the hosted service are written after their documentation (bench/autoscaler). Jobs come, wait, and run as long as the trace says; workers take 20 s to start, those of the language model 30 s, and cost from their start to their end. Knative has its default target, ${DEFAULT_TARGET} of the concurrency, and others. Below each is Runyard with the queue delay (${DELAYS_S[0]} to ${DELAYS_S.at(-1)} s) and the idle timeout (${IDLE_TIMEOUTS_S[0]} to ${IDLE_TIMEOUTS_S.at(-1)} s) with which it is cheapest and p95 is not longer: two settings against the one of Knative. Frozen workers are not in it. Cold starts are all starts of workers. The two traces of Azure are modelled: as many jobs in as much time as the LLM inference trace of 2023 (CC-BY), with its published medians and means of tokens; the rows are used where they lie in bench/autoscaler/azure.`,
  quick: false,
  async run() {
    const tables = traces().map(tableOf)
    for (const table of tables) console.log(tableText(table))
    return tables
  },
}

interface Outcome {
  readonly row: TableRow
  readonly workerMs: number
  readonly p95Ms: number
}

function tableOf(trace: Trace): Table {
  const others = TARGETS.map(target => [target, outcome(`Knative, target ${target}`, played(trace, target))] as const)
  const swept = DELAYS_S.flatMap(queueDelayS =>
    IDLE_TIMEOUTS_S.map(idleTimeoutS => {
      const name = `queue delay ${queueDelayS} s, idle timeout ${idleTimeoutS} s`
      const scaler = { type: 'QUEUE_DELAY', queueDelayS } as const
      return { name, ...replayed(trace, name, { idleTimeoutS, scaler }) }
    }),
  )
  const rows: TableRow[] = []
  const ratios: Record<string, number> = {}
  for (const [target, other] of others) {
    rows.push(other.row)
    const enough = swept.filter(({ p95Ms }) => p95Ms <= other.p95Ms).sort((a, b) => a.workerMs - b.workerMs)[0]
    const name = `Runyard, as target ${target}: ${enough?.name ?? 'none'}`
    rows.push({ name, cells: enough?.row.cells ?? COLUMNS.map(() => null) })
    const ratio = enough === undefined ? 0 : other.workerMs / enough.workerMs
    ratios[`${trace.name}: worker seconds of Knative at target ${target} by those of Runyard at its p95`] = ratio
  }
  rows.push(
    replayed(trace, 'Runyard, defaults: queue delay 4 s, idle timeout 10 s', {}).row,
    replayed(trace, 'Runyard, the same with --start-aware', {}, true).row,
    outcome('hosted formula, queue delay 4 s', playPool(trace, hostedQueueDelay(4_000))).row,
    outcome('hosted formula, request count', playPool(trace, hostedRequestCount(trace.concurrency))).row,
  )
  const title = `${trace.name}, ${trace.jobs.length} jobs`
  return { title, columns: COLUMNS, bars: 0, rows, ratios }
}

function played(trace: Trace, target: number): PoolResult {
  return playPool(trace, knative(trace.concurrency, target))
}

function replayed(trace: Trace, name: string, settings: Partial<Endpoint>, startAware = false): Outcome {
  const { startMs, concurrency, untilMs, jobs } = trace
  const endpoint = anEndpoint({ workersMax: 1_000, ...settings })
  const replay = new Replay(jobs, { endpoint, startMs, concurrency, startAware, fromMs: 0, untilMs })
  while (!replay.advance(10_000));
  const { waitsMs, startingMs, idleMs, runningMs, coldStarts } = replay.result()
  return outcome(name, { waitsMs, workerMs: startingMs + idleMs + runningMs, coldStarts })
}

function outcome(name: string, { waitsMs, workerMs, coldStarts }: PoolResult): Outcome {
  const sorted = waitsMs.slice().sort()
  const at = (part: number) => sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * part) - 1)] ?? 0
  const cells = [workerMs / 1_000, at(0.5) / 1_000, at(0.95) / 1_000, at(0.99) / 1_000, coldStarts]
  return { row: { name, cells }, workerMs, p95Ms: at(0.95) }
}
