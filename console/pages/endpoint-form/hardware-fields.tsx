/** The hardware of a worker: GPUs of some pools, or vCPUs. */
import { api } from '../../client/api.ts'
import type { GpuType } from '../../client/api-types.d.ts'
import { useResource } from '../../client/resource.ts'
import { Button, Choice } from '../../parts/basic.tsx'
import { bound, type FieldsProps } from './bound.tsx'
import type { Draft } from './draft.ts'
import { Folded, problemsAt, TickList } from './parts.tsx'

const VCPUS = ['2', '4', '8', '16', '32'].map(number => [number, number] as const)

/** The GPU types, with the number of each on this machine. */
export function useGpus(): readonly GpuType[] {
  const gpus = useResource('form gpus', signal => api('GET /v2/catalog/gpus', { signal }))
  return gpus.data?.gpus ?? []
}

/** Fields for GPU or CPU. @param isNew true while the kind can be chosen */
export function HardwareFields({ isNew, ...props }: FieldsProps<Draft> & { readonly isNew: boolean }) {
  const { draft, set } = props
  return (
    <>
      {isNew ? (
        <p>
          <Choice
            label="Hardware"
            value={draft.hardware}
            options={[
              ['gpu', 'GPU'],
              ['cpu', 'CPU only'],
            ]}
            onChange={hardware => set({ hardware })}
          />
        </p>
      ) : null}
      {draft.hardware === 'gpu' ? <GpuFields {...props} /> : <CpuFields {...props} />}
    </>
  )
}

function GpuFields(props: FieldsProps<Draft>) {
  const { draft, set, problems } = props
  const { text, number } = bound(props)
  const gpus = useGpus()
  const pools = [...new Set(gpus.flatMap(({ pool }) => (pool === null ? [] : [pool])))]
  const options = pools.map(pool => {
    const types = gpus.filter(gpu => gpu.pool === pool)
    const gpuCount = types.reduce((sum, gpu) => sum + gpu.maxCount.secure, 0)
    return { pool, types, gpuCount, memory: Math.min(...types.map(({ memory }) => memory)) }
  })
  const isFirst = ({ pool, gpuCount }: { readonly pool: string; readonly gpuCount: number }) =>
    gpuCount > 0 || draft.pools.includes(pool)
  const [firstPools, otherPools] = [options.filter(isFirst), options.filter(one => !isFirst(one))]
  const titled = (of: typeof options) =>
    [...of]
      .sort((a, b) => b.gpuCount - a.gpuCount || a.memory - b.memory)
      .map(({ pool, types, gpuCount, memory }) => {
        const names = types.map(({ name }) => name).join(', ')
        return [pool, `${memory} GB: ${names}${gpuCount > 0 ? ` (${gpuCount} in this machine)` : ''}`] as const
      })
  const choose = (chosen: readonly string[]) => {
    const chosenTypes = gpus.filter(({ pool }) => pool !== null && chosen.includes(pool)).map(({ id }) => id)
    set({ pools: chosen, excludedTypes: draft.excludedTypes.filter(type => chosenTypes.includes(type)) })
  }
  const several = options.filter(({ pool, types }) => draft.pools.includes(pool) && types.length > 1)
  const isWrong = problemsAt(problems, '$.gpu').length > problemsAt(problems, '$.gpu.pools').length
  return (
    <>
      <TickList
        label="GPU types; a worker gets one of them"
        path="$.gpu.pools"
        problems={problems}
        options={titled(firstPools)}
        values={draft.pools}
        onChange={choose}
        hint={firstPools.length === 0 ? 'This machine has no GPU.' : undefined}
      />
      <Folded title={`${otherPools.length} types that this machine does not have`}>
        <TickList
          label="Other types"
          options={titled(otherPools)}
          values={[]}
          onChange={([pool]) => choose([...draft.pools, ...(pool === undefined ? [] : [pool])])}
        />
      </Folded>
      <div class="columns tight">
        {number('gpuCount', 'GPUs of a worker', [1, 64], { path: 'gpu.count' })}
        {text('gpuMemory', 'Or GB of one GPU, shared with others (auto to learn it)', {
          path: 'gpu.memoryGb',
          placeholder: '8',
        })}
      </div>
      <Folded title="CUDA and excluded types" isWrong={isWrong}>
        <div class="columns tight">
          {text('minCuda', 'Lowest CUDA version', { path: 'gpu.minCudaVersion', placeholder: '12.4' })}
          {text('cudaVersions', 'Only these CUDA versions', {
            path: 'gpu.allowedCudaVersions',
            placeholder: '12.4, 12.8',
          })}
        </div>
        <TickList
          label="Types that are left out"
          path="$.gpu.excludedTypes"
          problems={problems}
          options={several.flatMap(({ types }) => types.map(({ id, name }) => [id, name] as const))}
          values={draft.excludedTypes}
          onChange={excludedTypes => set({ excludedTypes })}
          hint={several.length === 0 ? 'No chosen pool has several types.' : undefined}
        />
      </Folded>
    </>
  )
}

function CpuFields({ draft, set, problems }: FieldsProps<Draft>) {
  const flavors = useResource('form cpus', signal => api('GET /v2/catalog/cpus', { signal }))
  const flavorOptions = (flavors.data?.cpus ?? []).map(
    ({ id, name, ramGbPerVcpu }) => [id, `${id}: ${name}, ${ramGbPerVcpu} GB a vCPU`] as const,
  )
  return (
    <>
      {draft.cpus.map((cpu, index) => {
        const { select } = bound({
          draft: cpu,
          set: changes => set({ cpus: draft.cpus.map((one, of) => (of === index ? { ...one, ...changes } : one)) }),
          problems,
        })
        return (
          <div key={index} class="cpu-row">
            {select('id', 'Flavor', flavorOptions, { path: `cpu[${index}].id` })}
            {select('vcpus', 'vCPUs', VCPUS, { path: `cpu[${index}].vcpuCount` })}
            {draft.cpus.length > 1 ? (
              <Button
                kind="quiet"
                aria-label={`Remove ${cpu.id} with ${cpu.vcpus} vCPUs`}
                onPress={() => set({ cpus: draft.cpus.filter((_, of) => of !== index) })}
              >
                ✕
              </Button>
            ) : null}
          </div>
        )
      })}
      <Button kind="quiet" onPress={() => set({ cpus: [...draft.cpus, { id: 'cpu3g', vcpus: '2' }] })}>
        Add a choice
      </Button>
    </>
  )
}
