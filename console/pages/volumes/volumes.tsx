/** Network volumes: folders that outlive workers. */
import { useAll } from '../../client/all.ts'
import { api, type Body } from '../../client/api.ts'
import type { NetworkVolume } from '../../client/api-types.d.ts'
import { useResource } from '../../client/resource.ts'
import { mayManage } from '../../client/session.ts'
import { changeTopic } from '../../client/topics.ts'
import { useEndpoints } from '../../client/uses.ts'
import { count, plural } from '../../format.ts'
import { Ask, type FormField } from '../../parts/ask.tsx'
import type { Column } from '../../parts/table.tsx'
import { type Action, Drawer, deletion, Part, ResourcePage } from '../../parts/things.tsx'
import { UsedBy } from '../../parts/used-by.tsx'

const NAME: FormField = { name: 'name', label: 'Name' }
const SIZE: FormField = {
  name: 'size',
  label: 'Size in GB',
  type: 'number',
  value: 10,
  hint: `10 to ${count(4096)}; it only grows. It is not enforced: the folder is as large as its disk allows.`,
}

const TYPES = [
  ['STANDARD', 'Standard'],
  ['HIGH_PERFORMANCE', 'High performance'],
] as const

/** The page of volumes. */
export function Volumes() {
  const volumes = useAll('GET /v2/network-volumes', 'networkVolumes', changeTopic(/volume/i))
  const endpoints = useEndpoints().data
  const countUsers = (id: string) => endpoints?.filter(({ networkVolumes }) => networkVolumes.includes(id)).length ?? 0
  return (
    <ResourcePage
      title="Volumes"
      what="volume"
      purpose="A network volume is a folder that outlives workers and that several endpoints can share, for models and data."
      of={volumes}
      columns={volumeColumns(countUsers)}
      searchText={({ id, name, dataCenter }) => `${name} ${id} ${dataCenter}`}
      form={onClose => <NewVolume onClose={onClose} onDone={volumes.reload} />}
      detail={volume => <Detail of={volume} onChange={volumes.reload} />}
    />
  )
}

function volumeColumns(countUsers: (id: string) => number): readonly Column<NetworkVolume>[] {
  return [
    { id: 'name', title: 'Name', cell: ({ name }) => name, sort: ({ name }) => name },
    { id: 'size', title: 'Size', width: '110px', cell: ({ size }) => `${count(size)} GB`, sort: ({ size }) => size },
    {
      id: 'users',
      title: 'Used by',
      width: '140px',
      cell: ({ id }) => plural(countUsers(id), 'endpoint'),
      sort: ({ id }) => countUsers(id),
    },
    { id: 'where', title: 'Data center', width: '130px', cell: ({ dataCenter }) => dataCenter, isExtra: true },
    { id: 'id', title: 'Id', width: '150px', cell: ({ id }) => <code>{id}</code>, isExtra: true },
  ]
}

function NewVolume({ onClose, onDone }: { readonly onClose: () => void; readonly onDone: () => void }) {
  const centers = useResource('data centers', signal => api('GET /v2/catalog/datacenters', { signal })).data
  const ids = centers?.dataCenters.map(({ id }) => [id, id] as const) ?? []
  return (
    <Ask
      title="New volume"
      action="Create the volume"
      asked={[
        NAME,
        SIZE,
        {
          name: 'dataCenter',
          label: 'Data center',
          value: ids[0]?.[0] ?? '',
          options: ids,
          hint: 'Stored for programs that expect it. All volumes are on this machine.',
        },
        { name: 'type', label: 'Type', value: 'STANDARD', options: TYPES },
      ]}
      act={async values => {
        const body = { name: '', ...values } as Body<'POST /v2/network-volumes'>
        await api('POST /v2/network-volumes', { body })
        onDone()
      }}
      onClose={onClose}
    />
  )
}

function Detail({ of, onChange }: { readonly of: NetworkVolume; readonly onChange: () => void }) {
  const { id, name, size, dataCenter, type } = of
  const usedBy = <UsedBy of={{ volume: id }} />
  const path = { id }
  const actions: readonly Action[] = [
    deletion({
      what: 'volume',
      name,
      action: 'Delete the volume and its files',
      typed: name,
      onConfirm: async () => {
        await api('DELETE /v2/network-volumes/{id}', { path })
        onChange()
      },
      children: (
        <>
          {usedBy}
          <p>All files on it are deleted and cannot be restored. A volume that an endpoint uses cannot be deleted.</p>
        </>
      ),
    }),
    [
      'Rename or grow',
      onClose => (
        <Ask
          title={`Change ${name}`}
          action="Save the changes"
          isChange
          asked={[
            { ...NAME, value: name },
            { ...SIZE, value: size },
          ]}
          act={async (_, body) => {
            await api('PATCH /v2/network-volumes/{id}', { path, body })
            onChange()
          }}
          onClose={onClose}
        />
      ),
    ],
  ]
  return (
    <Drawer
      title={name}
      facts={[
        ['Size', `${count(size)} GB`],
        ['Data center', dataCenter],
        ['Type', TYPES.find(([one]) => one === type)?.[1]],
        ['Id', <code>{id}</code>],
      ]}
      actions={mayManage('write') ? actions : []}
    >
      <Part title="Used by">{usedBy}</Part>
      <Part title="Path in workers">
        <p>
          An endpoint names it in its settings. Its workers find the path in <code>RUNPOD_VOLUME_PATH</code>; in a
          container it is <code>/runpod-volume</code>.
        </p>
      </Part>
    </Drawer>
  )
}
