/** Models: those that clients can name, other names for them, and those on the disk of the machine. */
import { useState } from 'preact/hooks'
import { api } from '../../client/api.ts'
import type { ModelAlias } from '../../client/api-types.d.ts'
import type { LiveEvent } from '../../client/live.ts'
import { useResource } from '../../client/resource.ts'
import { mayManage, mayOperate, who } from '../../client/session.ts'
import { changeTopic } from '../../client/topics.ts'
import { duration } from '../../format.ts'
import { announce } from '../../parts/announce.tsx'
import { Ago, Button, Code, Empty, Loaded, PageHead, Section, State, type Tone } from '../../parts/basic.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { type Action, Drawer, deletion, Part } from '../../parts/things.tsx'
import { type Model, readModels, stateWords } from '../playground/models.ts'
import { AliasForm } from './alias-form.tsx'
import { MachineModels } from './machine-models.tsx'

const TONES: Readonly<Record<string, Tone>> = {
  ready: 'good',
  sleeping: 'frozen',
  starting: 'busy',
  cold: 'off',
  paused: 'off',
}

/** The states of models whose worker can be started. */
const STARTABLE = new Set(['sleeping', 'cold'])

const AGAIN_MS = 15_000

const isAliasChange = changeTopic(/alias/i)
const changesModels = (event: LiveEvent) => /^(?:worker|endpoint)\./.test(event.type) || isAliasChange(event)

/** The page of models. */
export function Models() {
  return (
    <>
      <PageHead title="Models" />
      <Named />
      {mayManage('read') ? <Aliases /> : null}
      {mayOperate() ? <MachineModels /> : null}
    </>
  )
}

function Named() {
  const models = useResource('named models', readModels, { on: changesModels, everyMs: AGAIN_MS })
  const { url } = who.value!.server
  return (
    <Section title="For clients">
      <p class="hint">
        OpenAI clients reach all of them at one address; the name in “model” decides which endpoint answers.
      </p>
      <Code text={`${url}/openai/v1`} what="address" />
      <Loaded of={models}>
        {rows => (
          <Table
            label="Models"
            rows={rows}
            columns={mayManage('write') ? [...COLUMNS, warmColumn(models.reload)] : COLUMNS}
            rowKey={({ name }) => name}
            initialSort={{ column: 'name', isDown: false }}
            empty={
              <Empty title="No model that this key may call">
                Each endpoint is a model by its name, for keys that may submit its jobs.
              </Empty>
            }
          />
        )}
      </Loaded>
    </Section>
  )
}

const COLUMNS: readonly Column<Model>[] = [
  { id: 'name', title: 'Name', cell: ({ name }) => name, sort: ({ name }) => name },
  {
    id: 'endpoint',
    title: 'Endpoint',
    cell: ({ endpointId }) => (
      <a href={`/endpoints/${encodeURIComponent(endpointId)}`} tabIndex={-1}>
        {endpointId}
      </a>
    ),
    sort: ({ endpointId }) => endpointId,
    isExtra: true,
  },
  {
    id: 'state',
    title: 'State',
    width: '200px',
    cell: model => <State tone={TONES[model.state] ?? 'off'}>{stateWords({ ...model, startS: null })}</State>,
    sort: ({ state }) => state,
  },
  {
    id: 'start',
    title: 'Typical start',
    width: '130px',
    cell: ({ startS }) => (startS === null ? <span class="faint">not known yet</span> : duration(startS * 1_000)),
    sort: ({ startS }) => startS ?? Number.POSITIVE_INFINITY,
    isExtra: true,
  },
]

function warmColumn(reload: () => void): Column<Model> {
  const warm = async (model: string) => {
    const { state } = await api('POST /v2/account/models/warm', { body: { model } })
    announce(state === 'ready' ? `${model} is ready` : `A worker of ${model} starts`)
    reload()
  }
  return {
    id: 'warm',
    title: 'Start',
    width: '90px',
    cell: ({ name, state }) =>
      STARTABLE.has(state) ? (
        <Button kind="quiet" onPress={() => warm(name)} aria-label={`Warm ${name}`}>
          Warm
        </Button>
      ) : null,
  }
}

const ALIAS_COLUMNS: readonly Column<ModelAlias>[] = [
  { id: 'name', title: 'Name', cell: ({ name }) => name, sort: ({ name }) => name },
  {
    id: 'endpoints',
    title: 'Endpoints, the preferred one first',
    width: 'minmax(0, 1.5fr)',
    cell: ({ endpoints }) => endpoints.map(({ name }) => name).join(', else ') || 'none is left',
  },
]

function Aliases() {
  const [form, setForm] = useState<{ readonly of?: ModelAlias } | null>(null)
  const [opened, setOpened] = useState<string | null>(null)
  const aliases = useResource(
    'model aliases',
    async signal => (await api('GET /v2/account/model-aliases', { signal })).aliases,
    { on: event => isAliasChange(event) || event.type === 'endpoint.deleted' },
  )
  const shown = aliases.data?.find(({ name }) => name === opened)
  return (
    <Section
      title="Other names"
      actions={mayManage('write') ? <Button onPress={() => setForm({})}>New name</Button> : undefined}
    >
      <p class="hint">A name that programs already use, such as gpt-4o, for one endpoint or several in turn.</p>
      <Loaded of={aliases}>
        {rows => (
          <Table
            label="Other names"
            rows={rows}
            columns={ALIAS_COLUMNS}
            rowKey={({ name }) => name}
            onOpen={({ name }) => setOpened(name)}
            height="content"
            empty="No other name yet."
          />
        )}
      </Loaded>
      {form === null ? null : <AliasForm {...form} onClose={() => setForm(null)} onDone={aliases.reload} />}
      {shown === undefined ? null : (
        <AliasDrawer key={shown.name} of={shown} onClose={() => setOpened(null)} onDone={aliases.reload} />
      )}
    </Section>
  )
}

function AliasDrawer({
  of,
  onClose,
  onDone,
}: {
  readonly of: ModelAlias
  readonly onClose: () => void
  readonly onDone: () => void
}) {
  const { name, endpoints, createdAt } = of
  const actions: readonly Action[] = [
    ['Change', close => <AliasForm of={of} onClose={close} onDone={onDone} />],
    deletion({
      what: 'name',
      name,
      onConfirm: async () => {
        await api('DELETE /v2/account/model-aliases', { query: { name } })
        onClose()
        onDone()
      },
      children: <p>Requests with it are refused. The endpoints stay.</p>,
    }),
  ]
  return (
    <Drawer
      title={name}
      facts={[['Created', <Ago at={createdAt} suffix=" ago" />]]}
      actions={mayManage('write') ? actions : []}
      onClose={onClose}
    >
      <Part title="Endpoints, the preferred one first">
        <ol>
          {endpoints.map(({ id, name: endpointName }) => (
            <li key={id}>
              <a href={`/endpoints/${id}`}>{endpointName}</a> <span class="faint">{id}</span>
            </li>
          ))}
        </ol>
      </Part>
    </Drawer>
  )
}
