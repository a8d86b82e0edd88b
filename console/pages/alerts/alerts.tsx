/** Receivers of alerts, and the alerts that are not over. */
import { useAll } from '../../client/all.ts'
import { api } from '../../client/api.ts'
import type { AlertReceiver } from '../../client/api-types.d.ts'
import type { LiveEvent } from '../../client/live.ts'
import { useResource } from '../../client/resource.ts'
import { mayManage } from '../../client/session.ts'
import { changeTopic } from '../../client/topics.ts'
import { Ask } from '../../parts/ask.tsx'
import { Ago, Loaded } from '../../parts/basic.tsx'
import type { Column } from '../../parts/table.tsx'
import { type Action, Drawer, deletion, Part, ResourcePage } from '../../parts/things.tsx'

const KINDS = [
  ['slack', 'Slack'],
  ['webhook', 'Webhook'],
  ['email', 'E-mail'],
] as const

/** A test arrives, or does not, within this time, in milliseconds. */
const TEST_MS = 2_000

const COLUMNS: readonly Column<AlertReceiver>[] = [
  { id: 'name', title: 'Name', cell: ({ name }) => name, sort: ({ name }) => name },
  { id: 'kind', title: 'Kind', cell: ({ kind }) => kindTitle(kind), sort: ({ kind }) => kind },
  { id: 'address', title: 'Address', cell: ({ address }) => <code>{address}</code> },
  { id: 'sent', title: 'Last message', cell: ({ sentAt }) => (sentAt === null ? 'never' : <Ago at={sentAt} />) },
  { id: 'problem', title: 'Problem', cell: ({ problem }) => problem ?? '' },
]

const isAlert = ({ type }: LiveEvent) => type.startsWith('alert.')
const isChange = changeTopic(/alertReceiver/i)

/** The page of alerts. */
export function Alerts() {
  const receivers = useAll(
    'GET /v2/account/alert-receivers',
    'alertReceivers',
    event => isAlert(event) || isChange(event),
  )
  return (
    <>
      <ResourcePage
        title="Alerts"
        what="receiver"
        purpose="A receiver gets a message when an endpoint needs attention, and one more when that is over."
        of={receivers}
        columns={COLUMNS}
        searchText={({ id, name }) => `${name} ${id}`}
        form={onClose => (
          <Ask
            title="New receiver"
            action="Save the receiver"
            asked={[
              { name: 'name', label: 'Name', hint: 'For people, such as the name of the channel.' },
              { name: 'kind', label: 'Kind', value: 'slack', options: KINDS },
              {
                name: 'address',
                label: 'Address',
                type: 'hidden',
                hint: 'An incoming webhook of Slack, an address that takes JSON, or an e-mail address. It is never shown whole.',
              },
            ]}
            act={async values => {
              await api('POST /v2/account/alert-receivers', {
                body: { name: '', kind: 'slack', address: '', ...values },
              })
              receivers.reload()
            }}
            onClose={onClose}
          />
        )}
        detail={receiver => <Detail of={receiver} onChange={receivers.reload} />}
      />
      {(receivers.data ?? []).length > 0 && <Open />}
    </>
  )
}

function Open() {
  const open = useResource('open alerts', async signal => (await api('GET /v2/account/alerts', { signal })).alerts, {
    on: isAlert,
  })
  return (
    <Part title="Open alerts">
      <Loaded of={open}>
        {alerts =>
          alerts.length === 0 ? (
            <p>No endpoint needs attention for long enough.</p>
          ) : (
            <ul>
              {alerts.map(({ endpointId, endpointName, text, since }) => (
                <li key={endpointId}>
                  <a href={`/endpoints/${endpointId}`}>{endpointName}</a>: {text} (<Ago at={since} />)
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Part>
  )
}

function Detail({
  of: { id, name, kind, problem },
  onChange,
}: {
  readonly of: AlertReceiver
  readonly onChange: () => void
}) {
  const actions: readonly Action[] = [
    [
      'Send a test',
      onClose => (
        <Ask
          title="Send a test"
          action="Send"
          asked={[]}
          note="The list shows within seconds if it was taken."
          act={async () => {
            await api('POST /v2/account/alert-tests', { body: { receiver: id } })
            setTimeout(onChange, TEST_MS)
          }}
          onClose={onClose}
        />
      ),
    ],
    deletion({
      what: 'receiver',
      name,
      onConfirm: async () => {
        await api('DELETE /v2/account/alert-receivers/{id}', { path: { id } })
        onChange()
      },
      children: <p>Messages that wait for it are dropped.</p>,
    }),
  ]
  const facts = [
    ['Id', <code>{id}</code>],
    ['Kind', kindTitle(kind)],
  ] as const
  return (
    <Drawer title={name} facts={facts} actions={mayManage('write') ? actions : []}>
      {problem !== null && <Part title="Problem">{problem}</Part>}
    </Drawer>
  )
}

function kindTitle(kind: string): string {
  return KINDS.find(([name]) => name === kind)?.[1] ?? kind
}
