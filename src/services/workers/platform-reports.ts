import {
  afterNews,
  type PlatformNews,
  type PlatformReport,
  reclaimText,
  waitForPlaceText,
} from '../../core/workers/platform-report.ts'
import type { Worker } from '../../core/workers/worker.ts'
import type { Ports } from '../../ports/ports.ts'
import type { Fleet } from './fleet.ts'
import type { RunningWorkers } from './running-workers.ts'

/** Interval between writes of a wait whose text alone has changed: a platform counts its nodes again all the time. */
const TEXT_MS = 10_000

/** Follows platforms that place workers by themselves: place of a worker, reason of a wait, and reclaim. */
export class PlatformReports {
  readonly #ports
  readonly #fleet
  readonly #running

  constructor(ports: Ports, fleet: Fleet, running: RunningWorkers) {
    this.#ports = ports
    this.#fleet = fleet
    this.#running = running
  }

  /**
   * Notes an observation of a worker that has not ended. Writes changes only. A worker that is taken away gets no more
   * jobs or requests; those that it has stay with it until it ends, so that none runs twice.
   * @returns the worker as it is then
   */
  async note(worker: Worker, news: PlatformNews): Promise<Worker> {
    if (worker.placement?.asked === undefined) return worker
    const noted = await this.#noteReport(worker, news)
    const stays = worker.state === 'STARTING' || worker.state === 'READY' || worker.state === 'FROZEN'
    if (news.state === 'leaving' && stays) await this.#fleet.drain(worker.id, 'reclaimed')
    // The server that waited for its start is gone.
    const isAdopted = worker.startedAtMs === null && this.#running.find(worker.id)?.isLaunching !== true
    if (news.state === 'running' && isAdopted) await this.#fleet.noteStarted(worker)
    return noted
  }

  async #noteReport(worker: Worker, news: PlatformNews): Promise<Worker> {
    const { store, clock, emit, notifier } = this.#ports
    const { id, endpointId, platform: previousReport } = worker
    const report = afterNews(previousReport, news)
    if (previousReport !== null && isSame(previousReport, report)) return worker
    const running = this.#running.of(worker)
    const nowMs = clock.monotonic()
    const isOnlyText = previousReport !== null && isSame(withoutText(previousReport), withoutText(report))
    if (isOnlyText && nowMs - running.reportedAtMs < TEXT_MS) return worker
    running.reportedAtMs = nowMs
    if (!(await store.workers.reported(id, report, clock.now()))) return worker
    if (!isOnlyText) {
      emit('worker.reported', { endpointId, workerId: id, ...describeReport(report) })
      notifier.publish(`load:${endpointId}`)
    }
    const placedAtMs = worker.placedAtMs ?? (report.waits === null ? clock.now() : null)
    return { ...worker, platform: report, placedAtMs }
  }
}

function isSame(a: object, b: object): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}

function withoutText({ place, waits, leaves }: PlatformReport) {
  return { place, waits: waits?.kind ?? null, leaves: leaves?.kind ?? null }
}

function describeReport({ place, waits, leaves }: PlatformReport): {
  what: 'waits' | 'placed' | 'leaves'
  text: string
} {
  if (leaves !== null) return { what: 'leaves', text: reclaimText(leaves) }
  if (waits !== null) return { what: 'waits', text: waitForPlaceText(waits) }
  return { what: 'placed', text: place === null ? 'has a place' : `has a place on node ${place.node}` }
}
