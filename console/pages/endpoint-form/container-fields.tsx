/** Fields of what workers run: those that endpoints and templates share. */
import { api } from '../../client/api.ts'
import { useResource } from '../../client/resource.ts'
import { mayOperate } from '../../client/session.ts'
import { ofChange } from '../../client/topics.ts'
import { type Problems, SelectField, TextField } from '../../parts/form.tsx'
import type { ContainerDraft } from './draft.ts'
import { EnvRows } from './env-rows.tsx'
import { NumberField } from './parts.tsx'

/** What parts of a form get. */
export interface FieldsProps<Type> {
  readonly draft: Type
  readonly set: (changes: Partial<Type>) => void
  readonly problems: Problems
}

/** Image, start command and variables. */
export function ImageFields({ draft, set, problems }: FieldsProps<ContainerDraft>) {
  const folder = draft.image.startsWith('dir:')
  return (
    <>
      <TextField
        label={folder ? 'Folder' : 'Image'}
        path="$.image"
        problems={problems}
        value={draft.image}
        onChange={image => set({ image })}
        placeholder="owner/image:tag"
        hint={
          folder
            ? 'dir: and the path of a folder that the server was started with; it runs without a container'
            : `The image of a container with a worker in it${mayOperate() ? ', or dir: and the path of a folder' : ''}`
        }
      />
      <EnvRows value={draft.env} onChange={env => set({ env })} problems={problems} />
    </>
  )
}

/** Parts of a container that are rarely changed. */
export function ContainerFields({ draft, set, problems }: FieldsProps<ContainerDraft>) {
  const registries = useResource('registries', signal => api('GET /v2/registries', { signal }), {
    on: ofChange(/Registry/i),
  })
  const known = (registries.data?.registries ?? []).map(({ id, name }) => [id, name] as const)
  const isGone = draft.registry !== '' && known.every(([id]) => id !== draft.registry)
  return (
    <>
      <TextField
        label="Start command"
        path="$.args"
        problems={problems}
        value={draft.args}
        onChange={args => set({ args })}
        hint="Arguments instead of those of the image"
      />
      <div class="columns tight">
        <TextField
          label="Ports"
          path="$.ports"
          problems={problems}
          value={draft.ports}
          onChange={ports => set({ ports })}
          placeholder="80/http"
        />
        <NumberField
          label="Disk, GB"
          path="$.disk"
          problems={problems}
          value={draft.disk}
          onChange={disk => set({ disk })}
          min={1}
          max={1_000_000}
        />
        <SelectField
          label="Registry"
          path="$.registry"
          problems={problems}
          value={draft.registry}
          options={[
            ['', 'none: public image'],
            ...known,
            ...(isGone ? [[draft.registry, draft.registry] as const] : []),
          ]}
          onChange={registry => set({ registry })}
        />
      </div>
    </>
  )
}
