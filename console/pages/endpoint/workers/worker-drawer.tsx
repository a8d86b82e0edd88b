/** One worker: its hardware, its start, its end, and its last output. */
import { useState } from 'preact/hooks'
import { api, send } from '../../../client/api.ts'
import type { WorkerDetail } from '../../../client/api-types.d.ts'
import { useResource } from '../../../client/resource.ts'
import { mayManage, mayUseJobs } from '../../../client/session.ts'
import { workerTopic } from '../../../client/topics.ts'
import { clockTime, count, duration, instant, plural } from '../../../format.ts'
import { announce } from '../../../parts/announce.tsx'
import { Button, Loaded, State } from '../../../parts/basic.tsx'
import { Confirm, Dialog } from '../../../parts/dialog.tsx'
import { TimeLine } from '../../../parts/time-line.tsx'
import { type LineData, LineReader, type LogLine } from '../logs/log-line.ts'
import { gpuText, phaseText, START_PHASES, startMs, workerEnd, workerState } from './worker-text.ts'
import { Jobs } from './workers.tsx'

/** Number of lines that the drawer shows. */
const LAST_LINES = 50
/** Limit of characters of a line in the drawer. */
const MAX_LINE = 1_000

/** A drawer with a worker, also with one that has ended. */
export function WorkerDrawer({
  endpointId,
  workerId,
  onClose,
}: {
  readonly endpointId: string
  readonly workerId: string
  readonly onClose: () => void
}) {
  const [isEnding, setEnding] = useState(false)
  const path = { id: endpointId, workerId }
  const worker = useResource(
    `worker ${endpointId} ${workerId}`,
    signal => api('GET /v2/serverless/{id}/workers/{workerId}', { path, signal }),
    { on: workerTopic(endpointId), everyMs: 2_000 },
  )
  const phase = worker.data?.phase
  const mayEnd = mayManage('write') && phase !== undefined && phase !== 'exited' && phase !== 'stopping'
  const logs = `/endpoints/${encodeURIComponent(endpointId)}/logs?worker=${encodeURIComponent(workerId)}`
  return (
    <Dialog
      title={`Worker ${workerId}`}
      kind="drawer"
      onClose={onClose}
      actions={
        <>
          <a class="button" href={logs}>
            All its lines
          </a>
          {mayEnd ? (
            <Button kind="danger" onPress={() => setEnding(true)}>
              End or restart worker
            </Button>
          ) : null}
        </>
      }
    >
      <Loaded of={worker}>
        {data => (
          <>
            <Facts worker={data} />
            <Start worker={data} />
            <LastLines endpointId={endpointId} workerId={workerId} known={data.exit?.lastLines ?? []} />
          </>
        )}
      </Loaded>
      {isEnding ? (
        <Confirm
          title={`End worker ${workerId}?`}
          action="End worker"
          onClose={() => setEnding(false)}
          onConfirm={async () => {
            await api('DELETE /v2/serverless/{id}/workers/{workerId}', { path })
            announce('The worker finishes its jobs, then it ends')
          }}
        >
          <p>
            It gets no more jobs, finishes {plural(worker.data?.jobs.length ?? 0, 'job')} that it has, and then ends.
            Another worker starts if one is needed: at once while jobs wait, or while fewer than the minimum run.
          </p>
        </Confirm>
      ) : null}
    </Dialog>
  )
}

function Facts({ worker }: { readonly worker: WorkerDetail }) {
  const { tone, text } = worker.phase === 'exited' ? workerEnd(worker) : workerState(worker)
  const { endpointId, gpus, jobs, limits, exit, version, memoryMb, vcpus } = worker
  return (
    <dl class="facts">
      <dt>State</dt>
      <dd>
        <State tone={tone}>{text}</State> <span class="faint">since {clockTime(worker.phaseSince)}</span>
      </dd>
      {worker.reason === null ? null : (
        <>
          <dt>Why</dt>
          <dd>{worker.reason}</dd>
        </>
      )}
      <dt>Version</dt>
      <dd>
        {version ?? '–'}
        {worker.isStale ? ' ◆ old version' : ''}
      </dd>
      <dt>Runs on</dt>
      <dd>
        {gpus.length === 0
          ? worker.startedAt === null
            ? 'nothing yet'
            : gpuText(worker, 0)
          : gpus.map(({ index, id, memoryGb }) => `GPU ${index}: ${id}, ${memoryGb} GB`).join('; ')}
        {vcpus === null ? '' : ` · ${plural(vcpus, 'vCPU')}`}
        {memoryMb === null ? '' : ` · ${count(memoryMb)} MB of memory`}
      </dd>
      <dt>Image</dt>
      <dd>{worker.image === null ? '–' : <code>{worker.image}</code>}</dd>
      <dt>Isolation</dt>
      <dd>
        {worker.isolation ?? '–'}
        {limits.length === 0 ? ', no limits' : `, limits of ${limits.join(', ')}`}
      </dd>
      <dt>SDK</dt>
      <dd>{worker.sdk ?? 'not known'}</dd>
      <dt>Jobs</dt>
      <dd>
        {mayUseJobs('read', endpointId) && jobs.length > 0 ? (
          <>
            <Jobs endpointId={endpointId} jobs={jobs.map(({ id }) => id)} held={jobs.length} />{' '}
          </>
        ) : null}
        {count(worker.jobsFinished)} finished
      </dd>
      {exit === null ? null : (
        <>
          <dt>End</dt>
          <dd>
            {exit.cause}
            {worker.exitedAt === null ? null : <span class="faint"> at {clockTime(worker.exitedAt)}</span>}
          </dd>
        </>
      )}
    </dl>
  )
}

function Start({ worker }: { readonly worker: WorkerDetail }) {
  const steps = worker.timeLine.map(({ phase, startedAt, ms }) => ({
    phase,
    step: {
      atMs: instant(startedAt),
      title: phaseText(phase),
      ms,
      tone: workerState({ ...worker, phase, status: 'IDLE', pullPercent: null, download: null }).tone,
      ...(ms < 1_000 || !START_PHASES.has(phase) ? {} : { detail: `${count(ms)} ms` }),
    },
  }))
  const start = steps.filter(({ phase }) => START_PHASES.has(phase)).map(({ step }) => step)
  const after = steps.filter(({ phase }) => !START_PHASES.has(phase)).map(({ step }) => step)
  const tookMs = startMs(worker)
  return (
    <>
      <h3 class="drawer-head">
        Start{tookMs === null ? '' : `: ${duration(tookMs)} until it was ready`}
        {tookMs === null || tookMs < 1_000 ? '' : ` (${count(tookMs)} ms)`}
      </h3>
      <TimeLine label="Start" steps={start} />
      {after.length === 0 ? null : (
        <>
          <h3 class="drawer-head">Since then</h3>
          <TimeLine label="Since then" steps={after} />
        </>
      )}
    </>
  )
}

function LastLines({
  endpointId,
  workerId,
  known,
}: {
  readonly endpointId: string
  readonly workerId: string
  /** Lines that were stored at the end of the worker; its output may be deleted. */
  readonly known: readonly string[]
}) {
  const lines = useResource(
    `last lines ${endpointId} ${workerId}`,
    async signal => {
      const query = { worker: workerId, tail: LAST_LINES, follow: 'false' } as const
      const response = await send('GET /v2/serverless/{id}/logs', { path: { id: endpointId }, query, signal })
      const reader = new LineReader()
      return (await response.text())
        .split('\n')
        .filter(line => line !== '')
        .map(line => reader.read(JSON.parse(line) as LineData))
    },
    { on: workerTopic(endpointId), everyMs: 3_000 },
  )
  return (
    <>
      <h3 class="drawer-head">Last lines</h3>
      <Loaded of={lines}>
        {data =>
          data.length > 0 ? (
            <Lines lines={data} />
          ) : known.length > 0 ? (
            <pre class="log-whole">{known.join('\n')}</pre>
          ) : (
            <p class="faint">It has no output.</p>
          )
        }
      </Loaded>
    </>
  )
}

function Lines({ lines }: { readonly lines: readonly LogLine[] }) {
  return (
    <div class="log-tail" role="region" aria-label="Last lines" tabIndex={0}>
      {lines.map(({ atMs, kind, level, text }, at) => (
        <div key={at} class={`log-line ${kind} ${level ?? ''}`}>
          <time>{clockTime(atMs)}</time>
          <span class="log-level">{kind === 'system' ? 'system' : (level ?? '')}</span>
          <span class="log-text">{text.length > MAX_LINE ? `${text.slice(0, MAX_LINE)}…` : text}</span>
        </div>
      ))}
    </div>
  )
}
