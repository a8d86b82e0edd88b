/** Credentials for container registries. */
import { useAll } from '../../client/all.ts'
import { api } from '../../client/api.ts'
import type { Registry } from '../../client/api-types.d.ts'
import { mayManage } from '../../client/session.ts'
import { changeTopic } from '../../client/topics.ts'
import { Ask } from '../../parts/ask.tsx'
import type { Column } from '../../parts/table.tsx'
import { type Action, Drawer, deletion, Part, ResourcePage } from '../../parts/things.tsx'
import { UsedBy } from '../../parts/used-by.tsx'

const COLUMNS: readonly Column<Registry>[] = [
  { id: 'name', title: 'Name', cell: ({ name }) => name, sort: ({ name }) => name },
  { id: 'id', title: 'Id', cell: ({ id }) => <code>{id}</code> },
]

/** The page of credentials. */
export function Registries() {
  const registries = useAll('GET /v2/registries', 'registries', changeTopic(/registry/i))
  return (
    <ResourcePage
      title="Registries"
      what="credential"
      purpose="A credential is a user and a password to pull images from a private container registry."
      of={registries}
      columns={COLUMNS}
      searchText={({ id, name }) => `${name} ${id}`}
      form={onClose => (
        <Ask
          title="New credential"
          action="Save the credential"
          asked={[
            { name: 'name', label: 'Name', hint: 'For people, such as the name of the registry.' },
            { name: 'username', label: 'User' },
            { name: 'password', label: 'Password or token', type: 'hidden', hint: 'It is never shown again.' },
          ]}
          act={async values => {
            await api('POST /v2/registries', { body: { name: '', username: '', password: '', ...values } })
            registries.reload()
          }}
          onClose={onClose}
        />
      )}
      detail={({ id, name }) => <Detail id={id} name={name} onChange={registries.reload} />}
    />
  )
}

function Detail({ id, name, onChange }: Registry & { readonly onChange: () => void }) {
  const usedBy = <UsedBy of={{ registry: id }} />
  const actions: readonly Action[] = [
    deletion({
      what: 'credential',
      name,
      onConfirm: async () => {
        await api('DELETE /v2/registries/{id}', { path: { id } })
        onChange()
      },
      children: (
        <>
          {usedBy}
          <p>Its users lose it: endpoints get a new release, and images that need it cannot be pulled.</p>
        </>
      ),
    }),
  ]
  return (
    <Drawer title={name} facts={[['Id', <code>{id}</code>]]} actions={mayManage('write') ? actions : []}>
      <Part title="Used by">{usedBy}</Part>
      <Part title="Replacement">
        <p>Create a new one, choose it in the settings of the users above, then delete this one.</p>
      </Part>
    </Drawer>
  )
}
