/** Webhooks of an endpoint: the deliveries, the failures and their reasons, and the signing key. */
import type { ComponentChildren } from 'preact'
import { api } from '../../client/api.ts'
import { useResource } from '../../client/resource.ts'
import { mayManage } from '../../client/session.ts'
import { jobTopic } from '../../client/topics.ts'
import { clockTime } from '../../format.ts'
import { Ago, Choice, Empty, Loaded, State } from '../../parts/basic.tsx'
import { EndpointPage } from '../../parts/endpoint-choice.tsx'
import { useGrowingList } from '../../parts/more.ts'
import { type Column, Table } from '../../parts/table.tsx'
import { Drawer, Part } from '../../parts/things.tsx'
import { TimeLine } from '../../parts/time-line.tsx'
import { query, setQuery } from '../../router.ts'
import { type Delivery, deliveryState, hasMessage, lastResult, tryResult } from './deliveries.ts'
import { SigningKey } from './signing-key.tsx'

const PURPOSE = 'A webhook calls your URL when a job ends; a request for a job can name one.'
const PAGE = 100

type Filter = 'all' | 'pending' | 'delivered' | 'failed'

/** The page of webhooks. */
export function Webhooks() {
  return (
    <EndpointPage title="Webhooks" purpose={PURPOSE}>
      {(id, chooser) => <List key={id} endpoint={id} chooser={chooser} />}
    </EndpointPage>
  )
}

function List({ endpoint, chooser }: { readonly endpoint: string; readonly chooser: ComponentChildren }) {
  const filter = (query.value.get('state') ?? 'all') as Filter
  const deliveries = useGrowingList<Delivery>(
    `webhooks ${endpoint} ${filter}`,
    async (cursor, signal) => {
      const parameters = {
        limit: PAGE,
        ...(filter === 'all' ? {} : { state: filter }),
        ...(cursor === null ? {} : { cursor }),
      }
      const page = await api('GET /v2/{endpoint}/webhooks', { path: { endpoint }, query: parameters, signal })
      return { rows: page.deliveries, nextCursor: page.pagination.nextCursor }
    },
    ({ id }) => id,
    jobTopic(endpoint),
  )
  const opened = query.value.get('job')
  return (
    <>
      <div class="tools">
        {chooser}
        <Choice<Filter>
          label="State"
          value={filter}
          options={[
            ['all', 'All'],
            ['pending', 'Pending'],
            ['delivered', 'Delivered'],
            ['failed', 'Given up'],
          ]}
          onChange={chosen => setQuery({ state: chosen === 'all' ? null : chosen })}
        />
      </div>
      <Loaded of={deliveries}>
        {rows => (
          <Table
            label="Deliveries"
            rows={rows}
            columns={deliveryColumns(endpoint)}
            rowKey={({ id }) => id}
            onOpen={({ jobId }) => setQuery({ endpoint, job: jobId }, { replace: false })}
            onEnd={deliveries.more}
            empty={
              filter === 'all' ? (
                <Empty title="No deliveries yet">
                  <p>{PURPOSE} Deliveries are stored for a day after the last try.</p>
                </Empty>
              ) : (
                <Empty title="No delivery has this state" />
              )
            }
          />
        )}
      </Loaded>
      {mayManage('write') ? <SigningKey endpoint={endpoint} /> : null}
      {opened === null ? null : <JobDeliveries key={opened} endpoint={endpoint} job={opened} />}
    </>
  )
}

function deliveryColumns(endpoint: string): readonly Column<Delivery>[] {
  return [
    {
      id: 'job',
      title: 'Job',
      cell: ({ jobId }) => <JobLink endpoint={endpoint} job={jobId} />,
    },
    { id: 'end', title: 'Job state', width: '120px', cell: ({ jobStatus }) => jobStatus, isExtra: true },
    {
      id: 'state',
      title: 'Delivery',
      width: '130px',
      cell: delivery => {
        const { tone, word } = deliveryState(delivery)
        return <State tone={tone}>{word}</State>
      },
    },
    {
      id: 'last',
      title: 'Last answer',
      width: 'minmax(0, 1.4fr)',
      cell: delivery => {
        const result = lastResult(delivery)
        return <span title={result}>{result}</span>
      },
      isExtra: true,
    },
    {
      id: 'next',
      title: 'Next try',
      width: '110px',
      cell: ({ nextTryAt }) =>
        nextTryAt === undefined ? (
          <span class="faint">–</span>
        ) : (
          <time dateTime={nextTryAt}>{clockTime(nextTryAt).slice(0, -4)}</time>
        ),
      isExtra: true,
    },
    {
      id: 'made',
      title: 'Made',
      width: '110px',
      cell: ({ createdAt }) => <Ago at={createdAt} suffix=" ago" />,
    },
  ]
}

function JobLink({ endpoint, job }: { readonly endpoint: string; readonly job: string }) {
  const href = job.startsWith('batch-')
    ? `/batches?endpoint=${endpoint}&id=${encodeURIComponent(job)}`
    : `/endpoints/${endpoint}/requests?job=${encodeURIComponent(job)}`
  return (
    <a href={href} title={job}>
      <code>{job}</code>
    </a>
  )
}

function JobDeliveries({ endpoint, job }: { readonly endpoint: string; readonly job: string }) {
  const deliveries = useResource(
    `webhooks of ${endpoint} ${job}`,
    async signal => (await api('GET /v2/{endpoint}/webhooks/{job}', { path: { endpoint, job }, signal })).deliveries,
    { on: jobTopic(endpoint) },
  )
  return (
    <Drawer title="Deliveries of a job" actions={[]} onClose={() => setQuery({ job: null })}>
      <p>
        <JobLink endpoint={endpoint} job={job} />
      </p>
      <Loaded of={deliveries}>
        {all =>
          all.length === 0 ? (
            <p class="faint">No deliveries: the job has not ended, or it names no webhook.</p>
          ) : (
            all.map(delivery => <DeliveryDetails key={delivery.id} of={delivery} />)
          )
        }
      </Loaded>
    </Drawer>
  )
}

function DeliveryDetails({ of }: { readonly of: Omit<Delivery, 'jobId'> }) {
  const { id, jobStatus, createdAt, nextTryAt, tries } = of
  const { tone, word } = deliveryState(of)
  const ended = { atMs: Date.parse(createdAt), title: `The job ended ${jobStatus}`, tone: 'off' as const }
  return (
    <Part title={<State tone={tone}>{word}</State>}>
      <p class="faint">
        webhook-id <code>{id}</code>
      </p>
      <TimeLine
        label="Tries"
        steps={[
          ended,
          ...tries.map((one, at) => ({
            atMs: Date.parse(one.at),
            title: `Try ${at + 1}`,
            tone: hasMessage(one.status) ? ('good' as const) : ('bad' as const),
            ms: one.tookMs,
            detail: tryResult(one),
          })),
        ]}
      />
      {nextTryAt === undefined ? null : <p>Next try at {clockTime(nextTryAt)}.</p>}
    </Part>
  )
}
