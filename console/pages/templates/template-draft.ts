/** The draft of a template in its form, and the bodies of calls for it. */
import { type Body, readNumber, splitWords } from '../endpoint-form/body.ts'
import { type ContainerDraft, changedMembers, containerBody, containerDraft, without } from '../endpoint-form/draft.ts'

/** Typed values of a template. */
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

/** Defaults of the API for a new template. */
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

/** The form of a new template, which is for endpoints. */
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

/** A whole draft as the API takes it. */
export function templateBody(draft: TemplateDraft): Body {
  const size = readNumber(draft.volume)
  return {
    name: draft.name,
    ...containerBody(draft),
    mounts: size === null || draft.serverless ? {} : { persistent: { size, path: draft.volumePath } },
    serverless: draft.serverless,
    public: draft.public,
    category: draft.category,
    startSsh: draft.startSsh,
    startJupyter: draft.startJupyter,
    allowedCudaVersions: splitWords(draft.cudaVersions),
  }
}

/** The smallest body that creates the template of a draft. */
export function newTemplateBody(draft: TemplateDraft): Body {
  return without(templateBody(draft), DEFAULTS)
}

/** The body that changes a template to a draft: the changed members only. */
export function templateChanges(before: TemplateDraft, after: TemplateDraft): Body {
  return changedMembers(templateBody(before), templateBody(after))
}
