/** Actions on many jobs: those that are ticked, or all that match the filter. Each says how many before it does anything. */
import { Fragment } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { api, sentenceOf } from '../../../client/api.ts'
import type { JobStatus, JobSummary } from '../../../client/api-types.d.ts'
import { count, dateTime, plural } from '../../../format.ts'
import { announce } from '../../../parts/announce.tsx'
import { Button } from '../../../parts/basic.tsx'
import { Confirm, Dialog } from '../../../parts/dialog.tsx'
import { type AskedJobs, askedForAction, isFiltered, type JobFilter, STATUSES_OF } from './job-filter.ts'
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
  const may = (action: Action) => askedForAction(filter, action, 0) !== null
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
          onClose={() => {
            close()
            onDone()
          }}
          onKeep={close}
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

/** Calls at once for ticked jobs, each of which is a call of its own. */
const CALLS_AT_ONCE = 4

/** Runs an action for each id. Returns how many were changed, and the first reason why one was not. */
async function forEach(
  ids: readonly string[],
  act: (id: string) => Promise<unknown>,
  onProgress: (done: number) => void,
  stopped: AbortSignal,
): Promise<{ readonly changed: number; readonly problem: string | null }> {
  const left = [...ids]
  let changed = 0
  let problem: string | null = null
  const work = async () => {
    for (let id = left.shift(); id !== undefined && !stopped.aborted; id = left.shift()) {
      try {
        await act(id)
        changed += 1
      } catch (error) {
        problem ??= sentenceOf(error)
      }
      onProgress(ids.length - left.length)
    }
  }
  await Promise.all(Array.from({ length: CALLS_AT_ONCE }, work))
  return { changed, problem }
}

function TickedDialog({
  endpointId: endpoint,
  ids,
  action,
  onClose,
  onKeep,
}: {
  readonly endpointId: string
  readonly ids: readonly string[]
  readonly action: Action
  readonly onClose: () => void
  readonly onKeep: () => void
}) {
  // Jobs that move while the dialog is open do not change what was asked.
  const [asked] = useState(ids)
  const [done, setDone] = useState(0)
  const [stopped] = useState(() => new AbortController())
  useEffect(() => () => stopped.abort(), [])
  const [verb, past] = VERBS[action]
  const act = async () => {
    const { changed, problem } = await forEach(
      asked,
      job => api(`POST /v2/{endpoint}/${action}/{job}`, { path: { endpoint, job } }),
      setDone,
      stopped.signal,
    )
    if (stopped.signal.aborted) return announce(`${past} ${plural(changed, 'job')}, then stopped`)
    if (problem === null) announce(`${past} ${plural(changed, 'job')}`)
    else announce(`${past} ${count(changed)} of ${plural(asked.length, 'job')}: ${problem}`, 'problem')
    onClose()
  }
  const title = `${verb} ${plural(asked.length, 'job')}`
  return (
    <Dialog
      title={`${title}?`}
      onClose={onKeep}
      actions={
        <>
          <Button onPress={onKeep}>{done === 0 ? 'Keep' : 'Stop'}</Button>
          <Button kind={action === 'cancel' ? 'danger' : 'main'} onPress={act}>
            {title}
          </Button>
        </>
      }
    >
      <p>{MEANING[action]}</p>
      {done > 0 ? <p role="status">{count(done)} done</p> : null}
    </Dialog>
  )
}

const MEANING: Readonly<Record<Action, string>> = {
  cancel:
    'Jobs that wait are taken out of the queue; those that run are stopped. Jobs that end meanwhile stay as they are.',
  retry:
    'They go to the end of the queue with their inputs, and with fresh attempts. Jobs whose result is gone are not retried.',
}

/** Calls that count what an action would change, each up to 1,000 jobs. */
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
  // A span ends when the dialog was opened, so that what is counted is what is changed.
  const [asked] = useState(() => askedForAction(filter, action, Date.now())!)
  const [counted, setCounted] = useState<{ readonly matched: number; readonly isAll: boolean } | null>(null)
  const [done, setDone] = useState<number | null>(null)
  const [problem, setProblem] = useState<string | null>(null)
  const [ended] = useState(() => new AbortController())
  const [verb, past] = VERBS[action]
  const step = (cursor: string | null, dryRun: boolean) =>
    api(`POST /v2/{endpoint}/requests/${action}`, {
      path: { endpoint },
      body: { ...asked, dryRun, ...(cursor === null ? {} : { cursor }) },
      signal: ended.signal,
    })
  useEffect(() => {
    const read = async () => {
      let matched = 0
      let cursor: string | null = null
      for (let call = 0; call < MAX_COUNTS; call += 1) {
        const page = await step(cursor, true)
        matched += page.matched
        cursor = page.nextCursor
        setCounted({ matched, isAll: false })
        if (cursor === null) return setCounted({ matched, isAll: true })
      }
    }
    read().catch((error: unknown) => ended.signal.aborted || setProblem(sentenceOf(error)))
    return () => ended.abort()
  }, [])
  const act = async () => {
    setProblem(null)
    let changed = 0
    let cursor: string | null = null
    try {
      do {
        const page = await step(cursor, false)
        changed += page.changed
        cursor = page.nextCursor
        setDone(changed)
      } while (cursor !== null)
      announce(`${past} ${plural(changed, 'job')}`)
      onClose()
    } catch (error) {
      if (ended.signal.aborted) announce(`${past} ${plural(changed, 'job')}, then stopped`)
      else setProblem(sentenceOf(error))
    }
  }
  const number = counted === null ? '' : `${counted.isAll ? '' : 'more than '}${plural(counted.matched, 'job')}`
  return (
    <Dialog
      title={counted === null ? 'Counting the jobs…' : `${verb} ${number}?`}
      onClose={onClose}
      actions={
        <>
          <Button onPress={onClose}>{done === null ? 'Keep' : 'Stop'}</Button>
          {counted === null || counted.matched === 0 ? null : (
            <Button kind={action === 'cancel' ? 'danger' : 'main'} onPress={act}>
              {verb} {number}
            </Button>
          )}
        </>
      }
    >
      <p>{counted?.matched === 0 ? 'There is none.' : MEANING[action]}</p>
      <Asked asked={asked} />
      {done === null ? null : (
        <p role="status">
          {past} {plural(done, 'job')} so far
        </p>
      )}
      {problem === null ? null : (
        <p class="notice bad" role="alert">
          {problem}
        </p>
      )}
    </Dialog>
  )
}

const LABELS: Readonly<Record<keyof AskedJobs, string>> = {
  status: 'States',
  worker: 'Worker',
  error: 'Error has',
  fingerprint: 'Cause of error',
  from: 'Created from',
  to: 'Created before',
}

/** Which jobs are meant. */
function Asked({ asked }: { readonly asked: AskedJobs }) {
  const shown = (name: string, value: string) => {
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
      {Object.entries(asked).map(([name, value]) => (
        <Fragment key={name}>
          <dt>{LABELS[name as keyof AskedJobs]}</dt>
          <dd>{shown(name, value as string)}</dd>
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
      .catch((error: unknown) => announce(sentenceOf(error), 'problem'))
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
          ? 'Counting the jobs that wait…'
          : `${plural(waiting, 'job')} of this endpoint wait${waiting === 1 ? 's' : ''}.`}
      </p>
      <p>All of them become cancelled, those of batches too, whatever the filter of the list. Running jobs go on.</p>
    </Confirm>
  )
}
