/** The output of the workers of an endpoint, live. */

import { useEffect, useMemo, useState } from 'preact/hooks'
import { api, send } from '../../../client/api.ts'
import type { Endpoint } from '../../../client/api-types.d.ts'
import { useResource } from '../../../client/resource.ts'
import { workerTopic } from '../../../client/topics.ts'
import { count, plural } from '../../../format.ts'
import { Button } from '../../../parts/basic.tsx'
import { Dialog } from '../../../parts/dialog.tsx'
import { useNarrow } from '../../../parts/table.tsx'
import { setQuery } from '../../../router.ts'
import { now, serverNow } from '../../../server-clock.ts'
import type { LogLine } from './log-line.ts'
import { LogList } from './log-list.tsx'
import { LogSession } from './log-session.ts'
import type { StreamParts } from './log-stream.ts'
import { BEGINNINGS, type LogChoice, LogFilters, LogSearch, logChoice, PauseButton } from './log-tools.tsx'

/** Limit of workers in the choice of workers. */
const MAX_WORKERS = 200

/** The log of an endpoint, or of one of its workers. */
export function Logs({ endpoint: { id } }: { readonly endpoint: Endpoint }) {
  const choice = logChoice()
  const { worker, job, from } = choice
  const session = useMemo(() => new LogSession(streamParts(id, choice), choice.filter), [id, worker, job, from])
  useEffect(() => () => session.close(), [session])
  // The address has the filter; an unchanged one is not applied again.
  const { level, kind, search, onlyMatches, context } = choice.filter
  const filterKey = JSON.stringify([level, kind, search?.source, onlyMatches, context])
  useEffect(() => session.filter(choice.filter), [session, filterKey])
  const isNarrow = useNarrow()
  const [wraps, setWraps] = useState<boolean | null>(null)
  const isWrapped = wraps ?? isNarrow
  const [isColored, setColored] = useState(true)
  const [current, setCurrent] = useState<number | null>(null)
  const [whole, setWhole] = useState<LogLine | null>(null)
  useEffect(() => setCurrent(null), [session, search?.source])
  const workers = useResource(
    `log workers ${id}`,
    signal => api('GET /v2/serverless/{id}/workers', { path: { id }, query: { ended: 'true' }, signal }),
    { on: workerTopic(id) },
  )
  const goTo = (number: number) => {
    session.pause()
    setCurrent(number)
    session.target.value = number
  }
  const step = (by: 1 | -1) => {
    const { view } = session
    const index = view.matchFrom(current ?? session.top + (by === 1 ? -1 : 1), by)
    if (index !== null) goTo(view.matchAt(index)!)
  }
  const around = (number: number) => {
    setQuery({ only: null, level: null, source: null })
    goTo(number)
  }
  return (
    <>
      <LogSearch choice={choice} session={session} current={current} onStep={step} />
      <LogFilters
        choice={choice}
        workers={[...(workers.data?.workers ?? []), ...(workers.data?.ended ?? [])].slice(0, MAX_WORKERS)}
        isWrapped={isWrapped}
        isColored={isColored}
        onWrap={() => {
          if (session.unseen.value !== null) session.target.value = session.top
          setWraps(!isWrapped)
        }}
        onColor={() => setColored(!isColored)}
      />
      <div class="log-box">
        <LogList
          session={session}
          look={{
            search,
            current,
            isColored,
            isWrapped,
            hasWorkers: worker === null && !isNarrow,
            onAround: onlyMatches || level !== null || kind !== null ? around : undefined,
            onWhole: setWhole,
          }}
        />
        <Foot session={session} name={job ?? worker ?? id} />
      </div>
      {whole === null ? null : (
        <Dialog title="The whole line" kind="drawer" onClose={() => setWhole(null)}>
          <pre class="log-whole">{whole.text}</pre>
        </Dialog>
      )}
    </>
  )
}

/** The state of the stream, the number of lines, and the actions on them. */
function Foot({ session, name }: { readonly session: LogSession; readonly name: string }) {
  void session.changes.value
  const { buffer, view } = session
  const lineCount = buffer.end - buffer.first
  const save = (selection: 'shown' | 'all') => {
    const parts: string[] = []
    for (const { atMs, workerId, kind, raw } of session.lines(selection))
      parts.push(`${new Date(atMs).toISOString()} ${workerId ?? '-'} ${kind} ${raw}\n`)
    const link = document.createElement('a')
    link.href = URL.createObjectURL(new Blob(parts, { type: 'text/plain' }))
    link.download = `${name}.log`
    link.click()
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
  }
  return (
    <div class="log-foot">
      <span>
        <StreamSign session={session} /> · {plural(lineCount, 'line')}
        {view.count === lineCount ? '' : `, ${count(view.count)} shown`}
        {buffer.first === 0 ? '' : `; ${plural(buffer.first, 'older line')} removed from this page`}
      </span>
      <span class="actions">
        <Button onPress={() => save('shown')}>Download shown</Button>
        <Button onPress={() => save('all')}>Download all</Button>
        <PauseButton session={session} />
      </span>
    </div>
  )
}

function StreamSign({ session }: { readonly session: LogSession }) {
  const stream = session.stream.value
  switch (stream.is) {
    case 'opening':
      return <span>○ Opening…</span>
    case 'open':
      return <span>{session.unseen.value === null ? '● Following' : '◆ Paused'}</span>
    case 'held':
      return <span>◆ Paused; new lines wait on the server</span>
    case 'lost':
      return (
        <span class="bad-text" role="status">
          ✕ No connection; next try in {Math.max(0, Math.ceil((stream.retryAtMs - now.value) / 1_000))} s
        </span>
      )
    case 'ended':
      return <span role="status">○ {stream.why}</span>
    case 'failed':
      return (
        <span class="bad-text" role="alert">
          ✕ {stream.why}
        </span>
      )
  }
}

/** The stream of an endpoint, of one of its workers, or of the output for a job. */
function streamParts(id: string, { worker, job, from }: LogChoice): Pick<StreamParts, 'open' | 'endText'> {
  const { tail, minutes } = BEGINNINGS[from]!
  return {
    endText: job !== null ? 'The job has ended' : worker !== null ? 'The worker has ended' : 'The endpoint was deleted',
    open: (lastEventId, signal) => {
      // An instant as the last event selects every line since then, without a limit on their number.
      const after =
        lastEventId ?? (minutes === undefined ? null : new Date(serverNow() - minutes * 60_000).toISOString())
      return send('GET /v2/serverless/{id}/logs', {
        path: { id },
        query: {
          ...(job !== null ? { job } : worker !== null ? { worker } : {}),
          ...(tail === undefined ? {} : { tail }),
        },
        ...(after === null ? {} : { headers: { 'last-event-id': after } }),
        signal,
      })
    },
  }
}
