/** What is typed into the form of a template, and the bodies of calls that it means. */
import { type Body, numberOf, words } from '../endpoint-form/body.ts'
import { type ContainerDraft, changedMembers, containerBody, containerDraft, without } from '../endpoint-form/draft.ts'

/** What is typed about a template. */
export interface TemplateDraft extends ContainerDraft {
  readonly name: string
  readonly serverless: boolean
  readonly public: boolean
  readonly category: string
  readonly startSsh: boolean
  readonly startJupyter: boolean
  readonly cudaVersions: string
  /** Size of a volume in GB; empty for none. Templates of endpoints have none. */
  readonly volume: string
  readonly volumePath: string
}

/** What the API takes where a new template says nothing. */
const DEFAULTS: Body = {
  args: '',
  env: {},
  ports: [],
  disk: 10,
  registry: null,
  mounts: {},
  serverless: false,
  public: false,
  category: 'NVIDIA',
  startSsh: true,
  startJupyter: true,
  allowedCudaVersions: [],
}

/** A template as the API shows it, as far as the form reads it. */
export interface TemplateValues {
  readonly name: string
  readonly serverless: boolean
  readonly public: boolean
  readonly category: string
  readonly startSsh: boolean
  readonly startJupyter: boolean
  readonly allowedCudaVersions: readonly string[]
  readonly mounts: { readonly persistent?: { readonly size: number; readonly path: string } }
}

/** The form of a new template, which is one for endpoints. */
export const NEW_TEMPLATE: TemplateDraft = {
  ...containerDraft(DEFAULTS),
  name: '',
  serverless: true,
  public: false,
  category: 'NVIDIA',
  startSsh: true,
  startJupyter: true,
  cudaVersions: '',
  volume: '',
  volumePath: '/workspace',
}

/** The form with the values of a template. */
export function templateDraft(template: TemplateValues): TemplateDraft {
  const { persistent } = template.mounts
  return {
    ...containerDraft({ ...template }),
    name: template.name,
    serverless: template.serverless,
    public: template.public,
    category: template.category,
    startSsh: template.startSsh,
    startJupyter: template.startJupyter,
    cudaVersions: template.allowedCudaVersions.join(', '),
    volume: persistent === undefined ? '' : String(persistent.size),
    volumePath: persistent?.path ?? '/workspace',
  }
}

/** All of a form as the API has it. */
export function templateBody(draft: TemplateDraft): Body {
  const size = numberOf(draft.volume)
  return {
    name: draft.name,
    ...containerBody(draft),
    mounts: size === null || draft.serverless ? {} : { persistent: { size, path: draft.volumePath } },
    serverless: draft.serverless,
    public: draft.public,
    category: draft.category,
    startSsh: draft.startSsh,
    startJupyter: draft.startJupyter,
    allowedCudaVersions: words(draft.cudaVersions),
  }
}

/** The smallest body that creates the template of a form. */
export function newTemplateBody(draft: TemplateDraft): Body {
  return without(templateBody(draft), DEFAULTS)
}

/** The body that changes a template to what a form says: only what changed. */
export function templateChanges(before: TemplateDraft, after: TemplateDraft): Body {
  return changedMembers(templateBody(before), templateBody(after))
}
