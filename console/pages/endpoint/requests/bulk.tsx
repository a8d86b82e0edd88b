/**
 * Actions on many jobs: the ticked ones, or all that match the filter. Each shows the number of jobs before it acts.
 */

import { type ComponentChildren, Fragment } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { api, errorSentence } from '../../../client/api.ts'
import type { JobStatus, JobSummary } from '../../../client/api-types.d.ts'
import { count, dateTime, plural } from '../../../format.ts'
import { announce } from '../../../parts/announce.tsx'
import { Button } from '../../../parts/basic.tsx'
import { Confirm, Dialog } from '../../../parts/dialog.tsx'
import { serverNow } from '../../../server-clock.ts'
import { actionQuery, isFiltered, type JobFilter, type JobQuery, STATUSES_OF } from './job-filter.ts'
import { STATE_WORDS } from './job-parts.tsx'

type Action = keyof typeof STATUSES_OF

const VERBS = { cancel: ['Cancel', 'Cancelled'], retry: ['Retry', 'Retried'] } as const

type Open = { readonly of: 'ticked' | 'all'; readonly action: Action } | 'purge' | null

/** The row of actions above the list. */
export function Bulk({
  endpointId,
  filter,
  ticked,
  onDone,
}: {
  readonly endpointId: string
  readonly filter: JobFilter
  readonly ticked: readonly JobSummary[]
  readonly onDone: () => void
}) {
  const [open, setOpen] = useState<Open>(null)
  const close = () => setOpen(null)
  const matching = isFiltered(filter) ? ' that match' : ''
  const may = (action: Action) => actionQuery(filter, action, 0) !== null
  return (
    <div class="actions">
      {ticked.length > 0 ? (
        <>
          <b>{count(ticked.length)} ticked</b>
          <TickedButton action="retry" ticked={ticked} onPress={() => setOpen({ of: 'ticked', action: 'retry' })} />
          <TickedButton action="cancel" ticked={ticked} onPress={() => setOpen({ of: 'ticked', action: 'cancel' })} />
          <Button kind="quiet" onPress={onDone}>
            Untick
          </Button>
        </>
      ) : (
        <>
          {may('retry') ? (
            <Button onPress={() => setOpen({ of: 'all', action: 'retry' })}>Retry all failed{matching}…</Button>
          ) : null}
          {may('cancel') ? (
            <Button onPress={() => setOpen({ of: 'all', action: 'cancel' })}>Cancel all unfinished{matching}…</Button>
          ) : null}
          <Button onPress={() => setOpen('purge')}>Purge the queue…</Button>
        </>
      )}
      {open === 'purge' ? <Purge endpointId={endpointId} onClose={close} /> : null}
      {open !== null && open !== 'purge' && open.of === 'all' ? (
        <ManyDialog endpointId={endpointId} filter={filter} action={open.action} onClose={close} />
      ) : null}
      {open !== null && open !== 'purge' && open.of === 'ticked' ? (
        <TickedDialog
          endpointId={endpointId}
          ids={changeable(ticked, open.action)}
          action={open.action}
          onClose={hasActed => {
            close()
            if (hasActed) onDone()
          }}
        />
      ) : null}
    </div>
  )
}

function changeable(jobs: readonly JobSummary[], action: Action): readonly string[] {
  const statuses: readonly string[] = STATUSES_OF[action]
  return jobs.filter(({ status }) => statuses.includes(status)).map(({ id }) => id)
}

function TickedButton({
  action,
  ticked,
  onPress,
}: {
  readonly action: Action
  readonly ticked: readonly JobSummary[]
  readonly onPress: () => void
}) {
  const number = changeable(ticked, action).length
  if (number === 0) return null
  return (
    <Button onPress={onPress}>
      {VERBS[action][0]} {plural(number, action === 'retry' ? 'failed job' : 'unfinished job')}…
    </Button>
  )
}

/** Result of an action: the number of changed jobs, and the reasons why others stayed unchanged. */
interface Done {
  readonly changed: number
  readonly problem: string | null
}

type Act = (onProgress: (changed: number) => void, stopped: AbortSignal) => Promise<Done>

const MEANING: Readonly<Record<Action, string>> = {
  cancel: 'Waiting jobs leave the queue; running jobs are stopped. Jobs that end in the meantime do not change.',
  retry:
    'They go to the end of the queue with their inputs and a new count of attempts. Jobs whose result was deleted are not retried.',
}

/** Asks with the number of jobs, acts, and reports the result. Closing it stops an action in progress. */
function ActDialog({
  action,
  number,
  isLeast = false,
  act,
  onClose,
  children,
}: {
  readonly action: Action
  /** Number of jobs that would be changed; null until they are counted. */
  readonly number: number | null
  /** True if more jobs may match. */
  readonly isLeast?: boolean
  readonly act: Act
  /** @param hasActed true if the action was started */
  readonly onClose: (hasActed: boolean) => void
  readonly children?: ComponentChildren
}) {
  const [changed, setChanged] = useState<number | null>(null)
  const [stopped] = useState(() => new AbortController())
  useEffect(() => () => stopped.abort(), [])
  const [verb, past] = VERBS[action]
  const run = async () => {
    setChanged(0)
    const result = await act(setChanged, stopped.signal)
    const summary = `${past} ${plural(result.changed, 'job')}`
    if (stopped.signal.aborted) return announce(`${summary}, then stopped`)
    if (result.problem === null) announce(summary)
    else announce(`${summary}. Not all: ${result.problem}`, 'problem')
    onClose(true)
  }
  const title = `${verb} ${isLeast ? 'more than ' : ''}${plural(number ?? 0, 'job')}`
  const close = () => onClose(changed !== null)
  return (
    <Dialog
      title={number === null ? 'Counting the jobs…' : `${title}?`}
      onClose={close}
      actions={
        <>
          <Button onPress={close}>{changed === null ? 'Keep' : 'Stop'}</Button>
          {number === null || number === 0 ? null : (
            <Button kind={action === 'cancel' ? 'danger' : 'main'} onPress={run}>
              {title}
            </Button>
          )}
        </>
      }
    >
      <p>{number === 0 ? 'No job matches.' : MEANING[action]}</p>
      {children}
      {changed === null ? null : (
        <p role="status">
          {past} {plural(changed, 'job')} so far
        </p>
      )}
    </Dialog>
  )
}

/** Limit of parallel calls for ticked jobs, each of which is a call of its own. */
const CALLS_AT_ONCE = 4

function TickedDialog({
  endpointId: endpoint,
  ids,
  action,
  onClose,
}: {
  readonly endpointId: string
  readonly ids: readonly string[]
  readonly action: Action
  readonly onClose: (hasActed: boolean) => void
}) {
  // Jobs that move while the dialog is open do not change the selection.
  const [jobIds] = useState(ids)
  const act: Act = async (onProgress, stopped) => {
    const remainingIds = [...jobIds]
    let changed = 0
    let problem: string | null = null
    const work = async () => {
      for (let job = remainingIds.shift(); job !== undefined && !stopped.aborted; job = remainingIds.shift()) {
        try {
          await api(`POST /v2/{endpoint}/${action}/{job}`, { path: { endpoint, job } })
          changed += 1
          onProgress(changed)
        } catch (error) {
          problem ??= errorSentence(error)
        }
      }
    }
    await Promise.all(Array.from({ length: CALLS_AT_ONCE }, work))
    return { changed, problem }
  }
  return <ActDialog action={action} number={jobIds.length} act={act} onClose={onClose} />
}

/** Limit of calls that count the affected jobs, each up to 1,000. */
const MAX_COUNTS = 50

function ManyDialog({
  endpointId: endpoint,
  filter,
  action,
  onClose,
}: {
  readonly endpointId: string
  readonly filter: JobFilter
  readonly action: Action
  readonly onClose: () => void
}) {
  // A span ends at the opening of the dialog, so that the same jobs are counted and changed.
  const [jobQuery] = useState(() => actionQuery(filter, action, serverNow())!)
  const [matched, setMatched] = useState<number | null>(null)
  const [isLeast, setLeast] = useState(false)
  const step = (cursor: string | null, dryRun: boolean, signal: AbortSignal) =>
    api(`POST /v2/{endpoint}/requests/${action}`, {
      path: { endpoint },
      body: { ...jobQuery, dryRun, ...(cursor === null ? {} : { cursor }) },
      signal,
    })
  useEffect(() => {
    const end = new AbortController()
    const read = async () => {
      let sum = 0
      let cursor: string | null = null
      for (let call = 0; call < MAX_COUNTS; call += 1) {
        const page = await step(cursor, true, end.signal)
        sum += page.matched
        cursor = page.nextCursor
        if (cursor === null) break
      }
      setMatched(sum)
      setLeast(cursor !== null)
    }
    read().catch((error: unknown) => {
      if (end.signal.aborted) return
      announce(errorSentence(error), 'problem')
      onClose()
    })
    return () => end.abort()
  }, [])
  const act: Act = async (onProgress, stopped) => {
    let changed = 0
    let cursor: string | null = null
    try {
      do {
        const page = await step(cursor, false, stopped)
        changed += page.changed
        cursor = page.nextCursor
        onProgress(changed)
      } while (cursor !== null)
      return { changed, problem: null }
    } catch (error) {
      return { changed, problem: errorSentence(error) }
    }
  }
  return (
    <ActDialog action={action} number={matched} isLeast={isLeast} act={act} onClose={onClose}>
      <Selection jobQuery={jobQuery} />
    </ActDialog>
  )
}

const LABELS: Readonly<Record<keyof JobQuery, string>> = {
  status: 'States',
  worker: 'Worker',
  error: 'Error has',
  fingerprint: 'Cause of error',
  from: 'Created from',
  to: 'Created before',
}

/** The selected jobs, in words. */
function Selection({ jobQuery }: { readonly jobQuery: JobQuery }) {
  const valueText = (name: string, value: string) => {
    if (name === 'from' || name === 'to') return dateTime(value)
    return name === 'status'
      ? value
          .split(',')
          .map(one => STATE_WORDS[one as JobStatus][0])
          .join(', ')
      : value
  }
  return (
    <dl class="facts">
      {Object.entries(jobQuery).map(([name, value]) => (
        <Fragment key={name}>
          <dt>{LABELS[name as keyof JobQuery]}</dt>
          <dd>{valueText(name, value as string)}</dd>
        </Fragment>
      ))}
    </dl>
  )
}

function Purge({ endpointId: endpoint, onClose }: { readonly endpointId: string; readonly onClose: () => void }) {
  const [waiting, setWaiting] = useState<number | null>(null)
  useEffect(() => {
    api('GET /v2/{endpoint}/health', { path: { endpoint } })
      .then(({ jobs }) => setWaiting(jobs.inQueue))
      .catch((error: unknown) => announce(errorSentence(error), 'problem'))
  }, [])
  return (
    <Confirm
      title="Purge the queue?"
      action={waiting === null ? 'Purge the queue' : `Cancel ${plural(waiting, 'waiting job')}`}
      onConfirm={async () => {
        const { removed } = await api('POST /v2/{endpoint}/purge-queue', { path: { endpoint } })
        announce(`Cancelled ${plural(removed, 'waiting job')}`)
      }}
      onClose={onClose}
    >
      <p aria-live="polite">
        {waiting === null
          ? 'Counting the waiting jobs…'
          : `${plural(waiting, 'job')} of this endpoint wait${waiting === 1 ? 's' : ''}.`}
      </p>
      <p>
        All of them are cancelled, those of batches too, without regard to the filter of the list. Running jobs
        continue.
      </p>
    </Confirm>
  )
}
