/** Network volumes and global ones: folders that outlive workers. */
import { useAll } from '../../client/all.ts'
import { api, type Body } from '../../client/api.ts'
import type { GlobalVolume, NetworkVolume } from '../../client/api-types.d.ts'
import { type Resource, useResource } from '../../client/resource.ts'
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

/** A volume; one without a data center is global. */
type Volume = GlobalVolume & Partial<Pick<NetworkVolume, 'dataCenter' | 'type'>>

/** The choice of the form for a volume of no data center. */
const GLOBAL = 'global'

/** The page of volumes. */
export function Volumes() {
  const volumes = useVolumes()
  const endpoints = useEndpoints().data
  const countUsers = (id: string) => endpoints?.filter(({ networkVolumes }) => networkVolumes.includes(id)).length ?? 0
  return (
    <ResourcePage
      title="Volumes"
      what="volume"
      purpose="A volume is a folder that outlives workers and that several endpoints can share, for models and data."
      of={volumes}
      columns={volumeColumns(countUsers)}
      searchText={volume => `${volume.name} ${volume.id} ${place(volume)}`}
      form={onClose => <NewVolume onClose={onClose} onDone={volumes.reload} />}
      detail={volume => <Detail of={volume} onChange={volumes.reload} />}
    />
  )
}

/** The volumes of both kinds. */
function useVolumes(): Resource<readonly Volume[]> {
  const network = useAll('GET /v2/network-volumes', 'networkVolumes', changeTopic(/volume/i))
  const global = useAll('GET /v2/global-volumes', 'globalVolumes', changeTopic(/volume/i))
  return {
    data: network.data && global.data && [...network.data, ...global.data],
    error: network.error ?? global.error,
    reload: () => {
      network.reload()
      global.reload()
    },
  }
}

function place({ dataCenter }: Volume): string {
  return dataCenter ?? 'global'
}

function volumeColumns(countUsers: (id: string) => number): readonly Column<Volume>[] {
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
    { id: 'where', title: 'Data center', width: '130px', cell: place, sort: place },
    { id: 'id', title: 'Id', width: '150px', cell: ({ id }) => <code>{id}</code>, isExtra: true },
  ]
}

function NewVolume({ onClose, onDone }: { readonly onClose: () => void; readonly onDone: () => void }) {
  const centers = useResource('data centers', signal => api('GET /v2/catalog/datacenters', { signal })).data
  const ids = centers?.dataCenters.map(({ id }) => [id, id] as const) ?? []
  const centerOptions = [...ids, [GLOBAL, 'None: a global volume'] as const]
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
          options: centerOptions,
          hint: 'Stored for programs that expect it. All volumes are on this machine. An endpoint has one global volume and no other.',
        },
        { name: 'type', label: 'Type', value: 'STANDARD', options: TYPES },
      ]}
      act={async values => {
        const { name = '', size } = values as Partial<Body<'POST /v2/network-volumes'>>
        if (values.dataCenter === GLOBAL) {
          await api('POST /v2/global-volumes', { body: { name, ...(size === undefined ? {} : { size }) } })
        } else {
          const body = { name: '', ...values } as Body<'POST /v2/network-volumes'>
          await api('POST /v2/network-volumes', { body })
        }
        onDone()
      }}
      onClose={onClose}
    />
  )
}

function Detail({ of, onChange }: { readonly of: Volume; readonly onChange: () => void }) {
  const { id, name, size, dataCenter, type } = of
  const isGlobal = dataCenter === undefined
  const usedBy = <UsedBy of={{ volume: id }} />
  const path = { id }
  const actions: readonly Action[] = [
    deletion({
      what: 'volume',
      name,
      action: 'Delete the volume and its files',
      typed: name,
      onConfirm: async () => {
        await api(isGlobal ? 'DELETE /v2/global-volumes/{id}' : 'DELETE /v2/network-volumes/{id}', { path })
        onChange()
      },
      children: (
        <>
          {usedBy}
          <p>All files on it are deleted and cannot be restored. A volume in use cannot be deleted.</p>
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
            await api(isGlobal ? 'PATCH /v2/global-volumes/{id}' : 'PATCH /v2/network-volumes/{id}', { path, body })
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
        ['Data center', isGlobal ? 'none: it is global' : dataCenter],
        ...(isGlobal ? [] : [['Type', TYPES.find(([one]) => one === type)?.[1]] as const]),
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
