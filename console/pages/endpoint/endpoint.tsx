/** One endpoint: its figures, and tabs that have addresses of their own. */
import type { ComponentType } from 'preact'
import { useState } from 'preact/hooks'
import { api } from '../../client/api.ts'
import type { Endpoint } from '../../client/api-types.d.ts'
import { useResource } from '../../client/resource.ts'
import { mayManage, mayUseJobs } from '../../client/session.ts'
import { endpointTopic } from '../../client/topics.ts'
import { count, plural } from '../../format.ts'
import { announce } from '../../parts/announce.tsx'
import { Button, Figure, Loaded, PageHead, Tabs } from '../../parts/basic.tsx'
import { Confirm } from '../../parts/dialog.tsx'
import { later } from '../../parts/later.tsx'
import { Overview } from './overview/overview.tsx'

const Logs = later(() => import('../work-pages.ts').then(pages => pages.Logs))
const Metrics = later(() => import('../chart-pages.ts').then(pages => pages.Metrics))
const Releases = later(() => import('../account-pages.ts').then(pages => pages.Releases))
const Requests = later(() => import('../work-pages.ts').then(pages => pages.Requests))
const Settings = later(() => import('../account-pages.ts').then(pages => pages.Settings))
const Workers = later(() => import('../work-pages.ts').then(pages => pages.Workers))

/** Properties of a tab. */
export interface TabProps {
  readonly endpoint: Endpoint
}

const TABS: readonly { readonly id: string; readonly title: string; readonly tab: ComponentType<TabProps> }[] = [
  { id: 'overview', title: 'Overview', tab: Overview },
  { id: 'requests', title: 'Requests', tab: Requests },
  { id: 'metrics', title: 'Metrics', tab: Metrics },
  { id: 'logs', title: 'Logs', tab: Logs },
  { id: 'workers', title: 'Workers', tab: Workers },
  { id: 'releases', title: 'Releases', tab: Releases },
  { id: 'settings', title: 'Settings', tab: Settings },
]

/** The page of an endpoint. */
export function EndpointPage({ id, tab = 'overview' }: { readonly id: string; readonly tab?: string }) {
  const endpoint = useResource(
    mayManage('read') ? `endpoint ${id}` : null,
    signal => api('GET /v2/serverless/{id}', { path: { id }, signal }),
    { on: event => event.endpointId === id && event.type.startsWith('endpoint.') },
  )
  const shownTab = TABS.find(one => one.id === tab)
  if (shownTab === undefined) return <PageHead title="This tab does not exist" />
  if (!mayManage('read')) return <JobsAlone id={id} />
  return (
    <>
      <PageHead
        title={endpoint.data?.name ?? id}
        above={
          <p class="faint">
            <a href="/endpoints">Endpoints</a> / <code>{id}</code>
          </p>
        }
      >
        <Figures id={id} />
        {endpoint.data !== null && mayManage('write') ? <Actions of={endpoint.data} /> : null}
      </PageHead>
      <Tabs
        label="Endpoint"
        tabs={TABS.map(one => ({
          path: one.id === 'overview' ? `/endpoints/${id}` : `/endpoints/${id}/${one.id}`,
          title: one.title,
        }))}
      />
      <Loaded of={endpoint}>{data => <shownTab.tab key={id} endpoint={data} />}</Loaded>
    </>
  )
}

function Actions({ of }: { readonly of: Endpoint }) {
  const [isAsked, setAsked] = useState(false)
  const { id, name, type, workers, pausedFrom } = of
  const isPaused = workers.max === 0
  const saveWorkers = (range: { readonly min: number; readonly max: number }) =>
    api('PATCH /v2/serverless/{id}', { path: { id }, body: { workers: range } })
  const resume = async () => {
    const range = pausedFrom ?? { min: 0, max: 1 }
    await saveWorkers(range)
    announce(`${name} may have ${plural(range.max, 'worker')} again`)
  }
  return (
    <>
      <a class="button" href={`/endpoints/new?from=${encodeURIComponent(id)}`}>
        Duplicate
      </a>
      <Button onPress={isPaused ? resume : () => setAsked(true)}>
        {isPaused ? 'Resume endpoint' : 'Pause endpoint'}
      </Button>
      {isAsked ? (
        <Confirm
          title={`Pause ${name}?`}
          action="Pause the endpoint"
          onConfirm={() => saveWorkers({ min: 0, max: 0 })}
          onClose={() => setAsked(false)}
        >
          <p>
            Its workers finish what they do and end. New{' '}
            {type === 'QUEUE' ? 'jobs are accepted and wait' : 'requests are refused'}; “Resume endpoint” allows{' '}
            {plural(workers.max, 'worker')} again.
          </p>
        </Confirm>
      ) : null}
    </>
  )
}

/** The endpoint for a key that has rights on its jobs only. */
function JobsAlone({ id }: { readonly id: string }) {
  // The fields that such a key can read.
  const endpoint = { id, name: id, type: 'QUEUE' } as Endpoint
  return (
    <>
      <PageHead title={id}>{mayUseJobs('read', id) ? <Figures id={id} /> : null}</PageHead>
      <Requests endpoint={endpoint} />
    </>
  )
}

function Figures({ id }: { readonly id: string }) {
  const health = useResource(
    `health ${id}`,
    signal => api('GET /v2/{endpoint}/health', { path: { endpoint: id }, signal }),
    {
      on: endpointTopic(id),
      everyMs: 10_000,
    },
  )
  if (health.data === null) return null
  const { jobs, workers } = health.data as unknown as Health
  return (
    <div class="figures" aria-live="polite">
      <Figure name="In queue">{count(jobs.inQueue)}</Figure>
      <Figure name="In progress">{count(jobs.inProgress)}</Figure>
      <Figure name="Completed">{count(jobs.completed)}</Figure>
      <Figure name="Failed">{count(jobs.failed)}</Figure>
      <Figure name="Workers running">{count(workers.running)}</Figure>
      <Figure name="Idle">{count(workers.idle)}</Figure>
      <Figure name="Starting">{count(workers.initializing)}</Figure>
      {workers.unhealthy > 0 ? <Figure name="Unhealthy">{count(workers.unhealthy)}</Figure> : null}
      {workers.throttled > 0 ? <Figure name="Waiting for a place">{count(workers.throttled)}</Figure> : null}
    </div>
  )
}

interface Health {
  readonly jobs: Readonly<Record<'inQueue' | 'inProgress' | 'completed' | 'failed', number>>
  readonly workers: Readonly<Record<'running' | 'idle' | 'initializing' | 'unhealthy' | 'throttled', number>>
}
