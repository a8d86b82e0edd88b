/** Simulated workers in virtual time, for autoscalers of other servers. */
import type { Trace } from './traces.ts'

/** Input of a decision of an autoscaler. Instants and times in milliseconds. */
export interface PoolState {
  readonly nowMs: number
  readonly queued: number
  readonly inFlight: number
  readonly ready: number
  readonly starting: number
  /** Instant at which the first job of the queue was queued; null for an empty queue. */
  readonly headQueuedAtMs: number | null
}

/** An autoscaler. */
export interface Autoscaler {
  /** Time between two decisions; it also decides when a job arrives and no worker exists. */
  readonly everyMs: number
  /** Reports a period with this number of queued and running jobs. */
  passes(ms: number, jobs: number): void
  /** Number of workers that should exist. */
  decide(seen: PoolState): number
  /** Idle time after which a worker may end. */
  readonly idleMs: number
}

/** The outcome of a trace. */
export interface PoolResult {
  readonly waitsMs: Float64Array
  readonly workerMs: number
  readonly coldStarts: number
}

interface PoolWorker {
  readyAtMs: number
  busyUntilMs: number[]
  idleSinceMs: number
}

/**
 * Plays a trace. Jobs begin in the order of their arrival, each on the worker that became idle last. Of too many
 * workers those that start end first, then idle ones in the order in which they became idle; busy ones never end.
 */
export function playPool({ jobs, untilMs, startMs, concurrency }: Trace, autoscaler: Autoscaler): PoolResult {
  const waitsMs = new Float64Array(jobs.length)
  let workers: PoolWorker[] = []
  let [arrived, begun, workerMs, coldStarts, nowMs, tickMs] = [0, 0, 0, 0, 0, 0]
  const inFlight = () => workers.reduce((sum, { busyUntilMs }) => sum + busyUntilMs.length, 0)
  for (;;) {
    const isOver = begun === jobs.length && workers.length === 0
    if (isOver) return { waitsMs, workerMs, coldStarts }
    const isQuiet = workers.length === 0 && begun === arrived
    if (isQuiet) tickMs = Math.ceil((jobs[arrived]!.queuedAtMs + 1) / autoscaler.everyMs) * autoscaler.everyMs
    const next = Math.min(
      tickMs,
      jobs[arrived]?.queuedAtMs ?? Number.POSITIVE_INFINITY,
      ...workers.map(({ readyAtMs }) => (readyAtMs > nowMs ? readyAtMs : Number.POSITIVE_INFINITY)),
      ...workers.flatMap(({ busyUntilMs }) => busyUntilMs),
    )
    workerMs += workers.length * (next - nowMs)
    autoscaler.passes(next - nowMs, arrived - begun + inFlight())
    nowMs = next
    while (arrived < jobs.length && jobs[arrived]!.queuedAtMs <= nowMs) arrived += 1
    for (const worker of workers) {
      const busyCount = worker.busyUntilMs.length
      if (busyCount === 0) continue
      worker.busyUntilMs = worker.busyUntilMs.filter(endMs => endMs > nowMs)
      if (worker.busyUntilMs.length < busyCount) worker.idleSinceMs = nowMs
    }
    while (begun < arrived) {
      const free = workers.filter(
        ({ readyAtMs, busyUntilMs }) => readyAtMs <= nowMs && busyUntilMs.length < concurrency,
      )
      if (free.length === 0) break
      for (const worker of free.sort((a, b) => b.idleSinceMs - a.idleSinceMs)) {
        if (begun === arrived) break
        const { queuedAtMs, executionMs } = jobs[begun]!
        waitsMs[begun] = nowMs - queuedAtMs
        worker.busyUntilMs.push(nowMs + executionMs)
        begun += 1
      }
    }
    const wakes = workers.length === 0 && begun < arrived
    if (nowMs < tickMs && !wakes) continue
    if (nowMs >= tickMs) tickMs += autoscaler.everyMs
    const isEnd = nowMs >= untilMs && begun === jobs.length
    const ready = workers.filter(({ readyAtMs }) => readyAtMs <= nowMs).length
    const wanted = autoscaler.decide({
      nowMs,
      queued: arrived - begun,
      inFlight: inFlight(),
      ready,
      starting: workers.length - ready,
      headQueuedAtMs: begun < arrived ? jobs[begun]!.queuedAtMs : null,
    })
    for (let missingCount = wanted - workers.length; missingCount > 0 && !isEnd; missingCount -= 1) {
      workers.push({ readyAtMs: nowMs + startMs, busyUntilMs: [], idleSinceMs: nowMs + startMs })
      coldStarts += 1
    }
    const may = workers
      .filter(
        ({ busyUntilMs, idleSinceMs }) =>
          busyUntilMs.length === 0 && nowMs - idleSinceMs >= (idleSinceMs > nowMs ? 0 : autoscaler.idleMs),
      )
      .sort((a, b) => b.readyAtMs - nowMs - (a.readyAtMs - nowMs) || a.idleSinceMs - b.idleSinceMs)
    const starting = workers.filter(({ readyAtMs }) => readyAtMs > nowMs)
    const ending = new Set([...starting, ...may].slice(0, Math.max(0, workers.length - wanted)))
    workers = workers.filter(worker => !ending.has(worker))
  }
}
