/** One job: its input, its output, its whole story, and its actions. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { ApiError, api, send } from '../../../client/api.ts'
import type { JobRecord } from '../../../client/api-types.d.ts'
import type { LiveEvent } from '../../../client/live.ts'
import { useResource } from '../../../client/resource.ts'
import { mayManage, mayUseJobs } from '../../../client/session.ts'
import { bytes, count, dateTime, duration, instant } from '../../../format.ts'
import { Ago, Code, Copy, Loaded } from '../../../parts/basic.tsx'
import { Dialog } from '../../../parts/dialog.tsx'
import { OutputView } from '../../../parts/output/output.tsx'
import { TimeLine } from '../../../parts/time-line.tsx'
import { Why } from '../../../parts/why.tsx'
import { setQuery } from '../../../router.ts'
import { now } from '../../../server-clock.ts'
import { exactBody } from './exact-json.ts'
import { JobActions } from './job-actions.tsx'
import { readError } from './job-error.ts'
import { JobLogs } from './job-logs.tsx'
import { JobState } from './job-parts.tsx'
import { isFinal, storySteps } from './job-story.ts'
import { LargeValue } from './large-value.tsx'

/** The drawer of a job. */
export function JobDrawer({ endpointId, jobId }: { readonly endpointId: string; readonly jobId: string }) {
  const [isEnded, setEnded] = useState(false)
  const ofJob = (event: LiveEvent) => event.endpointId === endpointId && event.jobId === jobId
  const job = useResource(
    `job ${endpointId} ${jobId}`,
    async signal => {
      const path = { endpoint: endpointId, job: jobId }
      const read = await exactBody<JobRecord>(await send('GET /v2/{endpoint}/requests/{job}', { path, signal }))
      setEnded(isFinal(read.status))
      return read
    },
    // No event reports progress.
    { on: ofJob, ...(isEnded ? {} : { everyMs: 2_000 }) },
  )
  const close = () => setQuery({ job: null })
  return (
    <Dialog
      kind="drawer"
      title={`Job ${jobId}`}
      onClose={close}
      actions={
        job.data !== null && mayUseJobs('write', endpointId) ? (
          <JobActions endpointId={endpointId} job={job.data} onRemoved={close} />
        ) : undefined
      }
    >
      {job.error instanceof ApiError && job.error.status === 404 ? (
        <p class="notice wait" role="alert">
          This endpoint has no such job; it was deleted, or its record expired.
        </p>
      ) : (
        <Loaded of={job}>{data => <Job endpointId={endpointId} job={data} />}</Loaded>
      )}
    </Dialog>
  )
}

function Job({ endpointId, job }: { readonly endpointId: string; readonly job: JobRecord }) {
  // A record without a result has null for both; an output may be null itself.
  const isGone = job.completedAt !== null && job.resultExpiresAt === null
  const availableValue = (value: unknown) => (isGone && value === null ? undefined : value)
  return (
    <div class="job">
      <Facts endpointId={endpointId} job={job} />
      {job.status !== 'IN_QUEUE' ? null : <Why id={endpointId} jobId={job.id} />}
      {job.error === null ? null : <JobFailure error={job.error} />}
      <Payload
        title={job.status === 'IN_PROGRESS' ? 'Progress' : 'Output'}
        part="output"
        of={[endpointId, job]}
        value={availableValue(job.output)}
        isLarge={job.outputUrl !== undefined}
        isShown={job.status === 'COMPLETED' || job.output != null}
      />
      <Payload
        title="Input"
        part="input"
        of={[endpointId, job]}
        value={availableValue(job.input)}
        isLarge={job.inputUrl !== undefined}
        isShown
      />
      <Story endpointId={endpointId} job={job} />
      {mayManage('read') && job.startedAt !== null ? (
        <JobLogs key={job.attempts} endpointId={endpointId} jobId={job.id} />
      ) : null}
    </div>
  )
}

function Part({ title, children }: { readonly title: string; readonly children: ComponentChildren }) {
  return (
    <section>
      <h3>{title}</h3>
      {children}
    </section>
  )
}

function Facts({ endpointId, job }: { readonly endpointId: string; readonly job: JobRecord }) {
  const { policy } = job
  const runsMs = job.startedAt !== null && !isFinal(job.status) ? now.value - job.startedAt : job.executionTime
  return (
    <dl class="facts">
      <dt>State</dt>
      <dd>
        <JobState status={job.status} />
      </dd>
      <dt>Id</dt>
      <dd>
        <code>{job.id}</code> <Copy text={job.id} what="id" />
      </dd>
      <dt>Created</dt>
      <dd>
        <Ago at={job.createdAt} suffix=" ago" /> <span class="faint">{dateTime(job.createdAt)}</span>
      </dd>
      <dt>Waited, took</dt>
      <dd>
        {duration(job.startedAt === null && !isFinal(job.status) ? now.value - job.createdAt : job.delayTime)},{' '}
        {job.startedAt === null ? 'not started' : duration(runsMs)}
      </dd>
      <dt>Attempts</dt>
      <dd>
        {count(job.attempts)}
        {job.retries > 0 ? `, ${count(job.retries)} lost with their workers` : ''}
      </dd>
      {job.workerId ? (
        <>
          <dt>Worker</dt>
          <dd>
            <a href={`/endpoints/${endpointId}/workers?worker=${encodeURIComponent(job.workerId)}`} class="mono">
              {job.workerId}
            </a>
          </dd>
        </>
      ) : null}
      <dt>Policy</dt>
      <dd>
        may run for {duration(policy.executionTimeout)}, is deleted after {duration(policy.ttl)}
        {policy.lowPriority ? ', low priority' : ''}
      </dd>
      <dt>Sizes</dt>
      <dd>
        input {bytes(job.inputBytes)}, output {bytes(job.outputBytes)}
      </dd>
      <dt>Result</dt>
      <dd>
        <ResultExpiry job={job} />
      </dd>
    </dl>
  )
}

function ResultExpiry({ job }: { readonly job: JobRecord }) {
  if (job.resultExpiresAt === null) return <>deleted; this record remains</>
  const leftMs = instant(job.resultExpiresAt) - now.value
  return (
    <>
      {isFinal(job.status) ? 'stored until' : 'the job is deleted at'} {dateTime(job.resultExpiresAt)}
      {leftMs > 0 ? <span class="faint"> in {duration(Math.ceil(leftMs / 1_000) * 1_000)}</span> : null}
    </>
  )
}

function JobFailure({ error }: { readonly error: string }) {
  const { title, trace } = readError(error)
  return (
    <Part title="Error">
      <Code text={title} what="error" />
      {trace === null ? null : (
        <details open>
          <summary>Traceback</summary>
          <Code text={trace} what="traceback" />
        </details>
      )}
    </Part>
  )
}

function Payload({
  title,
  part,
  of: [endpointId, job],
  value,
  isLarge,
  isShown,
}: {
  readonly title: string
  readonly part: 'input' | 'output'
  readonly of: readonly [endpointId: string, job: JobRecord]
  /** Undefined if the job has it no more. */
  readonly value: unknown
  /** True if the record has only its address. */
  readonly isLarge: boolean
  readonly isShown: boolean
}) {
  if (!isShown) return null
  const size = part === 'input' ? job.inputBytes : job.outputBytes
  return (
    <Part title={title}>
      {isLarge ? (
        <LargeValue endpointId={endpointId} jobId={job.id} part={part} size={size} />
      ) : value === undefined ? (
        <p class="faint">Deleted{size === null ? '' : `; it had ${bytes(size)}`}.</p>
      ) : (
        <OutputView value={value} what={title.toLowerCase()} name={`${job.id}-${part}`} />
      )}
    </Part>
  )
}

function Story({ endpointId, job }: { readonly endpointId: string; readonly job: JobRecord }) {
  const { workerId } = job
  const worker = useResource(
    workerId && mayManage('read') ? `worker ${endpointId} ${workerId}` : null,
    signal =>
      api('GET /v2/serverless/{id}/workers/{workerId}', { path: { id: endpointId, workerId: workerId! }, signal }),
    { on: event => event.workerId === workerId },
  )
  const webhooks = useResource(
    isFinal(job.status) ? `webhooks ${endpointId} ${job.id}` : null,
    signal => api('GET /v2/{endpoint}/webhooks/{job}', { path: { endpoint: endpointId, job: job.id }, signal }),
    { on: event => event.jobId === job.id, everyMs: 5_000 },
  )
  const sources = { job, worker: worker.data, webhooks: webhooks.data?.deliveries ?? [] }
  return (
    <Part title="Story">
      <TimeLine steps={storySteps(sources, now.value)} label="Story of the job" />
    </Part>
  )
}
