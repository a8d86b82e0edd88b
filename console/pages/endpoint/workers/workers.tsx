/** The present workers of an endpoint, and the results of those that have ended. */
import { useState } from 'preact/hooks'
import { api } from '../../../client/api.ts'
import type { EndedWorker, Endpoint, Worker } from '../../../client/api-types.d.ts'
import { useResource } from '../../../client/resource.ts'
import { mayManage, mayUseJobs } from '../../../client/session.ts'
import { workerTopic } from '../../../client/topics.ts'
import { duration, instant, plural } from '../../../format.ts'
import { announce } from '../../../parts/announce.tsx'
import { Ago, Button, Empty, Loaded, Section, State } from '../../../parts/basic.tsx'
import { Confirm } from '../../../parts/dialog.tsx'
import { type Column, Table } from '../../../parts/table.tsx'
import { query, setQuery } from '../../../router.ts'
import { WorkerDrawer } from './worker-drawer.tsx'
import { gpuText, startMs, workerEnd, workerState } from './worker-text.ts'

/** Jobs by the worker that holds them. */
type JobsByWorker = ReadonlyMap<string | null, readonly string[]>

/** Limit of jobs in progress that are read for the table. */
const MAX_JOBS = 100
/** Limit of jobs of a worker that a row names. */
const MAX_NAMED = 2

/** The workers of an endpoint. */
export function Workers({ endpoint }: { readonly endpoint: Endpoint }) {
  const { id } = endpoint
  const withEnded = query.value.get('ended') === '1'
  const open = query.value.get('worker')
  const [isRestarting, setRestarting] = useState(false)
  const list = useResource(
    `workers ${id} ${withEnded}`,
    signal =>
      api('GET /v2/serverless/{id}/workers', { path: { id }, query: withEnded ? { ended: 'true' } : {}, signal }),
    { on: workerTopic(id), everyMs: 5_000 },
  )
  const jobs = useResource(
    mayUseJobs('read', id) && endpoint.type === 'QUEUE' ? `worker jobs ${id}` : null,
    signal =>
      api('GET /v2/{endpoint}/requests', {
        path: { endpoint: id },
        query: { status: 'IN_PROGRESS', limit: MAX_JOBS },
        signal,
      }),
    { on: workerTopic(id) },
  )
  const byWorker = new Map<string | null, string[]>()
  for (const { id: jobId, workerId } of jobs.data?.requests ?? []) {
    byWorker.set(workerId, [...(byWorker.get(workerId) ?? []), jobId])
  }
  const openWorker = ({ id: worker }: { readonly id: string }) => setQuery({ worker }, { replace: false })
  return (
    <>
      <div class="tools">
        <Button onPress={() => setQuery({ ended: withEnded ? null : '1' })} aria-pressed={withEnded}>
          {withEnded ? '☑' : '☐'} Ended workers
        </Button>
        {mayManage('write') ? <Button onPress={() => setRestarting(true)}>Restart all workers</Button> : null}
        <span class="faint">
          {endpoint.workers.min} to {plural(endpoint.workers.max, 'worker')}
        </span>
      </div>
      <Loaded of={list}>
        {({ workers, ended, endpointVersion }) => (
          <>
            <Table
              label="Workers"
              height="content"
              rows={workers}
              columns={workerColumns(endpoint, byWorker, endpointVersion)}
              rowKey={({ id: key }) => key}
              onOpen={openWorker}
              empty={
                <Empty title="No worker is running">
                  <span>
                    {endpoint.workers.max === 0
                      ? 'The endpoint is paused: raise its maximum of workers in the settings.'
                      : 'One starts with the next job.'}
                  </span>
                </Empty>
              }
            />
            {ended === undefined ? null : <Ended workers={ended} onOpen={openWorker} />}
          </>
        )}
      </Loaded>
      {open === null ? null : (
        <WorkerDrawer key={open} endpointId={id} workerId={open} onClose={() => setQuery({ worker: null })} />
      )}
      {isRestarting ? (
        <Confirm
          title={`Restart all workers of ${endpoint.name}?`}
          action="Restart all workers"
          onClose={() => setRestarting(false)}
          onConfirm={async () => {
            const { version } = await api('POST /v2/serverless/{id}/restart', { path: { id } })
            announce(`Version ${version} replaces the workers`)
          }}
        >
          <p>
            A new release with the same configuration replaces them. Workers that run now finish their jobs first, so no
            job is lost.
          </p>
        </Confirm>
      ) : null}
    </>
  )
}

function workerColumns(
  { id: endpointId, gpu }: Endpoint,
  jobs: JobsByWorker,
  latest: number | null,
): readonly Column<Worker>[] {
  const hardware = (worker: Worker) => gpuText(worker, gpu?.count ?? 0)
  return [
    {
      id: 'state',
      title: 'State',
      width: 'minmax(150px, 1.1fr)',
      sort: worker => workerState(worker).text,
      cell: worker => {
        const { tone, text } = workerState(worker)
        return <State tone={tone}>{text}</State>
      },
    },
    {
      id: 'since',
      title: 'For',
      width: '86px',
      sort: ({ phaseSince }) => instant(phaseSince),
      cell: ({ phaseSince }) => <Ago at={phaseSince} />,
    },
    { id: 'worker', title: 'Worker', width: '150px', sort: ({ id }) => id, cell: ({ id }) => <code>{id}</code> },
    {
      id: 'version',
      title: 'Version',
      width: '108px',
      isExtra: true,
      sort: ({ version }) => version ?? 0,
      cell: ({ version, isStale }) => (
        <span title={isStale && latest !== null ? `The endpoint has version ${latest}` : undefined}>
          {version ?? '–'}
          {isStale ? <b> ◆ old</b> : null}
        </span>
      ),
    },
    { id: 'gpu', title: 'Runs on', width: 'minmax(90px, 0.8fr)', isExtra: true, sort: hardware, cell: hardware },
    {
      id: 'jobs',
      title: 'Jobs',
      width: 'minmax(120px, 1.3fr)',
      sort: ({ jobsHeld }) => jobsHeld,
      cell: ({ id, jobsHeld }) => <Jobs endpointId={endpointId} jobs={jobs.get(id) ?? []} held={jobsHeld} />,
    },
    {
      id: 'age',
      title: 'Age',
      width: '86px',
      isExtra: true,
      sort: ({ uptimeSeconds }) => uptimeSeconds ?? -1,
      cell: ({ startedAt }) => <Ago at={startedAt} />,
    },
    {
      id: 'reason',
      title: 'Why',
      width: 'minmax(90px, 1.6fr)',
      isExtra: true,
      cell: ({ reason }) => <span title={reason ?? ''}>{reason ?? ''}</span>,
    },
  ]
}

/** The jobs that a worker holds, as far as the table has their ids. */
export function Jobs({
  endpointId,
  jobs,
  held,
}: {
  readonly endpointId: string
  readonly jobs: readonly string[]
  readonly held: number
}) {
  const linkedJobs = jobs.slice(0, MAX_NAMED)
  return (
    <>
      {linkedJobs.map(job => (
        <a
          key={job}
          class="mono worker-job"
          title={job}
          href={`/endpoints/${encodeURIComponent(endpointId)}/requests?job=${encodeURIComponent(job)}`}
        >
          …{job.slice(-10)}
        </a>
      ))}
      {held > linkedJobs.length ? (
        <span class="faint">
          {linkedJobs.length === 0 ? plural(held, 'job') : `and ${held - linkedJobs.length} more`}
        </span>
      ) : null}
    </>
  )
}

function Ended({
  workers,
  onOpen,
}: {
  readonly workers: readonly EndedWorker[]
  readonly onOpen: (worker: EndedWorker) => void
}) {
  return (
    <Section title="Ended workers">
      <Table
        label="Ended workers"
        height="content"
        rows={workers}
        columns={ENDED_COLUMNS}
        rowKey={({ id }) => id}
        onOpen={onOpen}
        initialSort={{ column: 'ended', isDown: true }}
        empty={<Empty title="No worker ended in the last 24 hours" />}
      />
    </Section>
  )
}

const ENDED_COLUMNS: readonly Column<EndedWorker>[] = [
  {
    id: 'how',
    title: 'Result',
    width: 'minmax(170px, 2.4fr)',
    cell: worker => {
      const { tone, text } = workerEnd(worker)
      return (
        <State tone={tone} title={text}>
          {text}
        </State>
      )
    },
  },
  { id: 'worker', title: 'Worker', width: '150px', sort: ({ id }) => id, cell: ({ id }) => <code>{id}</code> },
  {
    id: 'ended',
    title: 'Ended',
    width: '136px',
    sort: ({ exitedAt }) => (exitedAt === null ? 0 : instant(exitedAt)),
    cell: ({ exitedAt }) => <Ago at={exitedAt} suffix=" ago" />,
  },
  {
    id: 'start',
    title: 'Start took',
    width: '100px',
    isExtra: true,
    sort: worker => startMs(worker) ?? -1,
    cell: worker => duration(startMs(worker)),
  },
  {
    id: 'lived',
    title: 'Lived',
    width: '100px',
    isExtra: true,
    cell: ({ createdAt, exitedAt }) => (exitedAt === null ? '–' : duration(instant(exitedAt) - instant(createdAt))),
  },
  { id: 'version', title: 'Version', width: '80px', isExtra: true, cell: ({ version }) => version ?? '–' },
]
