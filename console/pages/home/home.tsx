/** The first page: problems first, then work in progress. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { api } from '../../client/api.ts'
import type { Diagnosis, EndpointOverview, Finding } from '../../client/api-types.d.ts'
import { useOverview } from '../../client/overview.ts'
import { useResource } from '../../client/resource.ts'
import { mayManage, mayOperate, mayUseJobs, who } from '../../client/session.ts'
import { changeTopic } from '../../client/topics.ts'
import { count, duration, instant, percent, plural } from '../../format.ts'
import { Ago, Button, Code, Figure, Loaded, PageHead, Section, State } from '../../parts/basic.tsx'
import { causeTitle, causeTone, errorLine, sentence } from '../../parts/cause.ts'
import { Spark } from '../../parts/spark.tsx'
import { Table } from '../../parts/table.tsx'
import { fixReports, MainAction, Next, useExplanation, WhyPanel } from '../../parts/why.tsx'
import { now } from '../../server-clock.ts'
import { MostFrequentError } from '../endpoint/overview/failures.tsx'
import { failingSentence, shownState } from '../endpoints/endpoint-states.ts'
import { WorkerDots } from '../endpoints/worker-dots.tsx'
import { findAttention, type KeyFacts, mostActive, soonEnding, sumTotals } from './attention.ts'

/** The first page. */
export function Home() {
  return (
    <>
      <PageHead title="Home" />
      {mayManage('read') ? <Account /> : <JobsAlone />}
    </>
  )
}

/** The first page for a key that has rights on jobs only. */
function JobsAlone() {
  const scope = who.value?.scope
  const endpointIds = scope?.type === 'restricted' && typeof scope.jobs === 'object' ? Object.keys(scope.jobs) : []
  return (
    <Section title="Endpoints of this key">
      {endpointIds.length === 0 ? (
        <p>This key may not list endpoints. Open one by its address: /endpoints/ and its id.</p>
      ) : (
        <ul>
          {endpointIds.map(id => (
            <li key={id}>
              <a href={`/endpoints/${id}`}>{id}</a>
            </li>
          ))}
        </ul>
      )}
    </Section>
  )
}

function Account() {
  return (
    <Loaded of={useOverview()}>
      {endpoints => (
        <>
          {endpoints.length === 0 ? <FirstSteps /> : <Totals rows={endpoints} />}
          <Attention rows={endpoints} />
          {endpoints.length === 0 ? null : <Active rows={endpoints} />}
        </>
      )}
    </Loaded>
  )
}

function FirstSteps() {
  return (
    <Section title="Your first endpoint">
      <p>An endpoint runs your handler for each job, on workers that start when jobs arrive.</p>
      {mayManage('write') ? (
        <p>
          <a class="button main" href="/endpoints/new">
            New endpoint
          </a>
        </p>
      ) : null}
      <p>Or start the server with the folder of a handler, and it is an endpoint:</p>
      <Code text="runyard serve --worker ./folder" />
    </Section>
  )
}

function Totals({ rows }: { readonly rows: readonly EndpointOverview[] }) {
  const { inQueue, inProgress, workers, perMinute } = sumTotals(rows)
  return (
    <div class="figures">
      <Figure name="Endpoints">{count(rows.length)}</Figure>
      <Figure name="Waiting">{count(inQueue)}</Figure>
      <Figure name="In progress">{count(inProgress)}</Figure>
      <Figure name="Workers">{count(workers)}</Figure>
      <Figure name="Requests a minute">{count(perMinute)}</Figure>
    </div>
  )
}

/** Limit of rows whose explanation is read at once for their button; the others read it when they are opened. */
const MAX_READ = 8
const MAX_SHOWN = 50

function Attention({ rows }: { readonly rows: readonly EndpointOverview[] }) {
  const rowsToShow = findAttention(rows, now.value, id => fixReports.value[id] !== undefined)
  const otherLists = [useEndingKeys(), useFindings()]
  // The server explains the most urgent ones only.
  const unexplained = rows.filter(({ state, why }) => why === null && (state === 'PROBLEM' || state === 'WAITING'))
  const hiddenCount = Math.max(0, rowsToShow.length - MAX_SHOWN) + unexplained.length
  const isQuiet = rowsToShow.length === 0 && otherLists.every(list => list.length === 0)
  return (
    <Section title={isQuiet ? 'Nothing needs attention' : 'Needs attention'}>
      {isQuiet ? (
        <p class="faint">Problems, jobs that wait too long, and keys that expire soon appear here.</p>
      ) : (
        <ul class="attention">
          {rowsToShow.slice(0, MAX_SHOWN).map((row, index) => (
            <TroubledEndpoint key={row.id} row={row} isRead={index < MAX_READ} />
          ))}
          {otherLists.flat()}
        </ul>
      )}
      {hiddenCount > 0 ? (
        <p class="hint">
          <a href="/endpoints?show=attention">{plural(hiddenCount, 'more endpoint')}</a>
        </p>
      ) : null}
    </Section>
  )
}

/** An endpoint that waits or has a problem, with the button that fixes it. */
function TroubledEndpoint({ row, isRead }: { readonly row: EndpointOverview; readonly isRead: boolean }) {
  const { id, name, why, jobs } = row
  const [isOpen, setOpen] = useState(false)
  const mayExplain = mayUseJobs('read', id)
  const toggle =
    !mayExplain || why === null ? null : (
      <Button
        onPress={() => setOpen(!isOpen)}
        aria-expanded={isOpen}
        aria-label={`${isOpen ? 'Hide' : 'Show why'}: ${name}`}
      >
        {isOpen ? 'Hide' : 'Show why'}
      </Button>
    )
  return (
    <li>
      <div class="where">
        <a href={`/endpoints/${id}`}>{name}</a>
        {why === null ? null : <State tone={causeTone(why.cause)}>{causeTitle(why.cause)}</State>}
        <span class="faint">
          {jobs.inQueue > 0 ? `${plural(jobs.inQueue, row.type === 'QUEUE' ? 'job' : 'request')} waiting` : ''}
          {why === null || why.sinceMs === null ? null : (
            <>
              {jobs.inQueue > 0 ? ', ' : ''}began <Ago at={why.sinceMs} suffix=" ago" />
            </>
          )}
        </span>
      </div>
      {why === null || isOpen ? null : <p>{sentence(why.summary)}</p>}
      {row.rate.failingShare === null ? null : <FailingRequests row={row} />}
      {mayExplain && (isRead || isOpen) ? (
        <Explained id={id} isOpen={isOpen} toggle={toggle} />
      ) : (
        <div class="acts">{toggle}</div>
      )}
    </li>
  )
}

/** The errors of an endpoint whose requests fail, with the most frequent cause. */
function FailingRequests({ row }: { readonly row: EndpointOverview }) {
  const { id, type } = row
  return (
    <>
      <p>{failingSentence(row)}</p>
      {type === 'QUEUE' && mayUseJobs('read', id) ? <MostFrequentError id={id} /> : null}
    </>
  )
}

function Explained({
  id,
  isOpen,
  toggle,
}: {
  readonly id: string
  readonly isOpen: boolean
  readonly toggle: ComponentChildren
}) {
  const { data } = useExplanation(id)
  const shownError = data === null || isOpen ? null : errorLine(data.evidence)
  return (
    <>
      {shownError === null ? null : (
        <p>
          <code>{shownError}</code>
        </p>
      )}
      <div class="acts">
        {data === null || isOpen ? null : <MainAction id={id} explained={data} />}
        {toggle}
      </div>
      {data !== null && isOpen ? <WhyPanel id={id} explained={data} /> : <Next id={id} />}
    </>
  )
}

/** Keys that expire within days. */
function useEndingKeys() {
  const keys = useResource(
    'keys ending',
    async signal => (await api('GET /v2/account/keys', { signal })).keys as readonly KeyFacts[],
    { on: changeTopic(/[kK]ey/) },
  )
  return soonEnding(keys.data ?? [], now.value).map(({ id, name, expiresAt }) => (
    <li key={id}>
      <div class="where">
        <a href="/keys">Key {name}</a>
        <State tone="wait">ends in {duration(instant(expiresAt!) - now.value)}</State>
      </div>
      <p>The server refuses programs that use it from then on. Create another key for them.</p>
    </li>
  ))
}

/** Problems of the machine, for operators: each failure, and the names of warnings. */
function useFindings() {
  const { data, error } = useResource<Diagnosis>(mayOperate() ? 'diagnosis' : null, signal =>
    api('GET /v2/machine/diagnosis', { signal }),
  )
  const unread: Finding = { check: 'diagnosis', state: 'fail', message: error?.message ?? '', action: null }
  const findings = error === null ? (data?.findings ?? []) : [unread]
  const warned = findings.filter(({ state }) => state === 'warn')
  const failures = findings.filter(({ state }) => state === 'fail')
  return [
    ...failures.map(({ check, message, action }) => (
      <li key={`${check} ${message}`}>
        <div class="where">
          <a href="/machine">Machine: {check}</a>
          <State tone="bad">wrong</State>
        </div>
        <p>
          {message}
          {action === null ? null : (
            <>
              <br />
              <b>Next step:</b> {action}
            </>
          )}
        </p>
      </li>
    )),
    ...(warned.length === 0
      ? []
      : [
          <li key="warned" class="where">
            <a href="/machine">Machine</a>
            <State tone="wait">{plural(warned.length, 'warning')}</State>
            <span class="faint">{[...new Set(warned.map(({ check }) => check))].join(', ')}</span>
            {warned.length > 1 ? null : <p>{warned[0]!.message}</p>}
          </li>,
        ]),
  ]
}

function Active({ rows }: { readonly rows: readonly EndpointOverview[] }) {
  return (
    <Section title="Most active" actions={<a href="/endpoints">All {plural(rows.length, 'endpoint')}</a>}>
      <Table
        label="Most active endpoints"
        rows={mostActive(rows)}
        rowKey={({ id }) => id}
        href={({ id }) => `/endpoints/${id}`}
        empty={null}
        height="content"
        columns={[
          {
            id: 'name',
            title: 'Endpoint',
            width: 'minmax(120px, 1fr)',
            cell: ({ id, name }) => <a href={`/endpoints/${id}`}>{name}</a>,
          },
          {
            id: 'state',
            title: 'State',
            width: '130px',
            isFixed: true,
            cell: row => <State tone={shownState(row).tone}>{shownState(row).title}</State>,
          },
          {
            id: 'jobs',
            title: 'Waiting',
            width: '64px',
            align: 'end',
            isExtra: true,
            cell: ({ jobs }) => count(jobs.inQueue),
          },
          {
            id: 'workers',
            title: 'Workers',
            width: '90px',
            isExtra: true,
            cell: ({ workers, workersMax }) => <WorkerDots workers={workers} max={workersMax} />,
          },
          {
            id: 'errors',
            title: 'Errors',
            width: '60px',
            align: 'end',
            cell: ({ rate }) => percent(rate.errorShare),
          },
          {
            id: 'rate',
            title: 'Last hour',
            width: '156px',
            align: 'end',
            isExtra: true,
            cell: ({ rate, name }) => (
              <span class="rate">
                {count(Math.round(rate.perMinute))}/min
                <Spark width={72} points={rate.points} label={`Requests of ${name} in the last hour`} />
              </span>
            ),
          },
        ]}
      />
    </Section>
  )
}
