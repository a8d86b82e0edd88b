/** Keys that belong to one endpoint each. */
import { useState } from 'preact/hooks'
import { useAll } from '../../client/all.ts'
import { api } from '../../client/api.ts'
import type { ApiKey } from '../../client/api-types.d.ts'
import { mayManage, mayUseJobs } from '../../client/session.ts'
import { changeTopic } from '../../client/topics.ts'
import { Button, Loaded, Section } from '../../parts/basic.tsx'
import { Confirm } from '../../parts/dialog.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { LastUsed } from './last-used.tsx'

interface Rows {
  readonly endpointName: (endpoint: string) => string
  /** Receives a new key, which is shown once. */
  readonly onMade: (key: string) => void
}

/** The keys of endpoints. */
export function EndpointKeys({ endpointName, onMade }: Rows) {
  const [pendingChange, setPendingChange] = useState<{ readonly key: ApiKey; readonly isNew: boolean } | null>(null)
  const keys = useAll(
    'GET /v2/account/endpoint-keys',
    'keys',
    event => changeTopic(/key/i)(event) || event.type === 'endpoint.deleted',
  )
  const act = async () => {
    if (pendingChange === null) return
    const { id, endpoint } = pendingChange.key
    if (pendingChange.isNew)
      onMade((await api('POST /v2/serverless/{id}/rotate-key', { path: { id: endpoint ?? '' } })).key)
    else await api('DELETE /v2/account/keys/{id}', { path: { id } })
    keys.reload()
  }
  const columns: readonly Column<ApiKey>[] = [
    {
      id: 'endpoint',
      title: 'Endpoint',
      cell: ({ endpoint, disabled }) => (
        <>
          <a href={`/endpoints/${endpoint}`}>{endpointName(endpoint ?? '')}</a>
          {disabled ? ' (revoked)' : ''}
        </>
      ),
    },
    { id: 'hint', title: 'Begins with', width: '120px', cell: ({ hint }) => <code>{hint}</code>, isExtra: true },
    { id: 'used', title: 'Last used', width: '130px', cell: key => <LastUsed of={key} />, isExtra: true },
    {
      id: 'change',
      title: 'Change',
      width: '170px',
      cell: key => {
        const of = key.endpoint ?? ''
        const press = (isNew: boolean) => (
          <Button
            kind="quiet"
            onPress={() => setPendingChange({ key, isNew })}
            aria-label={isNew ? `New key for ${endpointName(of)}` : `Revoke the key of ${endpointName(of)}`}
          >
            {isNew ? 'New key' : 'Revoke'}
          </Button>
        )
        return (
          <>
            {mayUseJobs('write', of) ? press(true) : null}
            {key.disabled ? null : press(false)}
          </>
        )
      },
    },
  ]
  const name = endpointName(pendingChange?.key.endpoint ?? '')
  return (
    <Section title="Keys of endpoints">
      <p class="hint">
        Each opens the job operations of one endpoint and nothing else. GraphQL creates it at the first request for{' '}
        <code>aiKey</code>.
      </p>
      <Loaded of={keys}>
        {rows => (
          <Table
            label="Keys of endpoints"
            rows={rows}
            columns={mayManage('write') ? columns : columns.slice(0, -1)}
            rowKey={({ id }) => id}
            height="content"
            empty="No endpoint has a key yet."
          />
        )}
      </Loaded>
      {pendingChange === null ? null : (
        <Confirm
          title={pendingChange.isNew ? `New key for ${name}?` : `Revoke the key of ${name}?`}
          action={pendingChange.isNew ? 'Create a new key' : 'Revoke the key'}
          onClose={() => setPendingChange(null)}
          onConfirm={act}
        >
          <p>
            Its present key stops working, and calls that it holds open end within a second.{' '}
            {pendingChange.isNew ? '' : 'The endpoint has no key of its own until you create one.'}
          </p>
        </Confirm>
      )}
    </Section>
  )
}
