/** All fields of an endpoint, the rare ones folded. */
import { api } from '../../client/api.ts'
import { useResource } from '../../client/resource.ts'
import { ofChange } from '../../client/topics.ts'
import { Section } from '../../parts/basic.tsx'
import { SelectField, TextField } from '../../parts/form.tsx'
import { ContainerFields, type FieldsProps, ImageFields } from './container-fields.tsx'
import type { Draft } from './draft.ts'
import { HardwareFields } from './hardware-fields.tsx'
import { AreaField, at, Folded, NumberField, TickList } from './parts.tsx'

/** Members that have a field. */
export const FIELDS: readonly string[] = [
  ...[
    'name',
    'type',
    'image',
    'env',
    'args',
    'ports',
    'disk',
    'registry',
    'gpu.pools',
    'gpu.count',
    'gpu.excludedTypes',
  ],
  ...['gpu.minCudaVersion', 'gpu.allowedCudaVersions', 'workers.min', 'workers.max', 'workers.idleTimeout'],
  ...['scaling', 'timeout', 'flashboot', 'networkVolumes', 'modelReferences', 'corsOrigins', 'dataCenterIds'],
].map(name => `$.${name}`)

const MORE = ['args', 'ports', 'disk', 'registry', 'timeout', 'flashboot', 'corsOrigins', 'dataCenterIds']

/** The fields of an endpoint. @param isNew whether its type and kind of hardware can still be chosen */
export function EndpointFields({ isNew, ...props }: FieldsProps<Draft> & { readonly isNew: boolean }) {
  const { draft, set, problems } = props
  return (
    <>
      <Section title="What runs">
        <div class="columns tight">
          <TextField
            label="Name"
            path="$.name"
            problems={problems}
            value={draft.name}
            onChange={name => set({ name })}
          />
          {isNew ? (
            <SelectField
              label="Type"
              path="$.type"
              problems={problems}
              value={draft.type}
              options={[
                ['QUEUE', 'Queue: takes jobs'],
                ['LOAD_BALANCER', 'Load balancing: takes requests'],
              ]}
              onChange={type =>
                set(type === 'LOAD_BALANCER' ? { type, scaling: 'REQUEST_COUNT', scalingValue: '4' } : { type })
              }
            />
          ) : null}
        </div>
        <ImageFields {...props} />
      </Section>
      <Section title="Hardware of a worker">
        <HardwareFields {...props} isNew={isNew} />
      </Section>
      <Section title="Workers">
        <ScalingFields {...props} />
      </Section>
      <Section title="Volumes and models">
        <StorageFields {...props} />
      </Section>
      <Section title="More">
        <Folded
          title="Start command, ports, disk, registry, timeout, FlashBoot, origins, data centers"
          isWrong={MORE.some(name => at(problems, `$.${name}`).length > 0)}
        >
          <ContainerFields {...props} />
          <RareFields {...props} />
        </Folded>
      </Section>
    </>
  )
}

function ScalingFields({ draft, set, problems }: FieldsProps<Draft>) {
  const isCount = draft.scaling === 'REQUEST_COUNT'
  const isBalancing = draft.type === 'LOAD_BALANCER'
  return (
    <div class="columns tight">
      <NumberField
        label="Always on"
        path="$.workers.min"
        problems={problems}
        value={draft.min}
        onChange={min => set({ min })}
        min={0}
        max={1000}
        hint="Workers that stay without work"
      />
      <NumberField
        label="At most"
        path="$.workers.max"
        problems={problems}
        value={draft.max}
        onChange={max => set({ max })}
        min={0}
        max={1000}
        hint="0 pauses the endpoint"
      />
      {isCount && !isBalancing ? null : (
        <NumberField
          label="Idle timeout, seconds"
          path="$.workers.idleTimeout"
          problems={problems}
          value={draft.idleTimeout}
          onChange={idleTimeout => set({ idleTimeout })}
          min={1}
          max={3600}
          hint="How long a worker waits for more work"
        />
      )}
      <SelectField
        label="Scale on"
        path="$.scaling.type"
        problems={problems}
        value={draft.scaling}
        options={[
          ...(isBalancing ? [] : [['QUEUE_DELAY', 'the wait of jobs'] as const]),
          ['REQUEST_COUNT', isBalancing ? 'requests in flight' : 'unfinished jobs'] as const,
        ]}
        onChange={scaling => set({ scaling, scalingValue: '4' })}
      />
      <NumberField
        label={isCount ? `${isBalancing ? 'Requests' : 'Jobs'} a worker` : 'Longest wait, seconds'}
        path={isCount ? '$.scaling.requestCount' : '$.scaling.queueDelay'}
        problems={problems}
        value={draft.scalingValue}
        onChange={scalingValue => set({ scalingValue })}
        min={isCount ? 1 : 0.5}
        max={isCount ? 1_000_000 : 86_400}
        step={isCount ? 1 : 'any'}
      />
    </div>
  )
}

function StorageFields({ draft, set, problems }: FieldsProps<Draft>) {
  const volumes = useResource('network volumes', signal => api('GET /v2/network-volumes', { signal }), {
    on: ofChange(/NetworkVolume/i),
  })
  const known = (volumes.data?.networkVolumes ?? []).map(({ id, name, size }) => [id, `${name}, ${size} GB`] as const)
  return (
    <>
      {known.length === 0 && draft.volumes.length === 0 ? null : (
        <TickList
          label="Network volumes"
          path="$.networkVolumes"
          problems={problems}
          options={known}
          values={draft.volumes}
          onChange={next => set({ volumes: next })}
        />
      )}
      <AreaField
        label="Models of Hugging Face"
        path="$.modelReferences"
        problems={problems}
        value={draft.models}
        onChange={models => set({ models })}
        placeholder="owner/name:revision"
        hint="One a line. They are on the machine before a worker starts."
      />
    </>
  )
}

function RareFields({ draft, set, problems }: FieldsProps<Draft>) {
  return (
    <>
      <div class="columns tight">
        <NumberField
          label="Timeout of an attempt, seconds"
          path="$.timeout"
          problems={problems}
          value={draft.timeout}
          onChange={timeout => set({ timeout })}
          min={5}
          max={604_800}
          step="any"
        />
        <SelectField
          label="FlashBoot"
          path="$.flashboot"
          problems={problems}
          value={draft.flashboot}
          options={[
            ['OFF', 'Off: idle workers end'],
            ['FLASHBOOT', 'On: idle workers are frozen'],
            ['PRIORITY_FLASHBOOT', 'First: frozen before others'],
          ]}
          onChange={flashboot => set({ flashboot })}
        />
      </div>
      <AreaField
        label="Origins of web pages that may call it"
        path="$.corsOrigins"
        problems={problems}
        value={draft.origins}
        onChange={origins => set({ origins })}
        placeholder="https://app.example"
        hint="One a line, or * for all"
      />
      <TextField
        label="Data centers"
        path="$.dataCenterIds"
        problems={problems}
        value={draft.dataCenters}
        onChange={dataCenters => set({ dataCenters })}
        hint="Names for tools that expect them; all workers run here"
      />
    </>
  )
}
