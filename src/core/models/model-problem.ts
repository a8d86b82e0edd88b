/** Problems of a model, as values made where they are known, and the only function that states them to people. */

/** Limit of files of one model. */
export const MAX_MODEL_FILES = 20_000

/** Facts of each kind of problem. */
interface ModelProblems {
  /** The hub has no such model, or no such revision of it. */
  readonly not_found: { readonly revision: string }
  /** The model is gated, private or does not exist: without a token the hub does not distinguish these. */
  readonly token_missing: object
  /** The hub does not accept the token. */
  readonly token_refused: object
  /** The hub accepts the token, but its account may not read the model. */
  readonly access_refused: object
  readonly hub_unreachable: { readonly host: string; readonly said: string }
  readonly hub_failed: { readonly host: string; readonly status: number }
  readonly download_stalled: { readonly host: string }
  readonly answer_unreadable: { readonly host: string; readonly said: string }
  /** A file does not have the size or the hash that the hub lists. */
  readonly content_wrong: { readonly file: string; readonly what: 'size' | 'hash' }
  /** A file has a name that could lead out of its folder. */
  readonly file_name_refused: { readonly file: string }
  readonly too_many_files: object
  /** Removing everything that may be removed is not enough. Bytes. */
  readonly cache_full: { readonly neededBytes: number; readonly limitBytes: number }
  readonly disk_full: { readonly neededBytes: number }
  /** A code of the operating system, such as EACCES. */
  readonly disk_failed: { readonly code: string }
  /** The model was removed during its download, or the server ended. */
  readonly stopped: object
}

/** The reason why a model is not available. */
export type ModelProblem = {
  [Kind in keyof ModelProblems]: { readonly kind: Kind } & ModelProblems[Kind]
}[keyof ModelProblems]

type Texts = { readonly [Kind in keyof ModelProblems]: (problem: ModelProblems[Kind]) => string }

const TEXTS: Texts = {
  not_found: ({ revision }) => `the hub has no such model, or no revision '${revision}' of it`,
  token_missing: () => 'the hub requires a token: it is gated or private, or does not exist, and HF_TOKEN is not set',
  token_refused: () => 'the hub does not accept the token in HF_TOKEN',
  access_refused: () => 'the account of the token in HF_TOKEN may not read it: its owner must grant access first',
  hub_unreachable: ({ host, said }) => `${host} cannot be reached: ${said}`,
  hub_failed: ({ host, status }) => `${host} answers with status ${status}`,
  download_stalled: ({ host }) => `${host} stopped sending data`,
  answer_unreadable: ({ host, said }) => `${host} did not respond as a hub does: ${said}`,
  content_wrong: ({ file, what }) => `file '${file}' does not have the ${what} that the hub lists`,
  file_name_refused: ({ file }) => `it has a file with the name '${file}', which could lead out of its folder`,
  too_many_files: () => `it has more than ${MAX_MODEL_FILES} files`,
  cache_full: ({ neededBytes, limitBytes }) =>
    `it needs ${sizeText(neededBytes)} more, the limit of the cache is ${sizeText(limitBytes)} (--model-cache-size), and everything in it is in use`,
  disk_full: ({ neededBytes }) => `it needs ${sizeText(neededBytes)} more, and the disk of the cache has no room`,
  disk_failed: ({ code }) => `the folder of the cache cannot be written: ${code}`,
  stopped: () => 'its download was stopped',
}

/** The problem as a clause for people. */
export function modelProblemText(problem: ModelProblem): string {
  return (TEXTS[problem.kind] as (problem: ModelProblem) => string)(problem)
}

/** A number of bytes for people, in decimal units. */
export function sizeText(bytes: number): string {
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB']
  const power = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, bytes)) / 3)))
  const value = bytes / 1000 ** power
  return `${power === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[power]}`
}

/** True if the same download can succeed later without a change by people. */
export function isPassing({ kind }: ModelProblem): boolean {
  return PASSING.has(kind)
}

const PASSING = new Set<ModelProblem['kind']>([
  ...(['hub_unreachable', 'hub_failed', 'download_stalled', 'answer_unreadable', 'content_wrong', 'stopped'] as const),
  ...(['cache_full', 'disk_full', 'disk_failed'] as const),
])

/** The error for a model that is not available. */
export class ModelError extends Error {
  readonly problem: ModelProblem

  constructor(problem: ModelProblem, cause?: unknown) {
    super(modelProblemText(problem), cause === undefined ? undefined : { cause })
    this.name = 'ModelError'
    this.problem = problem
  }
}
