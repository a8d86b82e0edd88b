/**
 * The part of the torture run about frozen workers: waves of jobs with pauses in which the workers
 * are frozen, and new releases.
 */
import { openSync, readSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { patient } from '../../test/support/patience.ts'
import { workerProcesses } from '../../test/wire/support/processes.ts'
import { type Acknowledged, type Attempt, type Fault, type Submitting, submit } from './clients.ts'
import { type EndpointOptions, release } from './endpoint.ts'
import type { RestartableServer } from './server.ts'

/** Time for which a worker stays frozen before it ends, in seconds. */
const FROZEN_KEEP_S = 10
/** Arguments of the server. */
export const FREEZE_ARGS: readonly string[] = ['--frozen-keep', String(FROZEN_KEEP_S)]
/** Time in which all workers must end, in milliseconds. */
const GONE_MS = FROZEN_KEEP_S * 1_000 + 20_000
/** Longest wait of a wave until all workers are frozen, in milliseconds. */
const FROZEN_MS = 8_000
/** Share of waves that do not wait for frozen workers: their jobs arrive while workers are being frozen. */
const EARLY = 0.25
/**
 * Limits of the pause of early waves. Workers are frozen after five seconds without a job: REQUEST_COUNT has
 * no idle timeout of its own.
 */
const EARLY_MS = { least: 4_800, most: 5_500 }
/** Limits of the time from a start of the server to its kill, and of the wait for the next freeze or thaw then. */
const KILL_MS = { least: 500, most: 6_000, atMove: 3_000 }
/** Share of kills immediately after a freeze or thaw. */
const AT_ONCE = 0.5
/** Maximum time from the freeze or thaw to the other kills. */
const AFTER_MOVE_MS = 10
/** Interval between reads of the log, in milliseconds. */
const LOOK_MS = 1
/** Interval between releases. */
const RELEASE_MS = 45_000

/** One thaw of a worker. */
interface Thaw {
  readonly worker: string
  readonly atMs: number
}

/** A release that was acknowledged. */
interface Released {
  readonly number: number
  readonly atMs: number
}

/** Reads the freezes and thaws from the log of the server. */
export class FreezeLog {
  readonly #file: number
  readonly #bytes = Buffer.alloc(1 << 20)
  #rest = ''
  freezes = 0
  /** The workers that are frozen. */
  readonly frozen = new Set<string>()
  readonly thaws: Thaw[] = []

  constructor(file: string) {
    this.#file = openSync(file, 'r')
  }

  /** Reads the lines since the previous call. */
  read(): void {
    for (let size = this.#readMore(); size > 0; size = this.#readMore()) {
      const lines = (this.#rest + this.#bytes.toString('utf8', 0, size)).split('\n')
      this.#rest = lines.pop()!
      for (const line of lines) this.#note(line)
    }
  }

  #readMore(): number {
    return readSync(this.#file, this.#bytes)
  }

  #note(line: string): void {
    if (!line.includes('"worker.moved"')) return
    const { from, to, workerId, time } = JSON.parse(line) as Record<'from' | 'to' | 'workerId' | 'time', string>
    if (to === 'FROZEN') this.freezes += 1
    if (to === 'FROZEN') this.frozen.add(workerId)
    else this.frozen.delete(workerId)
    if (from === 'FROZEN' && to === 'READY') this.thaws.push({ worker: workerId, atMs: Date.parse(time) })
  }
}

/** Submits waves of jobs, one for each worker, until the wanted number of workers was thawed. */
export async function submitWaves(
  server: RestartableServer,
  how: Omit<Submitting, 'jobs' | 'forMs' | 'clients'> & { readonly workers: number; readonly rounds: number },
  log: FreezeLog,
): Promise<Acknowledged[]> {
  const acknowledged: Acknowledged[] = []
  while (log.thaws.length < how.rounds) {
    if (performance.now() > how.deadline) throw new Error(`only ${log.thaws.length} workers were thawed in time`)
    const first = acknowledged.length
    const wave = Array.from({ length: how.workers }, (_, index) => submit(server, how, first + index))
    acknowledged.push(...(await Promise.all(wave)))
    if (Math.random() < EARLY) await sleep(between(EARLY_MS))
    else await until(() => log.frozen.size >= how.workers, FROZEN_MS, log)
  }
  return acknowledged
}

/**
 * Waits for a moment to kill the server: often just after the store says that a worker is frozen or
 * thawed, before the driver acts.
 */
export async function killMoment(log: FreezeLog): Promise<void> {
  await sleep(between(KILL_MS))
  log.read()
  const moves = () => log.freezes + log.thaws.length
  const movesBefore = moves()
  await until(() => moves() > movesBefore, KILL_MS.atMove, log)
  if (Math.random() >= AT_ONCE) await sleep(Math.random() * AFTER_MOVE_MS)
}

async function until(holds: () => boolean, forMs: number, log: FreezeLog): Promise<void> {
  const deadline = performance.now() + forMs
  for (log.read(); !holds() && performance.now() < deadline; log.read()) await sleep(LOOK_MS)
}

function between({ least, most }: { readonly least: number; readonly most: number }): number {
  return least + Math.random() * (most - least)
}

/** Releases a new version in each interval. */
export async function releaseOften(
  server: RestartableServer,
  endpoint: string,
  wish: EndpointOptions,
  isOver: () => boolean,
): Promise<Released[]> {
  const released: Released[] = []
  let next = performance.now() + RELEASE_MS
  while (!isOver()) {
    await sleep(50)
    const number = released.length + 2
    if (performance.now() < next || !(await release(server, endpoint, wish, number))) continue
    released.push({ number, atMs: Date.now() })
    next = performance.now() + RELEASE_MS
  }
  return released
}

/** Waits until the time of each frozen worker is over and it has ended. @returns a fault for each one that has not */
export async function untilAllEnded(dataDir: string): Promise<Fault[]> {
  const deadline = performance.now() + patient(GONE_MS)
  while (workerProcesses(dataDir).length > 0 && performance.now() < deadline) await sleep(100)
  const workers = new Set(workerProcesses(dataDir).map(({ workerId }) => workerId))
  const fault = `is a worker that has not ended ${GONE_MS / 1_000} s after the last job, although it may be frozen for ${FROZEN_KEEP_S} s`
  return [...workers].map(id => ({ id, what: fault }))
}

/** A fault for each thaw of a worker after a newer release was acknowledged. */
export function outdatedThaws(
  thaws: readonly Thaw[],
  released: readonly Released[],
  attempts: readonly Attempt[],
): Fault[] {
  const releases = new Map(attempts.map(({ worker, release: number }) => [worker, Number(number)]))
  return thaws.flatMap(({ worker, atMs }) => {
    const release = releases.get(worker)
    const newer = released.find(({ number, atMs: releasedAtMs }) => number > (release ?? number) && releasedAtMs < atMs)
    if (newer === undefined) return []
    return [{ id: worker, what: `is a worker of release ${release} and was thawed after release ${newer.number}` }]
  })
}

/** A fault if a worker was stopped for longer than it may be frozen, even if the server reported otherwise. */
export function frozenTooLong(longestMs: number): Fault[] {
  if (longestMs <= GONE_MS) return []
  return [
    {
      id: '-',
      what: `a worker was stopped for ${Math.round(longestMs / 1_000)} s, and is kept for ${FROZEN_KEEP_S} s`,
    },
  ]
}

/** A fault for each worker that stayed stopped although its server recorded it as ready. */
export function notThawed(stuck: readonly string[]): Fault[] {
  return stuck.map(id => ({
    id,
    what: 'is a worker that was ready in the store, and its processes were stopped for seconds',
  }))
}

/** A fault for each job that ran more than once: the server alone is killed, so no attempt is lost. */
export function ranAgain(attempts: readonly Attempt[]): Fault[] {
  return [...Map.groupBy(attempts, ({ job }) => job)].flatMap(([id, jobAttempts]) =>
    jobAttempts.length === 1
      ? []
      : [{ id, what: `ran ${jobAttempts.length} times, on ${jobAttempts.map(({ worker }) => worker).join(', ')}` }],
  )
}
