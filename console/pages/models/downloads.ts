/** Downloads of models to the machine of the server. */
import { request } from '../../client/api.ts'

/** A model on the disk of the machine. */
export interface CachedModel {
  readonly name: string
  readonly commit: string
  readonly refs: readonly string[]
  readonly bytes: number
  /** Null for one that no worker has used. */
  readonly usedAt: string | null
  /** Number of workers that have it now. */
  readonly workers: number
  /** True if its hub gives it to some accounts only. */
  readonly restricted: boolean
}

/** A download that goes on. */
export interface Download {
  readonly name: string
  readonly revision: string
  readonly receivedBytes: number
  /** Null until the hub has said it. */
  readonly totalBytes: number | null
}

/** The models of the machine, its downloads, and its room for them. */
export interface MachineContent {
  readonly models: readonly CachedModel[]
  readonly downloads: readonly Download[]
  readonly usedBytes: number
  readonly limitBytes: number
}

/** Reads all of them. */
export async function readMachineModels(signal: AbortSignal): Promise<MachineContent> {
  return (await (await request('GET', '/ops/models', { signal })).json()) as MachineContent
}

/**
 * The path of a model that is named as `owner/name` or `owner/name:revision`.
 * @throws Error for another text
 */
export function modelPath(text: string): { readonly path: string; readonly revision: string | null } {
  const [, name, revision = null] =
    /^((?!\.)[\w.-]{1,200}\/(?!\.)[\w.-]{1,200})(?::(\S{1,200}))?$/.exec(text.trim()) ?? []
  if (name === undefined) throw new Error('A model is named owner/name or owner/name:revision.')
  return { path: `/ops/models/${name}`, revision }
}

/** The share of a download that has arrived; null while its size is not known. */
export function downloadShare({ receivedBytes, totalBytes }: Download): number | null {
  return totalBytes === null || totalBytes === 0 ? null : Math.min(1, receivedBytes / totalBytes)
}

/**
 * Starts a download, or joins one, and waits some seconds for its end.
 * @returns true once the model is there
 * @throws ApiError with the reason of a failure
 */
export async function pull(text: string): Promise<boolean> {
  const { path, revision } = modelPath(text)
  const query = revision === null ? '' : `?revision=${encodeURIComponent(revision)}`
  return ((await (await request('POST', path + query)).json()) as { readonly done: boolean }).done
}
