import { countGpus } from '../../core/workers/placement.ts'
import { exitText } from '../../core/workers/worker.ts'
import type { HeldJob, ReportedWorker, WorkerReport } from '../../services/observing/worker-reader.ts'
import type { WorkerDetail, WorkerList } from './schemas/worker.ts'

/** The workers of an endpoint as REST shows them. @param withEnded true if ended workers were requested */
export function workerList(report: WorkerReport, withEnded: boolean, nowMs: number): WorkerList {
  const { ready: _, ...summary } = report.counts
  const workers = report.workers.map(worker => ({
    ...common(worker, nowMs),
    // Reported workers that have not ended have one of these statuses.
    status: worker.status as WorkerList['workers'][number]['status'],
  }))
  const ended = report.ended.map(worker => ({ ...more(worker, nowMs), exit: exitView(worker) }))
  return { workers, summary, endpointVersion: report.endpoint.version, ...(withEnded ? { ended } : {}) }
}

/** One worker as REST shows it. */
export function workerDetail(
  endpointId: string,
  reported: ReportedWorker,
  jobs: readonly HeldJob[],
  nowMs: number,
): WorkerDetail {
  const { worker } = reported
  const placement = worker?.placement ?? null
  const exit = exitView(reported)
  return {
    ...more(reported, nowMs),
    endpointId,
    sdk: worker?.sdk ?? null,
    jobsFinished: worker?.jobsFinished ?? 0,
    jobs: jobs.map(({ id, startedAtMs }) => ({ id, startedAt: instant(startedAtMs) })),
    gpus: (placement?.gpus ?? []).map(({ index, type, memoryGb }) => ({ index, id: type, memoryGb })),
    pool: placement?.pool ?? placement?.asked?.pool ?? null,
    vcpus: placement?.vcpus ?? placement?.asked?.cpu?.vcpus ?? null,
    memoryMb: placement?.memoryMb ?? placement?.asked?.cpu?.memoryMb ?? null,
    limits: [...(reported.isolation?.limits ?? [])],
    exit: exit === null ? null : { ...exit, lastLines: [...(worker?.exit?.lastLines ?? [])] },
  }
}

/** Members of a worker in every list, except its status. */
export function common({ id, version, isStale, held, reason, now, ...more }: ReportedWorker, nowMs: number) {
  const { worker, image, pullPercent, download, isolation } = more
  const { placement = null, platform = null } = worker ?? {}
  const startedAtMs = worker?.startedAtMs ?? null
  const untilMs = worker?.exitedAtMs ?? nowMs
  return {
    id,
    isStale,
    version,
    gpuCount: platform?.place?.gpuCount || countGpus(placement),
    image,
    uptimeSeconds: startedAtMs === null ? null : Math.max(0, Math.floor((untilMs - startedAtMs) / 1000)),
    gpuTypeId: placement?.gpus[0]?.type ?? platform?.place?.gpuType ?? null,
    node: platform?.place?.node ?? null,
    dataCenterId: null,
    startedAt: instant(startedAtMs),
    phase: now.phase,
    phaseSince: new Date(now.sinceMs).toISOString(),
    pullPercent,
    download,
    jobsHeld: held,
    reason,
    isolation: isolation?.kind ?? null,
  }
}

function more(reported: ReportedWorker, nowMs: number) {
  const { worker, status, now, timeLine } = reported
  return {
    ...common(reported, nowMs),
    status,
    stopReason: worker?.stopReason ?? null,
    createdAt: new Date(worker?.createdAtMs ?? now.sinceMs).toISOString(),
    readyAt: instant(worker?.readyAtMs ?? null),
    exitedAt: instant(worker?.exitedAtMs ?? null),
    timeLine: timeLine.map(({ phase, startedAtMs, ms }) => ({
      phase,
      startedAt: new Date(startedAtMs).toISOString(),
      ms,
    })),
  }
}

function exitView({ worker }: ReportedWorker) {
  if (worker?.exit == null) return null
  const { code, signal } = worker.exit
  return { code, signal, cause: exitText(worker, worker.exit) }
}

function instant(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}
