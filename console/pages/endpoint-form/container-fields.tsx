/** Fields of the container of a worker, which endpoints and templates share. */
import { api } from '../../client/api.ts'
import { useResource } from '../../client/resource.ts'
import { mayOperate } from '../../client/session.ts'
import { changeTopic } from '../../client/topics.ts'
import { bound, type FieldsProps } from './bound.tsx'
import type { ContainerDraft } from './draft.ts'
import { EnvRows } from './env-rows.tsx'

/** Fields of the image and the variables. */
export function ImageFields(props: FieldsProps<ContainerDraft>) {
  const { draft, set, problems } = props
  const isFolder = draft.image.startsWith('dir:')
  return (
    <>
      {bound(props).text('image', isFolder ? 'Folder' : 'Image', {
        placeholder: 'owner/image:tag',
        hint: isFolder
          ? 'dir: and the path of a folder that the server was started with; it runs without a container'
          : `The image of a container with a worker in it${mayOperate() ? ', or dir: and the path of a folder' : ''}`,
      })}
      <EnvRows value={draft.env} onChange={env => set({ env })} problems={problems} />
    </>
  )
}

/** Fields of a container that are rarely changed. */
export function ContainerFields(props: FieldsProps<ContainerDraft>) {
  const registries = useResource('form registries', signal => api('GET /v2/registries', { signal }), {
    on: changeTopic(/Registry/i),
  })
  const registryOptions = (registries.data?.registries ?? []).map(({ id, name }) => [id, name] as const)
  const { text, number, select } = bound(props)
  return (
    <>
      {text('args', 'Start command', { hint: 'Arguments instead of those of the image' })}
      <div class="columns tight">
        {text('ports', 'Ports', { placeholder: '80/http' })}
        {number('disk', 'Disk, GB', [1, 1_000_000])}
        {select('registry', 'Registry', [['', 'none: public image'], ...registryOptions])}
      </div>
    </>
  )
}
