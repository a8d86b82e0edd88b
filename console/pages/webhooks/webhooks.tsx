/** Webhooks of an endpoint: the deliveries, the failures and their reasons, and the signing key. */
import type { ComponentChildren } from 'preact'
import { api, queryString, request } from '../../client/api.ts'
import { useResource } from '../../client/resource.ts'
import { mayManage, mayUseJobs } from '../../client/session.ts'
import { jobTopic, webhookTopic } from '../../client/topics.ts'
import { clockTime, shortJobId } from '../../format.ts'
import { announce } from '../../parts/announce.tsx'
import { Ago, Button, Choice, Empty, Loaded, State } from '../../parts/basic.tsx'
import { type EndpointNames, EndpointPage } from '../../parts/endpoint-choice.tsx'
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
    <EndpointPage
      title="Webhooks"
      purpose={PURPOSE}
      all={(chooser, names) => <List endpoint={null} chooser={chooser} names={names} />}
    >
      {(id, chooser, names) => <List key={id} endpoint={id} chooser={chooser} names={names} />}
    </EndpointPage>
  )
}

/** A delivery of one of the endpoints. */
interface Row extends Delivery {
  readonly endpointId: string
}

async function readDeliveries(endpoint: string | null, parameters: object, signal: AbortSignal) {
  if (endpoint !== null) {
    const page = await api('GET /v2/{endpoint}/webhooks', { path: { endpoint }, query: parameters, signal })
    return { ...page, deliveries: page.deliveries.map(delivery => ({ ...delivery, endpointId: endpoint })) }
  }
  const response = await request('GET', `/ops/webhooks${queryString({ ...parameters })}`, { signal })
  return (await response.json()) as { deliveries: readonly Row[]; pagination: { nextCursor: string | null } }
}

/** @param endpoint null for all endpoints */
function List({
  endpoint,
  chooser,
  names,
}: {
  readonly endpoint: string | null
  readonly chooser: ComponentChildren
  readonly names: EndpointNames
}) {
  const filter = (query.value.get('state') ?? 'all') as Filter
  const deliveries = useGrowingList<Row>(
    `webhooks ${endpoint ?? 'of all'} ${filter}`,
    async (cursor, signal) => {
      const parameters = {
        limit: PAGE,
        ...(filter === 'all' ? {} : { state: filter }),
        ...(cursor === null ? {} : { cursor }),
      }
      const page = await readDeliveries(endpoint, parameters, signal)
      return { rows: page.deliveries, nextCursor: page.pagination.nextCursor }
    },
    ({ id }) => id,
    endpoint === null ? webhookTopic : jobTopic(endpoint),
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
            columns={deliveryColumns(endpoint === null ? id => names.get(id) ?? id : null)}
            rowKey={({ id }) => id}
            onOpen={({ endpointId, jobId }) => setQuery({ endpoint: endpointId, job: jobId }, { replace: false })}
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
      {mayManage('write') && endpoint !== null ? <SigningKey endpoint={endpoint} /> : null}
      {opened === null || endpoint === null ? null : <JobDeliveries key={opened} endpoint={endpoint} job={opened} />}
    </>
  )
}

/** @param endpointName of a list of all endpoints, which names the one of each */
function deliveryColumns(endpointName: ((id: string) => string) | null): readonly Column<Row>[] {
  const endpoint: Column<Row> = {
    id: 'endpoint',
    title: 'Endpoint',
    width: 'minmax(0, 0.8fr)',
    cell: ({ endpointId }) => endpointName?.(endpointId),
    isExtra: true,
  }
  return [
    ...(endpointName === null ? [] : [endpoint]),
    {
      id: 'job',
      title: 'Job',
      width: '136px',
      cell: ({ endpointId, jobId }) => <JobLink endpoint={endpointId} job={jobId} isShort />,
    },
    {
      id: 'address',
      title: 'Receiver',
      width: 'minmax(0, 1.6fr)',
      cell: ({ address }) => <Address of={address} />,
      isExtra: true,
    },
    {
      id: 'state',
      title: 'Delivery',
      width: '108px',
      cell: delivery => {
        const { tone, word } = deliveryState(delivery)
        return <State tone={tone}>{word}</State>
      },
    },
    {
      id: 'last',
      title: 'Last answer',
      width: 'minmax(0, 1.6fr)',
      cell: delivery => {
        const result = lastResult(delivery)
        return <span title={result}>{result}</span>
      },
      isExtra: true,
    },
    {
      id: 'next',
      title: 'Next try',
      width: '78px',
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
      width: '104px',
      cell: ({ createdAt }) => <Ago at={createdAt} suffix=" ago" />,
    },
  ]
}

/** The address of a receiver, of whose path and query the server hides most. */
function Address({ of }: { readonly of: string | null }) {
  return of === null ? <span class="faint">sealed</span> : <span title={of}>{of.replace(/^https:\/\//, '')}</span>
}

function JobLink({
  endpoint,
  job,
  isShort = false,
}: {
  readonly endpoint: string
  readonly job: string
  readonly isShort?: boolean
}) {
  const href = job.startsWith('batch-')
    ? `/batches?endpoint=${endpoint}&id=${encodeURIComponent(job)}`
    : `/endpoints/${endpoint}/requests?job=${encodeURIComponent(job)}`
  return (
    <a href={href} title={job}>
      <code>{isShort ? shortJobId(job) : job}</code>
    </a>
  )
}

function JobDeliveries({ endpoint, job }: { readonly endpoint: string; readonly job: string }) {
  const deliveries = useResource(
    `webhooks of ${endpoint} ${job}`,
    async signal => (await api('GET /v2/{endpoint}/webhooks/{job}', { path: { endpoint, job }, signal })).deliveries,
    { on: jobTopic(endpoint) },
  )
  const send = async () => {
    await api('POST /v2/{endpoint}/webhooks/{job}/send', { path: { endpoint, job } })
    deliveries.reload()
    announce('The webhook is sent again')
  }
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
            all.map((delivery, at) => (
              <DeliveryDetails
                key={delivery.id}
                of={delivery}
                onSend={at === all.length - 1 && mayUseJobs('write', endpoint) ? send : null}
              />
            ))
          )
        }
      </Loaded>
    </Drawer>
  )
}

/** One delivery. @param onSend sends it again; null where that is not possible */
function DeliveryDetails({
  of,
  onSend,
}: {
  readonly of: Omit<Delivery, 'jobId'>
  readonly onSend: (() => Promise<void>) | null
}) {
  const { id, state, address, jobStatus, createdAt, nextTryAt, tries } = of
  const { tone, word } = deliveryState(of)
  const ended = { atMs: Date.parse(createdAt), title: `The job ended ${jobStatus}`, tone: 'off' as const }
  return (
    <Part title={<State tone={tone}>{word}</State>}>
      <p>
        <Address of={address} />
      </p>
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
      {onSend === null || state === 'DELIVERED' ? null : (
        <Button onPress={onSend}>{state === 'PENDING' ? 'Try now' : 'Send again'}</Button>
      )}
    </Part>
  )
}
