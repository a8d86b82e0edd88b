/** Names of models: on their hub, in endpoints, and in the folders of a cache. */

// No name on a hub has two dots or two hyphens in a row, so each name is one folder of a cache and no two names
// share one.
const NAME = String.raw`(?![.-])(?![\w.-]*(?:--|\.\.))[\w.-]{0,95}\w`
// No part of it is hidden or leads upwards, since a branch is a file of a cache.
const REVISION = String.raw`(?![./-])(?![\w./-]*(?:\.\.|//|/\.))[\w./-]{0,127}[\w-]`

/** A model of Hugging Face, `owner/name` or `owner/name:revision`, as it is or behind the address of its host. */
export const MODEL_REFERENCE = new RegExp(String.raw`^(https://huggingface\.co/)?${NAME}/${NAME}(:${REVISION})?$`)

const COMMIT = /^[0-9a-f]{40}$/

/** The revision of a reference that names none. */
export const DEFAULT_REVISION = 'main'

/** A model and its revision. */
export interface ModelReference {
  /** `owner/name`. */
  readonly name: string
  /** A branch, a tag or a commit. */
  readonly revision: string
}

/** Reads a reference; null if it does not have the form of {@link MODEL_REFERENCE}. */
export function parseModelReference(text: string): ModelReference | null {
  if (!MODEL_REFERENCE.test(text)) return null
  const [name = '', revision = DEFAULT_REVISION] = text.replace(/^https:\/\/huggingface\.co\//, '').split(':')
  return { name, revision }
}

/** True if a revision is a commit, which never changes its content. */
export function isCommit(revision: string): boolean {
  return COMMIT.test(revision)
}

/** Name of a model's folder in a cache of Hugging Face, as `models--owner--name`. */
export function modelFolder(name: string): string {
  return `models--${name.replace('/', '--')}`
}

/** The model of a folder in a cache; null for any other folder. */
export function modelInFolder(folder: string): string | null {
  const [kind, owner = '', name = '', ...rest] = folder.split('--')
  const model = `${owner}/${name}`
  return kind === 'models' && rest.length === 0 && parseModelReference(model)?.name === model ? model : null
}
