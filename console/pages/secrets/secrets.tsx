/** Secrets: passwords and tokens that workers get in their environment. */
import { useAll } from '../../client/all.ts'
import { api, type Body } from '../../client/api.ts'
import type { Secret } from '../../client/api-types.d.ts'
import { mayManage } from '../../client/session.ts'
import { changeTopic } from '../../client/topics.ts'
import { secretReference } from '../../client/users.ts'
import { Ask } from '../../parts/ask.tsx'
import { Ago, Code } from '../../parts/basic.tsx'
import type { Column } from '../../parts/table.tsx'
import { type Action, Drawer, deletion, Part, ResourcePage } from '../../parts/things.tsx'
import { UsedBy } from '../../parts/used-by.tsx'

const COLUMNS: readonly Column<Secret>[] = [
  { id: 'name', title: 'Name', cell: ({ name }) => <code>{name}</code>, sort: ({ name }) => name },
  { id: 'description', title: 'Description', cell: ({ description }) => description, isExtra: true },
  {
    id: 'changed',
    title: 'Changed',
    width: '140px',
    cell: secret => <Ago at={changedAt(secret)} suffix=" ago" />,
    sort: changedAt,
  },
]

const DESCRIPTION = { name: 'description', label: 'Description', hint: 'For people. Do not put the value here.' }

/** The page of secrets. */
export function Secrets() {
  const secrets = useAll('GET /v2/account/secrets', 'secrets', changeTopic(/secret/i))
  return (
    <ResourcePage
      title="Secrets"
      what="secret"
      purpose="A secret is a password or a token that workers receive in a variable and that nobody else sees again."
      of={secrets}
      columns={COLUMNS}
      searchText={({ name, description }) => `${name} ${description}`}
      form={(onClose, name) => (
        <Ask
          title="New secret"
          action="Save the secret"
          asked={[
            { name: 'name', label: 'Name', value: name, hint: `A variable names it as ${secretReference('name')}` },
            { name: 'value', label: 'Value', type: 'hidden' },
            DESCRIPTION,
          ]}
          act={async values => {
            const body = { name: '', value: '', ...values } as Body<'POST /v2/account/secrets'>
            await api('POST /v2/account/secrets', { body })
            secrets.reload()
          }}
          onClose={onClose}
        />
      )}
      detail={secret => <Detail of={secret} onChange={secrets.reload} />}
    />
  )
}

function changedAt({ createdAt, valueLastUpdatedAt }: Secret): string {
  return valueLastUpdatedAt ?? createdAt
}

function Detail({ of, onChange }: { readonly of: Secret; readonly onChange: () => void }) {
  const { id, name, description, createdAt, valueLastUpdatedAt } = of
  const usedBy = <UsedBy of={{ secret: name }} />
  const update = async (body: Body<'PATCH /v2/account/secrets/{id}'>) => {
    await api('PATCH /v2/account/secrets/{id}', { path: { id }, body })
    onChange()
  }
  const actions: readonly Action[] = [
    deletion({
      what: 'secret',
      name,
      onConfirm: async () => {
        await api('DELETE /v2/account/secrets/{id}', { path: { id } })
        onChange()
      },
      children: (
        <>
          {usedBy}
          <p>
            Running workers keep the value. A worker whose environment names the secret cannot start until a secret of
            that name exists again.
          </p>
        </>
      ),
    }),
    [
      'Change the description',
      onClose => (
        <Ask
          title={`Description of ${name}`}
          action="Save the description"
          asked={[{ ...DESCRIPTION, value: description ?? '' }]}
          act={values => update({ description: String(values.description ?? '') || null })}
          onClose={onClose}
        />
      ),
    ],
    [
      'Replace the value',
      onClose => (
        <Ask
          title={`Replace the value of ${name}`}
          action="Replace the value"
          asked={[{ name: 'value', label: 'New value', type: 'hidden' }]}
          act={({ value = '' }) => update({ value: String(value) })}
          onClose={onClose}
          note={<p>New workers receive it. Running workers keep the old one: restart the endpoint to replace them.</p>}
        />
      ),
    ],
  ]
  return (
    <Drawer
      title={name}
      facts={[
        ['Description', description ?? '–'],
        ['Made', <Ago at={createdAt} suffix=" ago" />],
        ['Value replaced', valueLastUpdatedAt === null ? 'never' : <Ago at={valueLastUpdatedAt} suffix=" ago" />],
        ['Id', <code>{id}</code>],
      ]}
      actions={mayManage('write') ? actions : []}
    >
      <Part title="Use in a worker">
        <p>Put this into a variable of an endpoint or a template, alone or within other text:</p>
        <Code text={secretReference(name)} what="reference" />
      </Part>
      <Part title="Used by">{usedBy}</Part>
    </Drawer>
  )
}
