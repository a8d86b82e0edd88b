/** The pod of one worker, from its creation to its end, as reports come in. */
import type { WorkerId } from '../../core/ids.ts'
import type { Limit } from '../../core/workers/isolation.ts'
import type { ReportedPlace, WaitForPlace } from '../../core/workers/platform-report.ts'
import type { ServedAt } from '../../core/workers/socket-address.ts'
import type { StartFailure } from '../../core/workers/start-failure.ts'
import type { ObservedExit } from '../../core/workers/worker-exit.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Observation, WorkerSpec } from '../../ports/driver.ts'
import { podName } from './names.ts'
import { JUST_ASKED, type PodReport } from './pod-report.ts'

/** The copying of the output of one pod. */
export interface PodOutput {
  /** The pod has ended: resolves when the rest of the output is copied, after that time at the latest. */
  finish(forMs: number): Promise<void>
  /** Asks again at once, after the API was away. */
  resume(): void
  /** Stops copying; another server may go on. */
  close(): Promise<void>
}

const NEW = JSON.stringify({ state: 'unplaced', reason: JUST_ASKED })

/** The way in which a pod was asked to end. */
export type PodEnding = 'terminate' | 'kill'

/** The time for which a start may have a trouble that can pass, such as a registry that cannot be reached. */
const TROUBLE_MS = 60_000
/**
 * Silence of a node after which its workers leave. After an outage of the API the cluster counts nodes as silent until
 * their next report, which they try every few seconds.
 */
const SILENT_MS = 15_000
/** The cluster itself takes a pod from a silent node after the limit; this long after that it is not waited for. */
const LOST_MARGIN_MS = 60_000
const OUTPUT_MS = 5_000

/** A pod that was asked for, or found. */
export class WorkerPod {
  readonly worker: WorkerId
  readonly name: string
  readonly #options
  /** Resolves once its program has been started, or it has ended without that. */
  readonly #begun = Promise.withResolvers<void>()
  readonly #over = Promise.withResolvers<void>()
  #report: PodReport | null = null
  #seenMs: number
  #exit: ObservedExit | null = null
  #settling = false
  #output: PodOutput | null = null
  #wait: WaitForPlace | null = JUST_ASKED
  #asked: PodEnding | null = null
  #trouble: { readonly failure: StartFailure; readonly sinceMs: number } | null = null
  #silentMs: number | null = null
  #endingMs: number | null = null
  #lost = false
  #isGone = false
  /** The reason why its node cannot mount its volume; null while nothing is wrong with that. */
  #unmounted: string | null = null
  #hasRun = false
  #reported = ''

  constructor(options: {
    readonly worker: WorkerId
    readonly clock: Clock
    /** Begins to copy its output. */
    readonly output: (pod: WorkerPod) => PodOutput
    /** Its place as it is reported. */
    readonly reportedPlace: (report: PodReport, node: string) => ReportedPlace
    /** The silence of its node after which it counts as ended, in ms. */
    readonly nodeLostMs: number
    /** Called when what is observed of it may have changed. */
    readonly onChange: () => void
    /**
     * True where it is older than this server's start of it: unseen it counts as running, until the cluster reports
     * something else.
     */
    readonly isAdopted: boolean
    /** True where the cluster certainly had it. */
    readonly wasMade: boolean
  }) {
    this.#options = options
    this.worker = options.worker
    this.name = podName(options.worker)
    this.#seenMs = options.clock.monotonic()
  }

  /** The id that the cluster has given it; null while none is known. */
  get uid(): string | null {
    return this.#report?.uid ?? null
  }

  /** The last report. */
  get report(): PodReport | null {
    return this.#report
  }

  /** Its end; null while it runs, or may run. */
  get exit(): ObservedExit | null {
    return this.#exit
  }

  /** The way in which this server asked it to end; null when it did not. */
  get asked(): PodEnding | null {
    return this.#asked
  }

  /** True where it counts as ended because its node is silent, so that nobody will confirm its end. */
  get isLost(): boolean {
    return this.#lost
  }

  /**
   * True where it stays in the cluster until somebody deletes it: nobody asked it to end, or its node cannot confirm
   * that.
   */
  get isLeft(): boolean {
    return this.#lost || (!this.#isGone && this.#report?.graceMs === null)
  }

  /** True once its program was started. */
  get hasRun(): boolean {
    return this.#hasRun
  }

  /** True where its program has ended or is about to, so that its output has an end. */
  get isEnding(): boolean {
    return this.#settling || this.#exit !== null || this.#endingMs !== null
  }

  /** Resolves once its program has been started, or it has ended without that. */
  get begun(): Promise<void> {
    return this.#begun.promise
  }

  /** Resolves once its end is known and its output is copied. */
  get over(): Promise<void> {
    return this.#over.promise
  }

  /** Time since the last report about it, in ms. */
  get sinceReportMs(): number {
    return this.#options.clock.monotonic() - this.#seenMs
  }

  /** True where its state should change soon: it is being started, or was asked to end. */
  get isMoving(): boolean {
    return this.#exit === null && (!this.#hasRun || this.#asked !== null || this.#endingMs !== null)
  }

  /** Notes the reason of its wait before the cluster has it; null once it has. */
  noteWait(reason: WaitForPlace | null): void {
    this.#wait = reason
    this.#reportChange()
  }

  /** Notes the problem of its volume that its node reports; null once it is mounted. */
  noteMount(problem: string | null): void {
    if (this.#hasRun || this.#unmounted === problem) return
    this.#unmounted = problem
    this.#reportChange()
  }

  /** Notes that it is asked to end. */
  ask(ending: PodEnding): void {
    this.#asked = ending
  }

  /** Notes a report of the cluster. Old reports and those of another pod of this name are left out. */
  see(report: PodReport): void {
    const previous = this.#report
    if (previous !== null && (previous.uid !== report.uid || isOlder(report.version, previous.version))) return
    this.#seenMs = this.#options.clock.monotonic()
    if (this.#settling || this.#exit !== null) return
    this.#report = report
    this.#wait = null
    if (report.graceMs !== null) this.#endingMs ??= this.#seenMs
    const { life } = report
    if (life.kind === 'running') this.#noteRunning()
    else if (life.kind === 'placed' && life.trouble !== null) {
      const { failure, isCertain } = life.trouble
      this.#trouble = { failure, sinceMs: this.#trouble?.sinceMs ?? this.#seenMs }
      if (isCertain) this.fail(failure)
    } else if (life.kind === 'ended') void this.#settle(this.#adjustedExit(life.exit))
    if (this.#settling) return
    this.#silentMs = report.isSilent ? (this.#silentMs ?? this.#seenMs) : null
    this.#reportChange()
  }

  /** The cluster deleted it. @param last its last report; null for nothing new */
  noteGone(last: PodReport | null): void {
    this.#isGone = true
    if (this.#settling || this.#exit !== null) return
    if (last !== null) {
      if (this.uid !== null && last.uid !== this.uid) return
      // The last report may have the cause of its end.
      this.see(last)
      if (this.#settling) return
    }
    if (this.#asked !== null) {
      const signal = this.#asked === 'kill' ? 'SIGKILL' : null
      return void this.#settle({ code: null, signal, cause: { kind: 'ended' } })
    }
    if (this.#report === null && this.#options.isAdopted && !this.#options.wasMade) {
      return void this.#settle({ code: null, signal: null, cause: { kind: 'unseen', when: 'server_away' } })
    }
    const reclaim = this.#report?.leaving ?? { kind: 'deleted', said: '' }
    void this.#settle({ code: null, signal: null, cause: { kind: 'reclaimed', why: reclaim } })
  }

  /** Ends its start: it will never run. */
  fail(failure: StartFailure): void {
    void this.#settle({ code: null, signal: null, cause: { kind: 'not_started', failure } })
  }

  /** Checks its limits of time. Called from time to time while the API answers. */
  check(): void {
    if (this.#settling || this.#exit !== null) return
    const nowMs = this.#options.clock.monotonic()
    const trouble = this.#trouble
    if (!this.#hasRun && trouble !== null && nowMs - trouble.sinceMs >= TROUBLE_MS) {
      this.fail(trouble.failure)
      return
    }
    const { nodeLostMs } = this.#options
    const silent = this.#silentForMs() >= nodeLostMs + LOST_MARGIN_MS
    const graceMs = this.#report?.graceMs ?? 0
    // Its node was asked to end it, and reports nothing.
    const unended = this.#endingMs !== null && nowMs - this.#endingMs >= graceMs + nodeLostMs
    if (silent || unended) this.#lose()
    else this.#reportChange()
  }

  #silentForMs(): number {
    return this.#silentMs === null ? 0 : this.#options.clock.monotonic() - this.#silentMs
  }

  /** The present observation of it. */
  get observation(): Observation {
    if (this.#exit !== null) return { state: 'exited', exit: this.#exit }
    const report = this.#report
    if (report === null) {
      const { isAdopted } = this.#options
      return isAdopted ? { state: 'running' } : { state: 'unplaced', reason: this.#wait ?? JUST_ASKED }
    }
    const { life, node } = report
    if (this.#wait !== null) return { state: 'unplaced', reason: this.#wait }
    if (node === null) return { state: 'unplaced', reason: life.kind === 'unplaced' ? life.reason : JUST_ASKED }
    if (this.#unmounted !== null && !this.#hasRun && report.leaving === null) {
      return { state: 'unplaced', reason: { kind: 'volume_pending', said: this.#unmounted } }
    }
    const place = this.#options.reportedPlace(report, node)
    if (this.#asked === null && report.leaving !== null) return { state: 'leaving', why: report.leaving, place }
    if (this.#silentForMs() >= Math.min(SILENT_MS, this.#options.nodeLostMs) && this.#asked === null) {
      return { state: 'leaving', why: { kind: 'node_lost', node, said: 'its node does not respond' }, place }
    }
    return this.#hasRun ? { state: 'running', place } : { state: 'placed', place }
  }

  /** The addresses that it serves; null when it serves none, or has ended. */
  get address(): ServedAt | null {
    const { ip = null, serves = null } = this.#report ?? {}
    if (this.#exit !== null || ip === null || serves === null) return null
    return { traffic: { host: ip, port: serves.port }, health: { host: ip, port: serves.healthPort } }
  }

  /** Copies its output on, after the API was away. */
  resume(): void {
    this.#output?.resume()
  }

  /** Stops copying its output; it goes on. */
  async close(): Promise<void> {
    await this.#output?.close()
  }

  #noteRunning(): void {
    this.#hasRun = true
    this.#trouble = null
    this.#output ??= this.#options.output(this)
    this.#begun.resolve()
  }

  #lose(): void {
    this.#lost = true
    const node = this.#report?.node ?? null
    const reclaim = { kind: 'node_lost', node, said: '' } as const
    void this.#settle({ code: null, signal: null, cause: { kind: 'reclaimed', why: reclaim } })
  }

  /** An end that this server asked for does not count as a reclaim by the platform. */
  #adjustedExit(exit: ObservedExit): ObservedExit {
    if (exit.cause.kind === 'reclaimed' && this.#asked !== null) return { ...exit, cause: { kind: 'ended' } }
    return exit
  }

  async #settle(exit: ObservedExit): Promise<void> {
    this.#settling = true
    const isCode = exit.code !== null || exit.signal !== null
    if (isCode) this.#hasRun = true
    // A program that ended at once has written something, too.
    if (isCode && !this.#lost) this.#output ??= this.#options.output(this)
    await this.#output?.finish(this.#lost ? 0 : OUTPUT_MS)
    this.#exit = exit
    this.#begun.resolve()
    this.#over.resolve()
    this.#reportChange()
  }

  #reportChange(): void {
    const observation = JSON.stringify(this.observation)
    if (observation === this.#reported) return
    this.#reported = observation
    // Most pods get their place within a moment.
    if (observation === NEW) return
    this.#options.onChange()
  }
}

/** True for a version of an object that came before another one; versions that are no numbers say nothing. */
function isOlder(version: string, than: string): boolean {
  if (!/^\d+$/.test(version) || !/^\d+$/.test(than)) return false
  return version.length === than.length ? version < than : version.length < than.length
}

/** A handle. */
export interface PodHandle {
  readonly pod: string
  readonly uid: string
  readonly limits: readonly Limit[]
}

/** The handle of a pod, as text. */
export function podHandle(pod: WorkerPod, { wish, diskGb }: WorkerSpec): string {
  const limits: [limit: Limit, isHeld: boolean][] = [
    ['memory', wish.cpus.length > 0],
    ['cpu', wish.cpus.length > 0],
    ['disk', diskGb !== null],
  ]
  const handle: PodHandle = {
    pod: pod.name,
    uid: pod.uid ?? '',
    limits: limits.flatMap(([limit, isHeld]) => (isHeld ? [limit] : [])),
  }
  return JSON.stringify(handle)
}

/** Reads a handle; null for any other text. */
export function parseHandle(text: string): PodHandle | null {
  try {
    const { pod, uid, limits = [] } = JSON.parse(text) as PodHandle
    return typeof pod === 'string' && typeof uid === 'string' && pod !== '' ? { pod, uid, limits } : null
  } catch {
    return null
  }
}
