/** The choice of a ready worker, which fills the form of a new endpoint. */
import { useState } from 'preact/hooks'
import { request } from '../../client/api.ts'
import { useResource } from '../../client/resource.ts'
import { Loaded } from '../../parts/basic.tsx'
import { SelectField } from '../../parts/form.tsx'
import type { Draft } from '../endpoint-form/draft.ts'
import { useGpus } from '../endpoint-form/hardware-fields.tsx'
import { Folded } from '../endpoint-form/parts.tsx'
import { fittingGpus, type ReadyWorker, readyDraft } from './ready-draft.ts'

/** The field. */
export function ReadyFields({
  draft,
  set,
}: {
  readonly draft: Draft
  readonly set: (changes: Partial<Draft>) => void
}) {
  const [chosen, setChosen] = useState('')
  const gpus = useGpus()
  const workers = useResource('ready workers', async signal => {
    const response = await request('GET', '/ops/ready-workers', { signal })
    return ((await response.json()) as { readonly workers: readonly ReadyWorker[] }).workers
  })
  return (
    <Loaded of={workers}>
      {all => {
        const worker = all.find(({ name }) => name === chosen)
        // A name that somebody typed stays; one of another ready worker does not.
        const isOwnName = draft.name !== '' && all.every(({ name }) => name !== draft.name)
        return (
          <>
            <SelectField
              label="Ready worker"
              value={chosen}
              options={[
                ['', 'Choose one'],
                ...all.map(({ name, title, about }) => [name, `${title}: ${about}`] as const),
              ]}
              onChange={name => {
                setChosen(name)
                const next = all.find(one => one.name === name)
                if (next !== undefined) set({ ...readyDraft(next, gpus), ...(isOwnName ? {} : { name }) })
              }}
            />
            {worker === undefined ? null : <About of={worker} hasGpu={fittingGpus(worker, gpus).length > 0} />}
          </>
        )
      }}
    </Loaded>
  )
}

function About({ of, hasGpu }: { readonly of: ReadyWorker; readonly hasGpu: boolean }) {
  const { title, gpuMemoryGb, diskGb, env, openAi } = of
  return (
    <>
      {gpuMemoryGb === 0 || hasGpu ? null : (
        <p class="notice wait" role="status">
          {title} needs a GPU with {gpuMemoryGb} GB, and this machine has none: choose the GPUs of its workers below.
        </p>
      )}
      <p class="hint">
        Needs {gpuMemoryGb === 0 ? 'no GPU' : `a GPU with ${gpuMemoryGb} GB`} and {diskGb} GB of disk.
        {openAi ? ' Takes requests of OpenAI clients.' : ''} The first start downloads the image.
      </p>
      <Folded title="Its variables">
        <dl class="facts">
          {env.map(({ name, about }) => (
            <div key={name} class="fact">
              <dt>
                <code>{name}</code>
              </dt>
              <dd>{about}</dd>
            </div>
          ))}
        </dl>
      </Folded>
    </>
  )
}
