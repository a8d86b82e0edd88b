/** The columns of lists of jobs. */
import type { JobSummary } from '../../../client/api-types.d.ts'
import { duration, plural, shortJobId } from '../../../format.ts'
import { Ago } from '../../../parts/basic.tsx'
import type { Column } from '../../../parts/table.tsx'
import { now } from '../../../server-clock.ts'
import { firstLine } from './job-error.ts'
import { JobState, jobHref } from './job-parts.tsx'

/** A time that grows. */
function Since({ atMs }: { readonly atMs: number }) {
  return <>{duration(now.value - atMs)}</>
}

/** The columns. */
export const JOB_COLUMNS: readonly Column<JobSummary>[] = [
  { id: 'state', title: 'State', width: '98px', isFixed: true, cell: ({ status }) => <JobState status={status} /> },
  {
    id: 'id',
    title: 'Job',
    width: '136px',
    isExtra: true,
    cell: ({ id }) => (
      <a href={jobHref(id)} class="mono" title={id}>
        {shortJobId(id)}
      </a>
    ),
  },
  { id: 'created', title: 'Age', width: '84px', cell: ({ createdAt }) => <Ago at={createdAt} /> },
  {
    id: 'waited',
    title: 'Waited',
    width: '88px',
    align: 'end',
    isExtra: true,
    cell: row => (row.status === 'IN_QUEUE' ? <Since atMs={row.createdAt} /> : duration(row.delayTime)),
  },
  {
    id: 'took',
    title: 'Took',
    width: '88px',
    align: 'end',
    isExtra: true,
    cell: ({ status, startedAt, executionTime }) => {
      if (startedAt === null) return <span class="faint">–</span>
      return status === 'IN_PROGRESS' ? <Since atMs={startedAt} /> : duration(executionTime)
    },
  },
  {
    id: 'worker',
    title: 'Worker',
    width: '116px',
    isExtra: true,
    cell: ({ workerId }) =>
      workerId ? (
        <span class="mono" title={workerId}>
          {workerId}
        </span>
      ) : (
        <span class="faint">–</span>
      ),
  },
  {
    id: 'attempts',
    title: 'Attempts',
    width: '70px',
    align: 'end',
    isExtra: true,
    cell: ({ attempts, retries }) => (
      <span title={retries > 0 ? `${plural(retries, 'attempt')} lost with a worker` : undefined}>
        {retries > 0 ? `${attempts}, lost ${retries}` : attempts}
      </span>
    ),
  },
  {
    id: 'error',
    title: 'Error',
    width: 'minmax(120px, 1fr)',
    cell: ({ error }) => (error === null ? '' : <span title={error.slice(0, 500)}>{firstLine(error)}</span>),
  },
]
