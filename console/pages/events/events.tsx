/** The newest events of the account, as the server keeps them, with new ones as they happen. */
import { useState } from 'preact/hooks'
import { queryString, request } from '../../client/api.ts'
import type { LiveEvent } from '../../client/live.ts'
import { mayManage } from '../../client/session.ts'
import { useEndpoints } from '../../client/uses.ts'
import { clockTime } from '../../format.ts'
import { Button, Empty, Loaded, PageHead } from '../../parts/basic.tsx'
import { useGrowingList } from '../../parts/more.ts'
import { QuerySelect } from '../../parts/query-fields.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Drawer } from '../../parts/things.tsx'
import { query } from '../../router.ts'
import { eventDetails, eventObject, type KeptEvent, KINDS } from './event-words.ts'

const PAGE = 100

/** The page of events. */
export function Events() {
  if (mayManage('read')) return <List />
  return (
    <>
      <PageHead title="Events" />
      <Empty title="Your key may not see events" />
    </>
  )
}

function List() {
  const [opened, setOpened] = useState<KeptEvent | null>(null)
  const endpoints = useEndpoints().data ?? []
  const names = new Map(endpoints.map(({ id, name }) => [id, name]))
  const [endpoint, kind] = [query.value.get('endpoint'), query.value.get('kind')]
  const isShown = (event: LiveEvent) =>
    (endpoint === null || event.endpointId === endpoint) && (kind === null || event.type.startsWith(`${kind}.`))
  const events = useGrowingList<KeptEvent>(
    `events ${endpoint} ${kind}`,
    async (cursor, signal) => {
      const parameters = { endpoint, kind, cursor, limit: PAGE }
      const response = await request('GET', `/ops/events${queryString(parameters)}`, { signal })
      const { events: rows, pagination } = (await response.json()) as EventPage
      return { rows, nextCursor: pagination.nextCursor }
    },
    ({ id }) => id,
    isShown,
  )
  return (
    <>
      <PageHead title="Events" />
      <p class="hint">
        The server keeps the newest events of an account, at least 2,000 while few accounts are busy, in memory: a
        restart forgets them. They are no record of changes; the audit log is.
      </p>
      <div class="tools">
        <QuerySelect
          name="endpoint"
          label="Endpoint"
          all="All endpoints"
          options={endpoints.map(({ id, name }) => [id, `${name} (${id})`])}
        />
        <QuerySelect name="kind" label="Kind" all="All kinds" options={KINDS} />
      </div>
      <Loaded of={events}>
        {rows => (
          <Table
            label="Events"
            rows={rows}
            columns={eventColumns(id => names.get(id) ?? id)}
            rowKey={({ id }) => id}
            onOpen={setOpened}
            onEnd={events.more}
            empty={
              endpoint === null && kind === null ? (
                <Empty title="No event since the server started" />
              ) : (
                <Empty title="No kept event matches the filter" />
              )
            }
          />
        )}
      </Loaded>
      {events.hasMore ? (
        <div class="tools below">
          <Button onPress={events.more}>{events.isReading ? 'Reading…' : 'Older events'}</Button>
        </div>
      ) : null}
      {opened === null ? null : <Detail of={opened} onClose={() => setOpened(null)} />}
    </>
  )
}

interface EventPage {
  readonly events: readonly KeptEvent[]
  readonly pagination: { readonly nextCursor: string | null }
}

function eventColumns(endpointName: (id: string) => string): readonly Column<KeptEvent>[] {
  return [
    { id: 'at', title: 'Time', width: '120px', cell: ({ at }) => <time dateTime={at}>{clockTime(at)}</time> },
    {
      id: 'endpoint',
      title: 'Endpoint',
      width: 'minmax(90px, 0.7fr)',
      cell: ({ endpointId }) =>
        endpointId === null ? (
          <span class="faint">–</span>
        ) : (
          <a href={`/endpoints/${encodeURIComponent(endpointId)}`} tabIndex={-1}>
            {endpointName(endpointId)}
          </a>
        ),
    },
    { id: 'type', title: 'Event', width: '170px', cell: ({ type }) => <code>{type}</code> },
    { id: 'object', title: 'About', cell: event => <About of={event} />, isExtra: true },
    { id: 'details', title: 'Details', width: 'minmax(0, 1.6fr)', cell: eventDetails, isExtra: true },
  ]
}

function About({ of }: { readonly of: KeptEvent }) {
  const { id, path } = eventObject(of)
  if (path === null) return id
  return (
    <a href={path} tabIndex={-1}>
      {id}
    </a>
  )
}

function Detail({ of, onClose }: { readonly of: KeptEvent; readonly onClose: () => void }) {
  const { type, at, endpointId, fields } = of
  const shown = (value: unknown) => (typeof value === 'object' ? JSON.stringify(value) : String(value))
  return (
    <Drawer
      title={type}
      facts={[
        ['Time', `${clockTime(at)} (${at})`],
        ['Endpoint', endpointId === null ? '–' : <a href={`/endpoints/${endpointId}`}>{endpointId}</a>],
        ...Object.entries(fields).map(([name, value]) => [name, value === null ? '–' : shown(value)] as const),
      ]}
      actions={[]}
      onClose={onClose}
    >
      {eventObject(of).path === null ? null : (
        <p class="drawer-part">
          <About of={of} />
        </p>
      )}
    </Drawer>
  )
}
