/** Stopped workers by the process table of the operating system, which may differ from the server's records. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { readProcess } from '../../src/drivers/base/process-table.ts'
import { patient } from '../../test/support/patience.ts'
import { type WorkerProcess, workerProcesses } from '../../test/wire/support/processes.ts'

const LOOK_EVERY_MS = 50
/** Number of looks between readings of the whole process table, the dearest of all looks. */
const LOOKS_EACH_LIST = 20
/** Number of looks between readings of the store. */
const LOOKS_EACH_STORE = 10
/**
 * Longest time for which a worker may be stopped while the store of a running server has it
 * as ready, in milliseconds.
 */
const STUCK_MS = 3_000

/** Watches for stopped workers, and counts and times the stops. */
export class StopWatch {
  readonly #dataDir
  /** Begin of the present stop, by worker. */
  readonly #since = new Map<string, number>()
  /** Begin of the present stop of a worker that the store has as ready, by worker. */
  readonly #stuckSince = new Map<string, number>()
  readonly #stuck = new Set<string>()
  readonly #startedAtMs
  #ended: (() => void) | null = null
  #stops = 0
  #longestMs = 0

  /** @param startedAtMs start of the running server; null while none runs or its store cannot be read */
  constructor(dataDir: string, startedAtMs: () => number | null) {
    this.#dataDir = dataDir
    this.#startedAtMs = startedAtMs
  }

  /** Number of observed stops of workers that ran before. */
  get stops(): number {
    return this.#stops
  }

  /** The longest time that a worker was stopped without a break. */
  get longestMs(): number {
    return this.#longestMs
  }

  /** Workers that a running server did not let run although they were ready. */
  get stuck(): readonly string[] {
    return [...this.#stuck]
  }

  /** Looks again and again until {@link end}. */
  async watch(): Promise<void> {
    let isOver = false
    this.#ended = () => (isOver = true)
    let processes: WorkerProcess[] = []
    for (let looks = 0; !isOver; looks += 1) {
      if (looks % LOOKS_EACH_LIST === 0) processes = workerProcesses(this.#dataDir)
      const workers = findStops(processes)
      this.#note(workers)
      if (looks % LOOKS_EACH_STORE === 0) this.#compare(workers)
      await sleep(LOOK_EVERY_MS)
    }
  }

  /** Ends the watch. */
  end(): void {
    this.#ended?.()
  }

  #note(workers: ReadonlyMap<string, boolean>): void {
    const nowMs = performance.now()
    for (const id of this.#since.keys()) if (workers.get(id) !== true) this.#since.delete(id)
    for (const [id, isStopped] of workers) {
      if (!isStopped) continue
      const sinceMs = this.#since.get(id)
      if (sinceMs === undefined) {
        this.#since.set(id, nowMs)
        this.#stops += 1
      } else this.#longestMs = Math.max(this.#longestMs, nowMs - sinceMs)
    }
  }

  #compare(workers: ReadonlyMap<string, boolean>): void {
    const startedAtMs = this.#startedAtMs()
    const states = startedAtMs === null ? new Map<string, string>() : statesIn(this.#dataDir)
    const nowMs = performance.now()
    const isOut = (id: string) => workers.get(id) === true && states.get(id) === 'READY'
    for (const id of this.#stuckSince.keys()) if (!isOut(id)) this.#stuckSince.delete(id)
    for (const id of workers.keys()) {
      if (!isOut(id)) continue
      const sinceMs = Math.max(this.#stuckSince.get(id) ?? nowMs, startedAtMs ?? nowMs)
      this.#stuckSince.set(id, sinceMs)
      if (nowMs - sinceMs > patient(STUCK_MS)) this.#stuck.add(id)
    }
  }
}

/**
 * Number of living workers that run although the embedded store has them as frozen, or the other way round. Only
 * valid while no server runs.
 */
export function outOfStep(dataDir: string): number {
  const stops = findStops(workerProcesses(dataDir))
  return [...statesIn(dataDir)].filter(([id, state]) => {
    const isStopped = stops.get(id)
    return isStopped !== undefined && isStopped !== (state === 'FROZEN')
  }).length
}

/** The states of ready and frozen workers in the embedded store. */
function statesIn(dataDir: string): ReadonlyMap<string, string> {
  const store = new DatabaseSync(join(dataDir, 'runyard.sqlite'), { readOnly: true })
  try {
    const rows = store.prepare("SELECT id, state FROM workers WHERE state IN ('READY', 'FROZEN')").all()
    return new Map(rows.map(({ id, state }) => [String(id), String(state)]))
  } finally {
    store.close()
  }
}

/** Living workers; true for each with a stopped process. */
function findStops(processes: readonly WorkerProcess[]): ReadonlyMap<string, boolean> {
  const stops = new Map<string, boolean>()
  for (const { pid, workerId } of processes) {
    const process = readProcess(pid)
    if (process?.living !== true) continue
    stops.set(workerId, stops.get(workerId) === true || process.stopped || isHeldByGroup(pid))
  }
  return stops
}

function isHeldByGroup(pid: number): boolean {
  try {
    const group = /^0::(.*)$/m.exec(readFileSync(`/proc/${pid}/cgroup`, 'utf8'))?.[1]
    return readFileSync(`/sys/fs/cgroup${group}/cgroup.events`, 'utf8').includes('frozen 1')
  } catch {
    // It has ended, or the system has no control groups of version 2.
    return false
  }
}
