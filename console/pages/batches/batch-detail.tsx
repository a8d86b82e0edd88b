/** One batch: its numbers, its requests with their results, and its actions. */
import { useState } from 'preact/hooks'
import { api } from '../../client/api.ts'
import type { Batch, BatchRequests } from '../../client/api-types.d.ts'
import { useResource } from '../../client/resource.ts'
import { mayUseJobs } from '../../client/session.ts'
import { count, duration, plural } from '../../format.ts'
import { Ask } from '../../parts/ask.tsx'
import { Ago, Button, Figure, Loaded, State, type Tone } from '../../parts/basic.tsx'
import { Confirm } from '../../parts/dialog.tsx'
import { Pager } from '../../parts/pager.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { type Action, Drawer, Part } from '../../parts/things.tsx'
import { Why } from '../../parts/why.tsx'
import { freshness, ResultBar } from './batch-parts.tsx'
import { batchState, isDone, isStuck, waitingRequests } from './batch-state.ts'
import { NewRequests } from './new-requests.tsx'

/** Number of requests on a page: their outputs come with them. */
const PAGE = 50
const PREVIEW = 300

/** A batch in a drawer. */
export function BatchDetail({
  endpoint,
  id,
  onChange,
}: {
  readonly endpoint: string
  readonly id: string
  readonly onChange: () => void
}) {
  const path = { endpoint, batch: id }
  const batch = useResource(
    `batch ${endpoint} ${id}`,
    signal => api('GET /v2/{endpoint}/batch/{batch}', { path, signal }),
    freshness(endpoint),
  )
  const changed = () => {
    batch.reload()
    onChange()
  }
  const isWritable = mayUseJobs('write', endpoint)
  return (
    <Drawer
      title={batch.data?.name ?? id}
      actions={batch.data !== null && isWritable ? batchActions(batch.data, changed) : []}
    >
      <Loaded of={batch}>
        {data => (
          <>
            <Numbers batch={data} />
            {isStuck(data) ? <Stuck endpoint={endpoint} /> : null}
            <Requests batch={data} isWritable={isWritable} onChange={changed} />
          </>
        )}
      </Loaded>
    </Drawer>
  )
}

/** Reason why the endpoint of a batch runs nothing. */
function Stuck({ endpoint }: { readonly endpoint: string }) {
  return (
    <>
      <Why id={endpoint} />
      <p>
        <a href={`/endpoints/${endpoint}`}>Open the endpoint</a>
      </p>
    </>
  )
}

function batchActions(batch: Batch, onChange: () => void): readonly Action[] {
  const { id, endpointId: endpoint, name = '', status, requestTotal, requestInProgress } = batch
  const waiting = waitingRequests(batch)
  const path = { endpoint, batch: id }
  const isDraft = status === 'DRAFT'
  const cancel: Action = [
    'Cancel the batch',
    onClose => (
      <Confirm
        title={`Cancel ${name || id}?`}
        action={isDraft ? 'Cancel the batch' : `Cancel ${plural(waiting, 'waiting request')}`}
        onClose={onClose}
        onConfirm={async () => {
          await api('POST /v2/{endpoint}/batch/{batch}/cancel', { path })
          onChange()
        }}
      >
        <p>
          {isDraft
            ? 'No request of the draft becomes a job.'
            : `${plural(waiting, 'waiting request')} will be cancelled. Those that run finish (${count(requestInProgress)} now), and results stay.`}
        </p>
      </Confirm>
    ),
    'danger',
  ]
  const rename: Action = [
    'Rename',
    onClose => (
      <Ask
        title="Rename the batch"
        action="Save the name"
        asked={[{ name: 'name', label: 'Name', value: name, hint: 'A batch keeps a name once it has one.' }]}
        act={async values => {
          await api('PUT /v2/{endpoint}/batch/{batch}', { path, body: { name: String(values.name ?? '') || null } })
          onChange()
        }}
        onClose={onClose}
      />
    ),
  ]
  const add: Action = [
    'Add requests',
    onClose => <NewRequests endpoint={endpoint} batch={id} onClose={onClose} onDone={onChange} />,
  ]
  const finalize: Action = [
    'Finalize',
    onClose => (
      <Confirm
        title={`Run ${plural(requestTotal, 'request')}?`}
        action="Finalize and run"
        onClose={onClose}
        onConfirm={async () => {
          await api('POST /v2/{endpoint}/batch/{batch}/finalize', { path })
          onChange()
        }}
      >
        <p>All requests of the draft become jobs of the queue now. After that, the batch can no longer change.</p>
      </Confirm>
    ),
    'main',
  ]
  return [
    ...(isDone(batch) || status === 'CANCELLED' ? [] : [cancel]),
    rename,
    ...(isDraft ? [add] : []),
    ...(isDraft && requestTotal > 0 ? [finalize] : []),
  ]
}

function Numbers({ batch }: { readonly batch: Batch }) {
  const { id, createdAt, status, requestTotal, requestInProgress, requestCompleted, requestFailed } = batch
  const { tone, word } = batchState(batch)
  const waiting = waitingRequests(batch)
  return (
    <>
      <div class="figures">
        <Figure name="State">
          <State tone={tone}>{word}</State>
        </Figure>
        <Figure name="Requests">{count(requestTotal)}</Figure>
        {status === 'DRAFT' ? null : (
          <>
            <Figure name="Wait">{count(waiting)}</Figure>
            <Figure name="Run">{count(requestInProgress)}</Figure>
            <Figure name="Completed">{count(requestCompleted)}</Figure>
            <Figure name="Failed" title="Failed, timed out, cancelled or expired">
              {count(requestFailed)}
            </Figure>
          </>
        )}
        <Figure name="Made">
          <Ago at={createdAt} suffix=" ago" />
        </Figure>
      </div>
      <ResultBar batch={batch} />
      <p class="faint">
        <code>{id}</code>
        {status === 'DRAFT' ? ' · A draft is deleted a day after the last request was added.' : null}
      </p>
    </>
  )
}

type BatchRequest = BatchRequests['requests'][number]

interface Row {
  readonly id: string
  /** Its place in the batch, from 1. */
  readonly number: number
  readonly status: string
  readonly tookMs: number | null
  readonly result: string
}

function Requests({
  batch: { id: batch, endpointId: endpoint, status },
  isWritable,
  onChange,
}: {
  readonly batch: Batch
  readonly isWritable: boolean
  readonly onChange: () => void
}) {
  const [offset, setOffset] = useState(0)
  const requests = useResource(
    `batch requests ${endpoint} ${batch} ${offset}`,
    async signal => {
      const page = await api('GET /v2/{endpoint}/batch/{batch}/requests', {
        path: { endpoint, batch },
        query: { offset, limit: PAGE },
        signal,
      })
      // Outputs can be large: those that are not shown are not stored.
      return { total: page.total, rows: page.requests.map((request, at) => requestRow(request, offset + at + 1)) }
    },
    freshness(endpoint),
  )
  const remove = async (job: string) => {
    await api('DELETE /v2/{endpoint}/batch/{batch}/requests/{job}', { path: { endpoint, batch, job } })
    requests.reload()
    onChange()
  }
  const isDraft = status === 'DRAFT'
  return (
    <Part title="Requests">
      <Loaded of={requests}>
        {({ total, rows }) => (
          <>
            <Table
              label="Requests of the batch"
              rows={rows}
              columns={requestColumns(endpoint, isDraft && isWritable ? remove : null)}
              rowKey={row => row.id}
              height="content"
              empty={<p class="faint">No requests.</p>}
            />
            <Pager offset={offset} shown={rows.length} total={total} size={PAGE} onMove={setOffset} />
          </>
        )}
      </Loaded>
    </Part>
  )
}

const TONES: Readonly<Record<string, Tone>> = {
  COMPLETED: 'good',
  FAILED: 'bad',
  TIMED_OUT: 'bad',
  IN_PROGRESS: 'busy',
  IN_QUEUE: 'wait',
}

function requestColumns(endpoint: string, remove: ((job: string) => Promise<void>) | null): readonly Column<Row>[] {
  return [
    {
      id: 'request',
      title: 'Request',
      width: '84px',
      cell: ({ id, number, status }) =>
        status === 'DRAFT' ? (
          <span title={id}>#{count(number)}</span>
        ) : (
          <a href={`/endpoints/${endpoint}/requests?job=${encodeURIComponent(id)}`} title={id}>
            #{count(number)}
          </a>
        ),
    },
    {
      id: 'state',
      title: 'State',
      width: '120px',
      cell: ({ status }) => (
        <State tone={TONES[status] ?? 'off'}>
          {status.toLowerCase().replace('_', ' ').replace('in queue', 'waits')}
        </State>
      ),
    },
    { id: 'took', title: 'Took', width: '80px', cell: ({ tookMs }) => duration(tookMs), isExtra: true },
    remove === null
      ? { id: 'result', title: 'Result', width: 'minmax(0, 1.3fr)', cell: ({ result }) => <code>{result}</code> }
      : {
          id: 'remove',
          title: 'Change',
          cell: ({ id, number }) => (
            <Button kind="quiet" onPress={() => remove(id)} aria-label={`Remove request ${number}`}>
              Remove
            </Button>
          ),
        },
  ]
}

function requestRow({ id, status, output, error, startedAt, completedAt }: BatchRequest, number: number): Row {
  const result = error === undefined ? (JSON.stringify(output) ?? '') : errorMessage(error)
  const tookMs = startedAt === null || completedAt === null ? null : completedAt - startedAt
  return { id, number, status, tookMs, result: result.slice(0, PREVIEW) }
}

/** The message of an error. Workers send it as an object in JSON text. */
function errorMessage(error: string): string {
  try {
    return String((JSON.parse(error) as { readonly error_message?: unknown }).error_message ?? error)
  } catch {
    return error
  }
}
