/** Names of models: how a name in a request leads to an endpoint, and what its worker reads in its place. */
import { AppError } from '../errors.ts'
import type { EndpointId } from '../ids.ts'
import { nearest } from '../nearest.ts'

/** Limit of characters of the name of a model. */
export const MAX_MODEL_NAME = 512
/** Limits of the models of one endpoint that are remembered. */
export const SERVED_MODELS = { count: 100, characters: 256 } as const
/** Limit of names in a refusal. */
const MAX_SHOWN = 10

/** The meanings of a name in a request. */
export interface ModelName {
  /** All of it, as the name of an alias or of an endpoint. */
  readonly whole: string
  /** The part before the first slash as an endpoint, and the rest as one of its models; null without both. */
  readonly part: { readonly endpoint: string; readonly model: string } | null
}

/** Splits the name of a model; null for one that no model has. */
export function readModelName(text: string): ModelName | null {
  if (!isModelName(text)) return null
  const slash = text.indexOf('/')
  const hasPart = slash > 0 && slash < text.length - 1
  return { whole: text, part: hasPart ? { endpoint: text.slice(0, slash), model: text.slice(slash + 1) } : null }
}

/** True for a text that may be the name of a model in a request. */
export function isModelName(text: string): boolean {
  return text !== '' && text.length <= MAX_MODEL_NAME
}

/** The refusal of a value that is no name of a model. @param json the value, or its beginning */
export function wrongModel(json: string): AppError {
  const expected = 'model must be the name of a model, as a text'
  const kind = KINDS[json.slice(0, 1)]
  const isText = json.startsWith('"')
  if (isText && json !== '""')
    return new AppError('invalid', `the name of a model has at most ${MAX_MODEL_NAME} characters`)
  return new AppError('invalid', isText ? `${expected}; it is empty` : `${expected}, not ${kind ?? 'a number'}`)
}

/** Kinds of values by their first character in JSON; the others are numbers. */
const KINDS: Readonly<Record<string, string>> = { '[': 'a list', '{': 'an object', n: 'null', t: 'true', f: 'false' }

/** An endpoint that may answer for a name. */
export interface ModelCandidate {
  readonly id: EndpointId
  /** True if it could answer now, without the start of a worker. */
  readonly ready: boolean
}

/** The endpoint that answers: the first that is ready, else the first; null without one. */
export function chosenEndpoint(candidates: readonly ModelCandidate[]): EndpointId | null {
  return (candidates.find(({ ready }) => ready) ?? candidates[0])?.id ?? null
}

/**
 * The name that the worker of an endpoint reads as its model.
 * @param asked the name in the request
 * @param named the model behind the slash of that name; null without one
 * @param known names of its models, as its workers or its settings say, the preferred one first
 * @param name of the endpoint
 */
export function modelForWorker(
  asked: string,
  { named, known, name }: { readonly named: string | null; readonly known: readonly string[]; readonly name: string },
): string {
  if (named !== null) return named
  if (known.includes(asked)) return asked
  return known[0] ?? name
}

/** The models that a worker of an endpoint said it serves, as {@link readServedModels} has bounded them. */
export interface ServedModels {
  readonly endpointId: EndpointId
  /** The version of the endpoint at that time. */
  readonly version: number
  readonly models: readonly string[]
  /** The server's time when a worker last said so, in epoch milliseconds. */
  readonly saidAtMs: number
}

/** The models in the answer of a worker to `GET /v1/models`; null for another answer. */
export function readServedModels(value: unknown): readonly string[] | null {
  const { data } = (typeof value === 'object' && value !== null ? value : {}) as { readonly data?: unknown }
  if (!Array.isArray(data)) return null
  const ids = data.slice(0, SERVED_MODELS.count).map((item: { readonly id?: unknown } | null) => item?.id)
  return ids.filter((id): id is string => typeof id === 'string' && id !== '' && id.length <= SERVED_MODELS.characters)
}

/** Variables of workers that name the model that they serve, the preferred one first. */
const MODEL_VARIABLES = ['OPENAI_SERVED_MODEL_NAME_OVERRIDE', 'SERVED_MODEL_NAME', 'MODEL_NAME', 'MODEL_ID']

/** The model that the variables of a worker name; null without one. Values that refer to secrets do not count. */
export function modelFromVariables(env: Readonly<Record<string, string>>): string | null {
  for (const variable of MODEL_VARIABLES) {
    const value = Object.hasOwn(env, variable) ? env[variable]!.trim() : ''
    if (value !== '' && value.length <= SERVED_MODELS.characters && !value.includes('{{')) return value
  }
  return null
}

/**
 * The refusal of a name that leads to nothing.
 * @param names that the key of the request may use
 */
export function unknownModel(name: string, names: readonly string[]): AppError {
  const shown = name.length > 100 ? `${name.slice(0, 100)}...` : name
  const close = nearest(name, names)
  const meant = close === null ? '' : `; did you mean '${close}'?`
  const more = names.length > MAX_SHOWN ? ` and ${names.length - MAX_SHOWN} more` : ''
  const listed =
    names.length === 0
      ? 'this key may use none'
      : `there ${names.length === 1 ? 'is' : 'are'} ${names.slice(0, MAX_SHOWN).join(', ')}${more}`
  return new AppError('not_found', `there is no model '${shown}'${meant}${meant === '' ? ': ' : ' '}${listed}`)
}

/** The states of a model: whether a request is answered now, after a wake, or after a start. */
export const MODEL_STATES = ['ready', 'sleeping', 'starting', 'cold', 'paused'] as const
/** One of {@link MODEL_STATES}. */
export type ModelState = (typeof MODEL_STATES)[number]
