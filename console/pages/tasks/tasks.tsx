/** Tasks of apps: workers that run one function and end. */
import { useAll } from '../../client/all.ts'
import { api, request } from '../../client/api.ts'
import type { Pod } from '../../client/api-types.d.ts'
import { useResource } from '../../client/resource.ts'
import { mayManage } from '../../client/session.ts'
import { anyEndpointTopic, endpointTopic } from '../../client/topics.ts'
import { Ago, State } from '../../parts/basic.tsx'
import { Confirm } from '../../parts/dialog.tsx'
import { Log, MAX_LINES } from '../../parts/log.tsx'
import type { Column } from '../../parts/table.tsx'
import { type Action, closeRow, Drawer, Part, ResourcePage } from '../../parts/things.tsx'
import { taskState } from './task-state.ts'

/** Interval of reads of a reason: a sentence that counts seconds changes without an event. */
const AGAIN_MS = 5_000

const COLUMNS: readonly Column<Pod>[] = [
  { id: 'name', title: 'Name', cell: ({ name }) => name, sort: ({ name }) => name },
  {
    id: 'state',
    title: 'State',
    width: '160px',
    cell: task => <TaskState of={task} />,
    sort: task => taskState(task).word,
  },
  {
    id: 'why',
    title: 'Why it waits',
    width: 'minmax(0, 2fr)',
    cell: task => (taskState(task).tone === 'wait' ? <Reason id={task.id} /> : ''),
    isExtra: true,
  },
  { id: 'hardware', title: 'Runs on', width: '140px', cell: hardware, isExtra: true },
  {
    id: 'age',
    title: 'Created',
    width: '110px',
    cell: ({ createdAt }) => <Ago at={createdAt} suffix=" ago" />,
    sort: ({ createdAt }) => createdAt,
  },
]

/** The page of tasks. */
export function Tasks() {
  const tasks = useAll('GET /v2/pods', 'pods', anyEndpointTopic)
  return (
    <ResourcePage
      title="Tasks"
      what="task"
      purpose="A task is one call of an @app.task function of RunPod's SDK: a worker of its own runs it and ends. Ended tasks are kept for a day."
      of={tasks}
      columns={COLUMNS}
      searchText={({ id, name, image }) => `${name} ${id} ${image}`}
      detail={task => <Detail of={task} onChange={tasks.reload} />}
    />
  )
}

function TaskState({ of }: { readonly of: Pod }) {
  const { tone, word } = taskState(of)
  return <State tone={tone}>{word}</State>
}

function hardware({ gpu, vcpus, memoryGb }: Pod): string {
  const gpus = gpu.count === 0 ? [] : [`${gpu.count} × ${gpu.type ?? 'GPU'}`]
  const cpu = vcpus === null ? [] : [`${vcpus} vCPU`]
  const memory = memoryGb === null ? [] : [`${memoryGb} GB`]
  return [...gpus, ...cpu, ...memory].join(', ') || '–'
}

/** The sentence of the server about a task. */
function Reason({ id }: { readonly id: string }) {
  const reason = useResource(
    `task reason ${id}`,
    async signal => {
      const response = await request('GET', `/ops/why/${encodeURIComponent(id)}`, { signal })
      const { explanations } = (await response.json()) as Explained
      return explanations[0] ?? null
    },
    { on: endpointTopic(id), everyMs: AGAIN_MS },
  )
  if (reason.data === null) return null
  const { summary, action } = reason.data
  return (
    <span title={action === null ? summary : `${summary}: ${action}`}>
      {summary}
      {action === null ? '' : `: ${action}`}
    </span>
  )
}

interface Explained {
  readonly explanations: readonly { readonly summary: string; readonly action: string | null }[]
}

function Detail({ of, onChange }: { readonly of: Pod; readonly onChange: () => void }) {
  const { id, name, status, image, args, env, networkVolumeId, createdAt, startedAt, workerId, startedBy } = of
  const hasEnded = status === 'EXITED'
  const action = hasEnded ? 'Forget the task' : 'End the task'
  const actions: readonly Action[] = [
    [
      action,
      onClose => (
        <Confirm
          title={`${action} ${name}?`}
          action={action}
          onClose={onClose}
          onConfirm={async () => {
            await api('DELETE /v2/pods/{id}', { path: { id } })
            closeRow()
            onChange()
          }}
        >
          <p>{hasEnded ? 'Its output is deleted.' : 'Its worker ends at once, and its output is deleted.'}</p>
        </Confirm>
      ),
      'danger',
    ],
  ]
  const variables = Object.keys(env)
  return (
    <Drawer
      title={name}
      facts={[
        ['State', <TaskState of={of} />],
        ...(hasEnded ? [] : [['Now', <Reason id={id} />] as const]),
        ['Created', <Ago at={createdAt} suffix=" ago" />],
        ['Started', startedAt === null ? 'not yet' : <Ago at={startedAt} suffix=" ago" />],
        ['Started by', startedBy === null ? 'a key of the account' : <code>{startedBy}</code>],
        ['Runs on', hardware(of)],
        ['Image', <code>{image}</code>],
        ...(args === '' ? [] : [['Command', <code>{args}</code>] as const]),
        ['Network volume', networkVolumeId ?? 'none'],
        ['Variables', variables.length === 0 ? 'none' : variables.join(', ')],
        ['Worker', workerId === null ? 'none yet' : <code>{workerId}</code>],
        ['Id', <code>{id}</code>],
      ]}
      actions={mayManage('write') ? actions : []}
    >
      <Part title="Log">
        <Log what="task" path={`/v2/pods/${encodeURIComponent(id)}/logs?tail=${MAX_LINES}`} />
      </Part>
    </Drawer>
  )
}
