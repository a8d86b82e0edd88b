/** Creates an endpoint from a folder, an image or a template. */
import { useEffect, useState } from 'preact/hooks'
import { api, type Body as BodyOf } from '../../client/api.ts'
import type { Endpoint, Template } from '../../client/api-types.d.ts'
import { useResource } from '../../client/resource.ts'
import { mayManage, mayOperate, who } from '../../client/session.ts'
import { changeTopic } from '../../client/topics.ts'
import { announce } from '../../parts/announce.tsx'
import { Choice, Code, Empty, Loaded, PageHead, Section } from '../../parts/basic.tsx'
import { FormProblems, SelectField } from '../../parts/form.tsx'
import { navigate, query } from '../../router.ts'
import { curlCommand } from '../endpoint-form/curl.ts'
import { containerDraft, createBody, type Draft, NEW_DRAFT } from '../endpoint-form/draft.ts'
import { EndpointFields, FIELDS } from '../endpoint-form/endpoint-fields.tsx'
import { repeatedNames } from '../endpoint-form/env-text.ts'
import { useGpus } from '../endpoint-form/hardware-fields.tsx'
import { shownAt } from '../endpoint-form/parts.tsx'
import { useChecked } from '../endpoint-form/use-checked.ts'
import { copiedDraft } from './ready-draft.ts'
import { ReadyFields } from './ready-fields.tsx'

type Start = 'image' | 'ready' | 'folder' | 'template'

const HEAD = <PageHead title="New endpoint" above={<a href="/endpoints">Endpoints</a>} />

/** The page that creates endpoints. */
export function NewEndpoint() {
  if (mayManage('write')) return <NewForm />
  return (
    <>
      {HEAD}
      <Empty title="This key may not create endpoints" />
    </>
  )
}

function NewForm() {
  const from = query.value.get('from')
  const original = useResource(from === null ? null : `copied endpoint ${from}`, signal =>
    api('GET /v2/serverless/{id}', { path: { id: from ?? '' }, signal }),
  )
  if (from === null) return <Form beginning={NEW_DRAFT} />
  if (original.data === null)
    return (
      <>
        {HEAD}
        <Loaded of={original}>{() => null}</Loaded>
      </>
    )
  return <Form beginning={copiedDraft(original.data)} copied={original.data} />
}

function Form({ beginning, copied }: { readonly beginning: Draft; readonly copied?: Endpoint }) {
  const [draft, setDraft] = useState(beginning)
  const set = (changes: Partial<Draft>) => setDraft(previous => ({ ...previous, ...changes }))
  const body = createBody(draft)
  const { problems, isSending, send } = useChecked('POST', '/v2/serverless', body)
  useOwnGpu(draft, set, copied === undefined)
  const submit = (event: Event) => {
    event.preventDefault()
    void send(async () => {
      const { id, name } = await api('POST /v2/serverless', { body: body as BodyOf<'POST /v2/serverless'> })
      announce(`Created the endpoint ${name}`)
      navigate(`/endpoints/${id}`)
    })
  }
  return (
    <>
      {HEAD}
      <form class="form-page" onSubmit={submit} noValidate>
        <div>
          {copied === undefined ? (
            <StartFields draft={draft} set={set} />
          ) : (
            <p class="notice">
              The form has the configuration of {copied.name}. Its keys, jobs and releases are not copied.
            </p>
          )}
          <EndpointFields draft={draft} set={set} problems={problems} isNew />
        </div>
        <div class="beside">
          <Section title="The same call">
            <Code text={curlCommand('POST', `${who.value!.server.url}/v2/serverless`, body)} />
            <FormProblems problems={problems} shown={shownAt(problems, FIELDS)} />
            {Object.keys(problems).length === 0 ? null : <p class="wrong">Some fields are not valid yet.</p>}
            <button type="submit" class="button main" disabled={isSending || repeatedNames(draft.env).length > 0}>
              Create endpoint
            </button>
          </Section>
        </div>
      </form>
    </>
  )
}

/** Gives an endpoint GPUs on a machine that has them, unless somebody chose the hardware. */
function useOwnGpu({ hardware, pools }: Draft, set: (changes: Partial<Draft>) => void, isWanted: boolean): void {
  const pool = useGpus().find(gpu => gpu.pool !== null && gpu.maxCount.secure > 0)?.pool
  useEffect(() => {
    if (isWanted && pool != null && pools.length === 0 && hardware === 'cpu') set({ hardware: 'gpu', pools: [pool] })
  }, [pool])
}

function StartFields({ draft, set }: { readonly draft: Draft; readonly set: (changes: Partial<Draft>) => void }) {
  const templateId = query.value.get('template')
  const [start, setStart] = useState<Start>(templateId === null ? 'image' : 'template')
  const [chosen, setChosen] = useState('')
  const accountTemplates = useResource('form templates', signal => api('GET /v2/templates', { signal }), {
    on: changeTopic(/Template$/i),
  })
  const shared = useResource('form public templates', signal =>
    api('GET /v2/catalog/templates', { query: { source: 'community' }, signal }),
  )
  const templates = new Map(
    [...(shared.data?.templates ?? []), ...(accountTemplates.data?.templates ?? [])]
      .filter(({ serverless }) => serverless)
      .map(template => [template.id, template]),
  )
  const choose = (template: Template | undefined) => {
    if (template === undefined) return
    setChosen(template.id)
    const cudaVersions = template.allowedCudaVersions.join(', ')
    set({ ...containerDraft(template), cudaVersions, ...(draft.name === '' ? { name: template.name } : {}) })
  }
  useEffect(() => {
    if (templateId !== null && chosen === '') choose(templates.get(templateId))
  }, [templates.size])
  const begin = (next: Start) => {
    setStart(next)
    if (next === 'image' || next === 'folder') set({ image: next === 'folder' ? 'dir:' : '' })
  }
  return (
    <Section title="Start from">
      <div class="starts">
        <Choice<Start>
          label="Start from"
          value={start}
          options={[
            ['image', 'An image'],
            ['ready', 'A ready worker'],
            ['template', 'A template'],
            ...(mayOperate() ? [['folder', 'A folder'] as const] : []),
          ]}
          onChange={begin}
        />
        {start !== 'template' ? null : templates.size === 0 ? (
          <span>
            No template for endpoints yet. <a href="/templates">Templates</a>
          </span>
        ) : (
          <SelectField
            label="Template"
            value={chosen}
            options={[['', 'Choose one'], ...[...templates.values()].map(({ id, name }) => [id, name] as const)]}
            onChange={id => choose(templates.get(id))}
          />
        )}
      </div>
      {start === 'ready' ? <ReadyFields draft={draft} set={set} /> : null}
      {start === 'template' ? (
        <p class="hint">The form receives its values. Later changes of the template do not change the endpoint.</p>
      ) : null}
    </Section>
  )
}
