/** All fields of an endpoint, the rare ones folded. */
import { api } from '../../client/api.ts'
import { useResource } from '../../client/resource.ts'
import { ofChange } from '../../client/topics.ts'
import { Section } from '../../parts/basic.tsx'
import { bound, type FieldsProps } from './bound.tsx'
import { ContainerFields, ImageFields } from './container-fields.tsx'
import type { Draft } from './draft.ts'
import { HardwareFields } from './hardware-fields.tsx'
import { at, Folded, TickList } from './parts.tsx'

/** Rare members, whose fields are folded. */
const MORE = ['args', 'ports', 'disk', 'registry', 'timeout', 'flashboot', 'corsOrigins', 'domain', 'dataCenterIds']

/** Paths of the members that have a field. */
export const FIELDS: readonly string[] = [
  ...['name', 'type', 'image', 'env', 'gpu.pools', 'gpu.count', 'gpu.excludedTypes', 'gpu.minCudaVersion'],
  ...['gpu.allowedCudaVersions', 'workers.min', 'workers.max', 'workers.idleTimeout', 'scaling'],
  ...['networkVolumes', 'modelReferences', ...MORE],
].map(name => `$.${name}`)

/** The fields of an endpoint. @param isNew whether its type and kind of hardware can still be chosen */
export function EndpointFields({ isNew, ...props }: FieldsProps<Draft> & { readonly isNew: boolean }) {
  const { set, problems } = props
  const { text, select } = bound(props)
  const chooseType = (type: string) =>
    set(type === 'QUEUE' ? { type } : { type: 'LOAD_BALANCER', scaling: 'REQUEST_COUNT', scalingValue: '4' })
  return (
    <>
      <Section title="What runs">
        <div class="columns tight">
          {text('name', 'Name')}
          {isNew
            ? select(
                'type',
                'Type',
                [
                  ['QUEUE', 'Queue: takes jobs'],
                  ['LOAD_BALANCER', 'Load balancing: takes requests'],
                ],
                { onChange: chooseType },
              )
            : null}
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
          title="Start command, ports, disk, registry, timeout, FlashBoot, origins, domain, data centers"
          isWrong={MORE.some(name => at(problems, `$.${name}`).length > 0)}
        >
          <ContainerFields {...props} />
          <RareFields {...props} />
        </Folded>
      </Section>
    </>
  )
}

function ScalingFields(props: FieldsProps<Draft>) {
  const { draft, set } = props
  const { number, select } = bound(props)
  const isCount = draft.scaling === 'REQUEST_COUNT'
  const isBalancing = draft.type === 'LOAD_BALANCER'
  return (
    <div class="columns tight">
      {number('min', 'Always on', [0, 1_000], { path: 'workers.min', hint: 'Workers that stay without work' })}
      {number('max', 'At most', [0, 1_000], { path: 'workers.max', hint: '0 pauses the endpoint' })}
      {isCount && !isBalancing
        ? null
        : number('idleTimeout', 'Idle timeout, seconds', [1, 3_600], {
            path: 'workers.idleTimeout',
            hint: 'How long a worker waits for more work',
          })}
      {select(
        'scaling',
        'Scale on',
        [
          ...(isBalancing ? [] : [['QUEUE_DELAY', 'the wait of jobs'] as const]),
          ['REQUEST_COUNT', isBalancing ? 'requests in flight' : 'unfinished jobs'],
        ],
        { path: 'scaling.type', onChange: next => set({ scaling: next as Draft['scaling'], scalingValue: '4' }) },
      )}
      {isCount
        ? number('scalingValue', `${isBalancing ? 'Requests' : 'Jobs'} a worker`, [1, 1_000_000], {
            path: 'scaling.requestCount',
          })
        : number('scalingValue', 'Longest wait, seconds', [0.5, 86_400, 'any'], { path: 'scaling.queueDelay' })}
    </div>
  )
}

function StorageFields(props: FieldsProps<Draft>) {
  const { draft, set, problems } = props
  const volumes = useResource('form volumes', signal => api('GET /v2/network-volumes', { signal }), {
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
      {bound(props).lines('models', 'Models of Hugging Face', {
        path: 'modelReferences',
        placeholder: 'owner/name:revision',
        hint: 'One a line. They are on the machine before a worker starts.',
      })}
    </>
  )
}

function RareFields(props: FieldsProps<Draft>) {
  const { text, number, select, lines } = bound(props)
  return (
    <>
      <div class="columns tight">
        {number('timeout', 'Timeout of an attempt, seconds', [5, 604_800, 'any'])}
        {select('flashboot', 'FlashBoot', [
          ['OFF', 'Off: idle workers end'],
          ['FLASHBOOT', 'On: idle workers are frozen'],
          ['PRIORITY_FLASHBOOT', 'First: frozen before others'],
        ])}
      </div>
      {lines('origins', 'Origins of web pages that may call it', {
        path: 'corsOrigins',
        placeholder: 'https://app.example',
        hint: 'One a line, or * for all',
      })}
      {props.draft.type === 'LOAD_BALANCER'
        ? text('domain', 'Domain of its own', {
            placeholder: 'chat.example.org',
            hint: 'Its name in DNS has to lead to this server',
          })
        : null}
      {text('dataCenters', 'Data centers', {
        path: 'dataCenterIds',
        hint: 'Names for tools that expect them; all workers run here',
      })}
    </>
  )
}
