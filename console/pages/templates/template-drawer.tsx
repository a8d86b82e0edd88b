/** One template: its values, or its form for keys that may change it. */
import { useState } from 'preact/hooks'
import { api, type Body as BodyOf } from '../../client/api.ts'
import type { Template } from '../../client/api-types.d.ts'
import { mayManage } from '../../client/session.ts'
import { announce } from '../../parts/announce.tsx'
import { Button, Empty } from '../../parts/basic.tsx'
import { Confirm, Dialog } from '../../parts/dialog.tsx'
import { CheckField, FormProblems, useSending } from '../../parts/form.tsx'
import { bound, type FieldsProps } from '../endpoint-form/bound.tsx'
import { ContainerFields, ImageFields } from '../endpoint-form/container-fields.tsx'
import { listLeaves } from '../endpoint-form/difference.ts'
import { repeatedNames } from '../endpoint-form/env-text.ts'
import { Facts, Folded, shownAt } from '../endpoint-form/parts.tsx'
import {
  NEW_TEMPLATE,
  newTemplateBody,
  type TemplateDraft,
  templateBody,
  templateChanges,
  templateDraft,
} from './template-draft.ts'

const FIELDS = [
  'name',
  'image',
  'env',
  'args',
  'ports',
  'disk',
  'registry',
  'category',
  'allowedCudaVersions',
  'mounts',
].map(name => `$.${name}`)

/** A template in a drawer. @param id `new` for one to create */
export function TemplateDrawer({ id, ...rest }: FormProps & { readonly id: string }) {
  const { template, onClose } = rest
  if (id !== 'new' && template === undefined)
    return (
      <Dialog kind="drawer" title="Template" onClose={onClose}>
        <Empty title="This template does not exist" />
      </Dialog>
    )
  if (!mayManage('write'))
    return (
      <Dialog kind="drawer" title={template?.name ?? 'Template'} onClose={onClose}>
        {template === undefined ? null : <Facts of={listLeaves(templateBody(templateDraft(template)))} />}
      </Dialog>
    )
  return <Form {...rest} />
}

interface FormProps {
  readonly template: Template | undefined
  readonly onChange: () => void
  readonly onClose: () => void
}

function Form({ template, onChange, onClose }: FormProps) {
  const [original] = useState(() => (template === undefined ? NEW_TEMPLATE : templateDraft(template)))
  const [draft, setDraft] = useState(original)
  const [isDeleting, setDeleting] = useState(false)
  const { problems, isSending, send } = useSending()
  const changes = templateChanges(original, draft)
  const save = async () => {
    const isDone = await send(() =>
      template === undefined
        ? api('POST /v2/templates', { body: newTemplateBody(draft) as BodyOf<'POST /v2/templates'> })
        : api('PATCH /v2/templates/{id}', {
            path: { id: template.id },
            body: changes as BodyOf<'PATCH /v2/templates/{id}'>,
          }),
    )
    if (!isDone) return
    announce(template === undefined ? `Created the template ${draft.name}` : 'Saved the template')
    onChange()
    onClose()
  }
  const isReady = !isSending && Object.keys(changes).length > 0 && repeatedNames(draft.env).length === 0
  return (
    <Dialog
      kind="drawer"
      title={template?.name ?? 'New template'}
      onClose={onClose}
      actions={
        <>
          {template === undefined ? null : (
            <>
              <Button kind="danger" onPress={() => setDeleting(true)}>
                Delete template
              </Button>
              {template.serverless ? (
                <a class="button" href={`/endpoints/new?template=${encodeURIComponent(template.id)}`}>
                  New endpoint from it
                </a>
              ) : null}
            </>
          )}
          <Button kind="main" onPress={save} disabled={!isReady}>
            {template === undefined ? 'Create template' : 'Save changes'}
          </Button>
        </>
      }
    >
      {template === undefined ? null : (
        <p class="hint">Endpoints that GraphQL linked to it get a new release when it changes. Others have a copy.</p>
      )}
      <FormProblems problems={problems} shown={shownAt(problems, FIELDS)} />
      <Fields draft={draft} set={next => setDraft({ ...draft, ...next })} problems={problems} />
      {isDeleting && template !== undefined ? (
        <Confirm
          title={`Delete ${template.name}?`}
          action="Delete template"
          onConfirm={async () => {
            await api('DELETE /v2/templates/{id}', { path: { id: template.id } })
            announce(`Deleted ${template.name}`)
            onChange()
            onClose()
          }}
          onClose={() => setDeleting(false)}
        >
          <p>This cannot be undone. A template that an endpoint is linked to stays.</p>
        </Confirm>
      ) : null}
    </Dialog>
  )
}

function Fields(props: FieldsProps<TemplateDraft>) {
  const { draft, set } = props
  const { text, select } = bound(props)
  return (
    <>
      {text('name', 'Name')}
      <ImageFields {...props} />
      <ContainerFields {...props} />
      <CheckField
        label="For endpoints"
        value={draft.serverless}
        onChange={serverless => set({ serverless })}
        hint="Endpoints start only from such templates"
      />
      <CheckField
        label="All accounts of this server see it"
        value={draft.public}
        onChange={next => set({ public: next })}
        hint="With its variables and their values"
      />
      <Folded title="Category, CUDA, volume">
        <div class="columns tight">
          {select(
            'category',
            'Category',
            ['NVIDIA', 'AMD', 'CPU'].map(name => [name, name] as const),
          )}
          {text('cudaVersions', 'Only these CUDA versions', {
            path: 'allowedCudaVersions',
            placeholder: '12.4, 12.8',
          })}
        </div>
        {draft.serverless ? null : <OtherFields {...props} />}
      </Folded>
    </>
  )
}

/** Fields of a template that endpoints do not use. */
function OtherFields(props: FieldsProps<TemplateDraft>) {
  const { draft, set } = props
  const { text, number } = bound(props)
  return (
    <>
      <div class="columns tight">
        {number('volume', 'Volume, GB', [10, 1_000_000], { path: 'mounts.persistent.size' })}
        {text('volumePath', 'Path of the volume', { path: 'mounts.persistent.path' })}
      </div>
      <CheckField label="Start SSH" value={draft.startSsh} onChange={startSsh => set({ startSsh })} />
      <CheckField label="Start Jupyter" value={draft.startJupyter} onChange={startJupyter => set({ startJupyter })} />
    </>
  )
}
