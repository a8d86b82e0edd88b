/** All fields of an endpoint, the rare ones folded. */
import { api } from '../../client/api.ts'
import { useResource } from '../../client/resource.ts'
import { changeTopic } from '../../client/topics.ts'
import { Section } from '../../parts/basic.tsx'
import { bound, type FieldsProps } from './bound.tsx'
import { ContainerFields, ImageFields } from './container-fields.tsx'
import type { Draft } from './draft.ts'
import { HardwareFields } from './hardware-fields.tsx'
import { Folded, problemsAt, TickList } from './parts.tsx'
import { SIMPLE_NAMES, type SimpleName, simpleField } from './simple-fields.ts'

/** Folded fields with common controls. */
const RARE = SIMPLE_NAMES.filter(name => name !== 'modelReferences')
/** Rarely used members, whose fields are folded. */
const MORE = ['args', 'ports', 'disk', 'registry', ...RARE]

/** Paths of the members that have a field. */
export const FIELDS: readonly string[] = [
  ...['name', 'type', 'image', 'env', 'gpu.pools', 'gpu.count', 'gpu.excludedTypes', 'gpu.minCudaVersion'],
  'gpu.memoryGb',
  ...['gpu.allowedCudaVersions', 'workers.min', 'workers.max', 'workers.idleTimeout', 'scaling'],
  ...['networkVolumes', 'modelReferences', ...MORE],
].map(name => `$.${name}`)

/** The fields of an endpoint. @param isNew true while its type and kind of hardware can be chosen */
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
          title={`Start command, ports, disk, registry, ${RARE.map(name => simpleField(name).title).join(', ')}`}
          isWrong={MORE.some(name => problemsAt(problems, `$.${name}`).length > 0)}
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
      {number('min', 'Always on', [0, 1_000], { path: 'workers.min', hint: 'Workers that run without jobs too' })}
      {number('max', 'At most', [0, 1_000], { path: 'workers.max', hint: '0 pauses the endpoint' })}
      {isCount && !isBalancing
        ? null
        : number('idleTimeout', 'Idle timeout, seconds', [1, 3_600], {
            path: 'workers.idleTimeout',
            hint: 'Time that a worker waits for more jobs',
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
    on: changeTopic(/NetworkVolume/i),
  })
  const volumeOptions = (volumes.data?.networkVolumes ?? []).map(
    ({ id, name, size }) => [id, `${name}, ${size} GB`] as const,
  )
  return (
    <>
      {volumeOptions.length === 0 && draft.volumes.length === 0 ? null : (
        <TickList
          label="Network volumes"
          path="$.networkVolumes"
          problems={problems}
          options={volumeOptions}
          values={draft.volumes}
          onChange={next => set({ volumes: next })}
        />
      )}
      {simpleControl(props, 'modelReferences')}
    </>
  )
}

function RareFields(props: FieldsProps<Draft>) {
  const names = RARE.filter(name => [undefined, props.draft.type].includes(simpleField(name).only))
  const isShort = (name: SimpleName) => ['seconds', 'choice', 'flag'].includes(simpleField(name).kind)
  return (
    <>
      <div class="columns tight">{names.filter(isShort).map(name => simpleControl(props, name))}</div>
      {names.filter(name => !isShort(name)).map(name => simpleControl(props, name))}
    </>
  )
}

/** The control of a row of the table. */
function simpleControl(props: FieldsProps<Draft>, name: SimpleName) {
  const { text, number, select, lines } = bound<Draft>(props)
  const { kind, label, options = [], range = [0, Number.MAX_SAFE_INTEGER], ...fieldOptions } = simpleField(name)
  if (kind === 'seconds') return number(name, label, range, fieldOptions)
  if (kind === 'choice' || kind === 'flag') return select(name, label, options, fieldOptions)
  return kind === 'lines' ? lines(name, label, fieldOptions) : text(name, label, fieldOptions)
}
